"""The runs that a lesson speaks of: the recorded tokens of presets, under whatever configuration is asked for.

Owns: LessonRuns: which name is which run. Must not know: lessons' texts, pages. No model runs; every run is a replay of a
recording, or the recording itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from batchviz.figures import FigureError, Run
from batchviz.link import panes_from_text
from batchviz.panes import config_of
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.recordings import load_recording, rescheduled
from batchviz.runs import scenario_config
from batchviz.scheduler import Policy
from batchviz.trace import RunConfig, Trace

SCENARIOS = PRESET_NAMES + SCRIPTED_PRESET_NAMES
PLACES = ("first", "second", "third")


class LessonRuns:
    """Runs by name: `static` is the lesson's own pane of that policy, `first` its first pane, `static-8` any other."""

    def __init__(self, scenario: str, panes: Sequence[str]) -> None:
        if scenario not in SCENARIOS:
            raise FigureError(f"there is no preset {scenario!r}; there are {', '.join(SCENARIOS)}")
        self.scenario = scenario
        self.panes = tuple(panes)
        for pane in panes:
            config_from_name(scenario, pane)

    def is_scenario(self, name: str) -> bool:
        return name.replace("_", "-") in SCENARIOS

    def run(self, pane: str, scenario: str | None) -> Run:
        name = pane.replace("_", "-")
        if scenario is not None:
            return run_of(scenario.replace("_", "-"), name)
        if name in PLACES[: len(self.panes)]:
            return run_of(self.scenario, self.panes[PLACES.index(name)])
        place = self.place_of(name)
        return run_of(self.scenario, name if place is None else self.panes[place])

    def place_of(self, name: str) -> int | None:
        """Which pane a name is, None for no pane of this lesson. Raises FigureError where two are of that policy."""
        if name in PLACES[: len(self.panes)]:
            return PLACES.index(name)
        if name in self.panes:
            return self.panes.index(name)
        found = [place for place, pane in enumerate(self.panes) if pane.split("-")[0] == name]
        if len(found) > 1:
            raise FigureError(f"{name!r} could be several panes; write first, second or third")
        return found[0] if found else None

    def traces(self) -> tuple[Trace, ...]:
        """What the panes show."""
        return tuple(run_of(self.scenario, pane).trace for pane in self.panes)


@cache
def run_of(scenario: str, pane: str) -> Run:
    """A preset's recorded tokens under this pane."""
    return Run(rescheduled(_recording(scenario), config_from_name(scenario, pane)))


@cache
def _recording(scenario: str) -> tuple[Trace, ...]:
    return load_recording(scenario)


def config_from_name(scenario: str, pane: str) -> RunConfig:
    """A policy under the scenario's own settings, or a pane's text such as `static-8`. Raises FigureError."""
    if pane in list(Policy):
        return scenario_config(load_scenario(scenario), Policy(pane))
    panes = panes_from_text(pane)
    if len(panes) != 1:
        raise FigureError(f"{pane!r} is neither a policy nor a pane such as static-8 or continuous-4-chunked-b64")
    return config_of(panes[0])
