"""The composition root: scenario + configuration + runner -> a run, and its trace.

Owns: Run, and how scripted and recorded runs are put together. Must not know: torch (live.py puts real runs together),
pages, terminals. A Run is stepped by whoever wants to watch; it can be cut off after any step and still gives a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from batchviz.engine import Engine, EngineLimitError, no_clock
from batchviz.own_policy import describe
from batchviz.prefill import PrefillMode, make_prefill
from batchviz.request import Request
from batchviz.runner import Detokenizer, ModelRunner, RecordedRunner, RecordedTokens, ScriptedRunner, StepCost
from batchviz.scenario import MAX_GROUP_TIMEOUT, Scenario, ScenarioError, ScenarioRequest, check_fits, shown_text
from batchviz.scheduler import Policy, Scheduler, make_scheduler
from batchviz.trace import (
    ArrivalUnit,
    Fork,
    Origin,
    RunConfig,
    RunnerKind,
    ScenarioRecord,
    Seconds,
    StepSnapshot,
    Trace,
    TracedRequest,
    TraceStatus,
)

DEFAULT_SLOT_CAPACITY = 1024


class RunFailedError(ValueError):
    """A step that raised. The message is one sentence; the run's trace ends before it, with the status `error`."""


class Run:
    """One policy's run in progress. `step()` while `has_work`; `trace()` at any time.

    `scheduler` is one of one's own, where the configuration names it (`policy_class`).
    """

    def __init__(
        self,
        record: ScenarioRecord,
        requests: Iterable[Request],
        config: RunConfig,
        origin: Origin,
        runner: ModelRunner,
        *,
        detokenizer: Detokenizer | None = None,
        clock: Callable[[], float] = no_clock,
        scheduler: Scheduler | None = None,
    ) -> None:
        self._record = record
        self._config = config
        self._origin = origin
        self._steps: list[StepSnapshot] = []
        self._forks: list[Fork] = []
        self._failure = ""
        self.engine = Engine(
            scheduler or scheduler_of(config),
            runner,
            slot_capacity=config.slot_capacity,
            detokenizer=detokenizer,
            clock=clock,
            arrival_unit=record.arrival_unit,
        )
        self.engine.add_all(requests)

    @property
    def has_work(self) -> bool:
        return self.engine.has_work and not self._failure

    @property
    def step_number(self) -> int:
        """The number of the step that comes next."""
        return self.engine.step_number

    def add(self, traced: TracedRequest, stop_token_ids: frozenset[int]) -> None:
        """A request that comes while the run goes on; from now on part of its scenario. Raises ValueError on a known id.

        Its arrival must not lie behind, or the trace would say that it was due before it was there.
        """
        if traced.arrival < self.step_number and self._record.arrival_unit is ArrivalUnit.STEPS:
            raise ValueError(
                f"request {traced.id!r} arrives at step {traced.arrival:g}; step {self.step_number} is next"
            )
        self.engine.add(request_from(traced, stop_token_ids))
        self._record = replace(self._record, requests=(*self._record.requests, traced))

    def abort(self, request_id: str) -> None:
        """The user leaves before the next step. Raises KeyError on an unknown id."""
        self.engine.abort(request_id)

    def reschedule(self, config: RunConfig) -> None:
        """Goes on under another configuration, from the next step on. Raises ValueError where the seated do not fit."""
        if config.slot_capacity != self._config.slot_capacity:
            raise ValueError(f"a slot has {self._config.slot_capacity:,} positions; that cannot change in mid-run")
        self.engine.reschedule(scheduler_of(config))
        self._forks.append(Fork(self.step_number, self._config))
        self._config = config

    def step(self) -> StepSnapshot:
        """Raises RunFailedError if the runner or the scheduler does; such a run makes no more steps."""
        if self._failure:
            raise RunFailedError(self._failure)
        try:
            snapshot = self.engine.step()
        except EngineLimitError:
            raise
        except Exception as error:  # whatever a model, a device or somebody's policy may raise
            self._failure = f"the run failed at step {self.step_number}: {describe(error)}"
            raise RunFailedError(self._failure) from error
        self._steps.append(snapshot)
        return snapshot

    def finish(self) -> Trace:
        """Steps to the end."""
        while self.has_work:
            self.step()
        return self.trace()

    def trace(self, status: TraceStatus | None = None, message: str = "") -> Trace:
        """What there is so far. Without a status: error if it failed, complete if nothing is left to do, else unfinished."""
        if status is None and self._failure:
            status, message = TraceStatus.ERROR, self._failure
        elif status is None:
            status = TraceStatus.UNFINISHED if self.has_work else TraceStatus.COMPLETE
        steps, forks = tuple(self._steps), tuple(self._forks)
        return Trace(self._record, self._config, self._origin, steps, status, message, forks)


