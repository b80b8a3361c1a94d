"""Where the requests and tokens on show come from: a preset, a scenario file or link, a trace file, a live run.

Owns: `Source`, the session's own scenario or trace (as text), and what a source gives under given panes. Must not know:
layout, widgets, charts. Nothing in here needs the model: what has no tokens and no exact lengths is shown once it ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType

import streamlit as st

from batchviz.check import check_trace
from batchviz.export.series import step_rows
from batchviz.export.tables import request_rows
from batchviz.link import MAX_PANES, PaneChoice, checked, panes_from_text, panes_to_text
from batchviz.panes import config_of, pane_of
from batchviz.playback import playback
from batchviz.presets import PRESET_NAMES, PRESET_PANES, list_presets, list_scripted_presets, load_scenario
from batchviz.recordings import has_recording, rescheduled
from batchviz.runs import DEFAULT_SLOT_CAPACITY, as_recorded, scenario_config, scripted_run
from batchviz.scenario import MAX_SLOTS, Scenario, ScenarioError, ScenarioRequest
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.scheduler import Policy
from batchviz.trace import ScenarioRecord, Trace, TraceStatus
from batchviz.trace_file import TraceError, bundle_to_json, is_trace, traces_from_bytes
from batchviz.ui import state
from batchviz.workload_file import WORKLOAD_SUFFIXES, Cut, parse_workload

OWN = "own"  # the key of what this session brought itself
OWN_SCENARIO = "own_scenario"  # YAML text
OWN_TRACES = "own_traces"  # JSON text of a bundle; then OWN_SCENARIO is None
OWN_NAME = "own_name"  # str: how the file was called
WORKLOAD_CUT = Cut(limit=200, max_total_tokens=DEFAULT_SLOT_CAPACITY)  # what of a recorded workload is taken


@dataclass(frozen=True, slots=True)
class Source:
    """What is on show. `tokens` is a bundle as JSON text, None where there are lengths alone or nothing yet."""

    key: str  # a preset's name, or OWN
    scenario: Scenario
    tokens: str | None
    is_trace: bool = False  # an imported one
    is_live: bool = False  # its tokens and requests are those of this session's last live run

    @property
    def may_run_live(self) -> bool:
        return self.scenario.has_words


@cache
def _preset(name: str) -> Scenario:
    """The presets' files never change while the page runs."""
    return load_scenario(name)


def source_titles() -> dict[str, str]:
    """Key -> title of everything that can be chosen, one's own first."""
    own = st.session_state.get(OWN_NAME)
    return ({OWN: f"Yours: {own}"} if own else {}) | dict(_preset_titles())


@cache
def _preset_titles() -> Mapping[str, str]:
    """The presets that can be shown at once: recorded ones, and those of exact lengths, which need no model."""
    recorded = {scenario.name: scenario.title for scenario in list_presets() if has_recording(scenario.name)}
    scripted = {scenario.name: f"{scenario.title} (no model)" for scenario in list_scripted_presets()}
    return MappingProxyType(recorded | scripted)


def source_of(key: str) -> Source:
    """The source of this key; the first preset if the session does not have it (any more)."""
    if key == OWN and st.session_state.get(OWN_TRACES):
        text = str(st.session_state[OWN_TRACES])
        return _or_live(Source(OWN, _scenario_in(text), text, is_trace=True))
    if key == OWN and st.session_state.get(OWN_SCENARIO):
        return _or_live(Source(OWN, _parsed(str(st.session_state[OWN_SCENARIO])), None))
    name = key if key in _preset_titles() else PRESET_NAMES[0]
    return _or_live(preset_source(name))


def preset_source(name: str) -> Source:
    """A preset as it was shipped, whatever this session ran since."""
    return Source(name, _preset(name), state.recording_text(name) if has_recording(name) else None)


def _or_live(source: Source) -> Source:
    """The last live run, if it was made from this source, takes the place of what was there before."""
    live = st.session_state.get(state.LIVE_BUNDLE)
    if live is None or st.session_state.get(state.LIVE_FOR) != source.key:
        return source
    asked = replace(source.scenario, requests=_scenario_in(str(live)).requests)
    return replace(source, tokens=str(live), scenario=asked, is_live=True)


def usual_panes(source: Source) -> tuple[PaneChoice, ...]:
    """A trace's own panes; else the scenario's policies under its own settings."""
    if source.is_trace and source.tokens is not None:
        panes = tuple(pane_of(trace.config) for trace in state.traces_in(source.tokens)[:MAX_PANES])
        return panes if len(panes) > 1 or not is_whole(source) else (*panes, _counterpart(panes[0]))
    own = panes_from_text(PRESET_PANES.get(source.key, ""))
    if own:
        return own
    scenario = source.scenario
    return tuple(pane_of(scenario_config(scenario, policy)) for policy in scenario.policies[:MAX_PANES])


def _counterpart(pane: PaneChoice) -> PaneChoice:
    """What a lone run is held against: the other way to batch, everything else alike."""
    other = Policy.STATIC if pane.policy is Policy.CONTINUOUS else Policy.CONTINUOUS
    return checked(replace(pane, policy=other))


