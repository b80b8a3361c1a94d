"""Small builders that many tests share: requests from lengths, a run from a policy, a trace from a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batchviz.engine import Engine
from batchviz.request import Request
from batchviz.runner import RecordedRunner, RecordedTokens, ScriptedRunner, StepCost
from batchviz.scheduler import Policy, make_scheduler
from batchviz.trace import Origin, RunConfig, RunnerKind, ScenarioRecord, Seconds, Trace, TracedRequest, TraceStatus

GOLDEN_LENGTHS = (3, 200, 5, 40, 12, 120, 8, 60)
END = 2  # the end token of the tokens made up here


def requests_of(
    lengths: Sequence[int], arrivals: Sequence[float] | None = None, prompts: Sequence[int] | None = None
) -> list[Request]:
    """One request of exactly each length, called r0, r1, ..."""
    return [
        Request(
            f"r{i}",
            (7,) * (prompts[i] if prompts else 10),
            length,
            arrivals[i] if arrivals else 0,
            output_tokens=length,
        )
        for i, length in enumerate(lengths)
    ]


def make_engine(policy: Policy, num_slots: int, requests: Sequence[Request], *, slot_capacity: int = 1024) -> Engine:
    """A scripted engine with everything submitted."""
    engine = Engine(make_scheduler(policy, num_slots), ScriptedRunner(), slot_capacity=slot_capacity)
    engine.add_all(requests)
    return engine


def recorded_engine(
    policy: Policy, num_slots: int, requests: Sequence[Request], tokens: Mapping[str, Sequence[int]]
) -> Engine:
    """An engine whose requests get exactly these tokens; each token's text is its number."""
    runner = RecordedRunner(
        {key: RecordedTokens(tuple(ids), tuple(f"{token} " for token in ids)) for key, ids in tokens.items()},
        StepCost(),
    )
    engine = Engine(make_scheduler(policy, num_slots), runner, detokenizer=runner)
    engine.add_all(requests)
    return engine


def trace_of(
    engine: Engine,
    policy: Policy,
    num_slots: int,
    requests: Sequence[Request],
    *,
    kind: RunnerKind = RunnerKind.SCRIPTED,
    slot_capacity: int = 1024,
) -> Trace:
    """Runs the engine to its end and wraps what it left."""
    return Trace(
        scenario=ScenarioRecord(
            name="test",
            title="A test",
            requests=tuple(
                TracedRequest(
                    request.id,
                    request.num_prompt_tokens,
                    request.max_tokens,
                    request.arrival,
                    request.output_tokens,
                    prompt=None if kind is RunnerKind.SCRIPTED else f"prompt of {request.id}",
                )
                for request in requests
            ),
        ),
        config=RunConfig(policy, 1 if policy is Policy.SEQUENTIAL else num_slots, slot_capacity),
        origin=Origin(kind, Seconds.MODELLED),
        steps=tuple(engine.run()),
        status=TraceStatus.COMPLETE,
    )


def scripted_trace(
    policy: Policy, num_slots: int, lengths: Sequence[int], arrivals: Sequence[float] | None = None
) -> Trace:
    """A whole scripted run as a trace."""
    requests = requests_of(lengths, arrivals)
    return trace_of(make_engine(policy, num_slots, requests), policy, num_slots, requests)