def scheduler_of(config: RunConfig) -> Scheduler:
    """The scheduler that a configuration asks for."""
    return make_scheduler(
        config.policy,
        config.num_slots,
        prefill=config.prefill,
        max_batched_tokens=config.max_batched_tokens,
        kv_budget_tokens=config.kv_budget_tokens,
        group_timeout=config.group_timeout,
    )


def make_config(
    policy: Policy,
    num_slots: int,
    slot_capacity: int = DEFAULT_SLOT_CAPACITY,
    *,
    prefill: PrefillMode = PrefillMode.MIXED,
    max_batched_tokens: int | None = None,
    kv_budget_tokens: int | None = None,
    group_timeout: float = 0,
) -> RunConfig:
    """A configuration; a sequential run always says one slot, and only a static one waits for its group.

    Raises ValueError with one sentence if the token budget is missing, out of place or less than a token a slot.
    """
    if not 0 <= group_timeout <= MAX_GROUP_TIMEOUT:  # NaN is in no range
        raise ValueError(f"group_timeout is {group_timeout:g}; it must be a number from 0 to {MAX_GROUP_TIMEOUT:,}")
    num_slots = 1 if policy is Policy.SEQUENTIAL else num_slots
    make_prefill(prefill, num_slots, max_batched_tokens)
    group_timeout = group_timeout if policy is Policy.STATIC else 0
    return RunConfig(policy, num_slots, slot_capacity, prefill, max_batched_tokens, kv_budget_tokens, group_timeout)


def scenario_config(
    scenario: Scenario,
    policy: Policy,
    num_slots: int | None = None,
    slot_capacity: int = DEFAULT_SLOT_CAPACITY,
    *,
    prefill: PrefillMode | None = None,
    max_batched_tokens: int | None = None,
    kv_budget_tokens: int | None = None,
    group_timeout: float | None = None,
) -> RunConfig:
    """What is given, and the scenario's own settings for what is None. Raises ValueError as `make_config` does."""
    prefill = scenario.prefill if prefill is None else prefill
    if max_batched_tokens is None and prefill is scenario.prefill:
        max_batched_tokens = scenario.max_batched_tokens
    return make_config(
        policy,
        scenario.num_slots if num_slots is None else num_slots,
        slot_capacity,
        prefill=prefill,
        max_batched_tokens=max_batched_tokens,
        kv_budget_tokens=scenario.kv_budget_tokens if kv_budget_tokens is None else kv_budget_tokens,
        group_timeout=scenario.group_timeout if group_timeout is None else group_timeout,
    )


def scripted_run(scenario: Scenario, config: RunConfig, scheduler: Scheduler | None = None) -> Run:
    """Lengths alone, no model. Raises ScenarioError for a request without an exact `output_tokens`."""
    cost = StepCost()
    record = scenario_record(scenario, _length_only(scenario, config.slot_capacity))
    requests = [request_from(traced, frozenset()) for traced in record.requests]
    origin = Origin(RunnerKind.SCRIPTED, Seconds.MODELLED, cost=(cost.base_s, cost.row_s))
    return Run(record, requests, config, origin, ScriptedRunner(cost), scheduler=scheduler)