def bundle_of(source: Source, panes: tuple[PaneChoice, ...]) -> str | None:
    """The runs on show as JSON text, None before there are any. Raises ValueError with one sentence."""
    text = panes_to_text(panes)
    if source.tokens is not None:
        return _rescheduled_text(source.tokens, text)
    if source.scenario.has_exact_lengths:
        return _scripted_text(dump_scenario(source.scenario), text)
    return None


@st.cache_data(max_entries=64, show_spinner=False)
def _rescheduled_text(tokens: str, panes: str) -> str:
    recordings = state.traces_in(tokens)
    if not _is_whole(tokens):
        return bundle_to_json(recordings[:MAX_PANES])  # shown as it is
    capacity = recordings[0].config.slot_capacity
    return bundle_to_json(rescheduled(recordings, config_of(pane, capacity)) for pane in panes_from_text(panes))


@st.cache_data(max_entries=64, show_spinner=False)
def _scripted_text(scenario: str, panes: str) -> str:
    asked = _parsed(scenario)
    return bundle_to_json(scripted_run(asked, config_of(pane)).finish() for pane in panes_from_text(panes))


@st.cache_data(max_entries=16, show_spinner=False)
def problems_of(tokens: str) -> list[str]:
    """What in these traces breaks the rules of scheduling, one sentence each."""
    return [problem for trace in state.traces_in(tokens) for problem in check_trace(trace)]


def is_whole(source: Source) -> bool:
    """True if it can be scheduled anew: its lengths are exact, or all its tokens are there."""
    return source.scenario.has_exact_lengths if source.tokens is None else _is_whole(source.tokens)


@st.cache_data(max_entries=64, show_spinner=False)
def _is_whole(tokens: str) -> bool:
    complete = all(trace.status is TraceStatus.COMPLETE for trace in state.traces_in(tokens))
    return complete and not problems_of(tokens)


def take_file(content: bytes, name: str) -> None:
    """An uploaded trace, bundle or scenario becomes this session's own. Raises TraceError or ScenarioError: one sentence."""
    if not is_trace(content):
        take_scenario(_scenario_from(content, name), name)
        return
    traces = traces_from_bytes(content, name=name)
    if not all(trace.steps for trace in traces):
        raise TraceError(f"{name} holds a run without a single step; there is nothing to show")
    wide = next((trace for trace in traces if not 1 <= trace.num_slots <= MAX_SLOTS), None)
    if wide is not None:
        raise TraceError(f"{name} has {wide.config.num_slots:,} slots; this page shows at most {MAX_SLOTS}")
    traces = tuple(map(as_recorded, traces))
    _refuse_unreadable(traces, name)
    st.session_state[OWN_TRACES], st.session_state[OWN_SCENARIO] = bundle_to_json(traces), None
    _took(name)


def _scenario_from(content: bytes, name: str) -> Scenario:
    """A scenario file, or the beginning of a workload that a real server recorded."""
    lower, stem = name.lower(), name.rpartition(".")[0] or name
    if lower.endswith(WORKLOAD_SUFFIXES):
        return parse_workload(content, name, is_csv=lower.endswith(".csv"), cut=WORKLOAD_CUT, default_name=stem)
    return parse_scenario(content, name, is_json=lower.endswith(".json"), default_name=stem)


def _refuse_unreadable(traces: tuple[Trace, ...], name: str) -> None:
    """A trace that breaks rules is shown, and that is said; one that contradicts itself cannot even be drawn."""
    problem = next((problem for trace in traces for problem in check_trace(trace)), None)
    if problem is None:
        return
    try:
        playback(traces)
        request_rows(traces)
        step_rows(traces)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise TraceError(f"{name} contradicts itself and cannot be drawn: {problem}") from None


def take_scenario(scenario: Scenario, name: str) -> None:
    """A scenario becomes this session's own. Raises ScenarioError if it cannot be written down."""
    st.session_state[OWN_SCENARIO], st.session_state[OWN_TRACES] = dump_scenario(scenario), None
    _took(name)


def _took(name: str) -> None:
    st.session_state[OWN_NAME] = name[:60]
    if st.session_state.get(state.LIVE_FOR) == OWN:
        st.session_state[state.LIVE_FOR] = None


def scenario_text(source: Source) -> str | None:
    """The scenario as a file, None if it is too long for one."""
    try:
        return dump_scenario(source.scenario)
    except ScenarioError:
        return None


def _parsed(text: str) -> Scenario:
    return parse_scenario(text.encode(), "the scenario", is_json=False)


@lru_cache(maxsize=16)
def _scenario_in(tokens: str) -> Scenario:
    """What was asked of these traces; a page asks several times a run."""
    return _scenario_of(state.traces_in(tokens)[0].scenario)


def _scenario_of(record: ScenarioRecord) -> Scenario:
    """A trace's scenario, as it would be asked again."""
    requests = tuple(
        ScenarioRequest(
            id=request.id,
            max_tokens=request.max_tokens,
            prompt=request.prompt,
            prompt_tokens=request.num_prompt_tokens if request.prompt is None else None,
            output_tokens=request.output_tokens,
            arrival=int(request.arrival) if record.arrival_unit == "steps" else request.arrival,
        )
        for request in record.requests
    )
    return Scenario(record.name, record.title, requests, record.look_for, arrival_unit=record.arrival_unit.value)