def replay_run(recordings: Sequence[Trace], config: RunConfig, scheduler: Scheduler | None = None) -> Run:
    """The recorded tokens under this configuration. Seconds are modelled from what the recorded steps cost.

    Takes one or more recordings of the same scenario, all complete. Raises ValueError if they are not.
    """
    first = recordings[0]
    unfinished = [trace for trace in recordings if trace.status is not TraceStatus.COMPLETE]
    if unfinished:
        raise ValueError(f"a recording that is {unfinished[0].status} has not all the tokens; replay a complete one")
    steps = [step for trace in recordings for step in trace.steps]
    cost = StepCost.fit([step.num_rows for step in steps], [step.duration_s for step in steps])
    stop_token_ids = frozenset(first.origin.model.stop_token_ids if first.origin.model else ())
    runner = RecordedRunner(recorded_tokens(first), cost)
    requests = [request_from(traced, stop_token_ids) for traced in first.scenario.requests]
    scripted = first.origin.runner is RunnerKind.SCRIPTED
    origin = replace(
        first.origin,
        runner=RunnerKind.SCRIPTED if scripted else RunnerKind.RECORDED,
        seconds=Seconds.MODELLED,
        cost=(round(cost.base_s, 6), round(cost.row_s, 6)),
    )
    return Run(first.scenario, requests, config, origin, runner, detokenizer=runner, scheduler=scheduler)


def as_recorded(trace: Trace) -> Trace:
    """A measured trace read back from a file: the same numbers, said to be a recording."""
    if trace.origin.runner is not RunnerKind.MODEL:
        return trace
    return replace(trace, origin=replace(trace.origin, runner=RunnerKind.RECORDED))


def recorded_tokens(trace: Trace) -> Mapping[str, RecordedTokens]:
    """Every request's tokens and the text each made visible, as this run sampled them."""
    token_ids: dict[str, list[int]] = {}
    pieces: dict[str, list[str | None]] = {}
    for snapshot in trace.steps:
        for slot in snapshot.slots:
            if slot.token_id is not None and slot.request_id is not None:
                token_ids.setdefault(slot.request_id, []).append(slot.token_id)
                pieces.setdefault(slot.request_id, []).append(slot.text)
    return {key: RecordedTokens(tuple(token_ids[key]), tuple(pieces[key])) for key in token_ids}


def scenario_record(scenario: Scenario, requests: Iterable[TracedRequest]) -> ScenarioRecord:
    """The scenario as a trace keeps it, with its requests once their lengths are known."""
    return ScenarioRecord(
        name=scenario.name,
        title=scenario.title,
        requests=tuple(requests),
        look_for=scenario.look_for,
        arrival_unit=ArrivalUnit(scenario.arrival_unit),
    )


def request_from(traced: TracedRequest, stop_token_ids: frozenset[int]) -> Request:
    """The engine's request. Where only a length is known, its prompt is that many zeros: no runner looks at them."""
    return Request(
        id=traced.id,
        prompt_token_ids=traced.prompt_token_ids or (0,) * traced.num_prompt_tokens,
        max_tokens=traced.max_tokens,
        arrival=traced.arrival,
        stop_token_ids=stop_token_ids,
        output_tokens=traced.output_tokens,
        sampling=traced.sampling,
    )


def _length_only(scenario: Scenario, slot_capacity: int) -> Iterator[TracedRequest]:
    yield from (length_only(request, slot_capacity) for request in scenario.requests)


def length_only(request: ScenarioRequest, slot_capacity: int) -> TracedRequest:
    """A request of a run without a model. Raises ScenarioError where it has no exact length, or fits no slot."""
    if request.output_tokens is None:
        raise ScenarioError(
            f"request {shown_text(request.id)} has no output_tokens; a scripted run needs the exact length of every "
            "answer (or run it with the model)"
        )
    num_prompt_tokens = _num_prompt_tokens(request)
    check_fits(num_prompt_tokens, request, slot_capacity)
    return TracedRequest(
        id=request.id,
        num_prompt_tokens=num_prompt_tokens,
        max_tokens=request.max_tokens,
        arrival=request.arrival,
        output_tokens=request.output_tokens,
        prompt=request.prompt,
    )


def _num_prompt_tokens(request: ScenarioRequest) -> int:
    """The given length; for a prompt in words its number of words, since without a model there is no tokenizer."""
    if request.prompt_tokens is not None:
        return request.prompt_tokens
    return max(len((request.prompt or "").split()), 1)
