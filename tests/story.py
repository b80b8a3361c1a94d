"""Traces for tests, made by the real engine: the default story with made-up words. Never shipped."""

from __future__ import annotations

from collections.abc import Sequence

from batchviz.engine import Engine
from batchviz.request import Request
from batchviz.runner import RecordedRunner, RecordedTokens, ScriptedRunner, StepCost
from batchviz.scheduler import Policy, make_scheduler
from batchviz.trace import Origin, RunConfig, RunnerKind, ScenarioRecord, Seconds, Trace, TracedRequest, TraceStatus

STORY = (3, 200, 5, 40, 12, 120, 8, 60)
QUESTIONS = (
    ("yes-no", "Is the sky blue? Answer yes or no."),
    ("rome", "Tell me the history of the Roman Empire."),
    ("capital", "What is the capital of France?"),
    ("banana", "Why are bananas good for you?"),
    ("rain", "A haiku about rain, please."),
    ("gpu", "Explain what a GPU does."),
    ("greeting", "How do I say good morning in German?"),
    ("fox", "Tell me a short story about a fox."),
)
OPENINGS = (
    "No.",
    "The Roman Empire began with the founding of Rome in 753 BC, and grew from a small town on the river Tiber",
    "It is Paris.",
    "Bananas are high in potassium and a good source of fibre, which helps the heart and the stomach",
    "Rain in the heart of the night, a gentle",
    "A GPU is a specialised processor that runs thousands of small sums at the same time, side by side",
    "Good morning is Guten Morgen.",
    "Once upon a time a fox lived beside the old mill, and every evening she listened to the water",
)
FILLER = ("and", "then", "there", "was", "more", "to", "say", "about", "it", ",", "so", "the", "model", "went", "on")


def pieces_of(index: int, length: int) -> tuple[str, ...]:
    """`length` pieces: an opening, filler, and the end token, which shows nothing."""
    words = OPENINGS[index % len(OPENINGS)].replace(".", " .").replace(",", " ,").split()
    while len(words) < length - 1:
        words.append(FILLER[len(words) % len(FILLER)])
    words = words[: length - 1]
    spaced = [word if place == 0 or word in ".," else f" {word}" for place, word in enumerate(words)]
    return (*spaced, "")


def make_trace(
    policy: Policy,
    num_slots: int = 4,
    lengths: Sequence[int] = STORY,
    *,
    arrivals: Sequence[int] | None = None,
    runner: RunnerKind = RunnerKind.RECORDED,
    ids: Sequence[str] | None = None,
    prompts: Sequence[str] | None = None,
    pieces: Sequence[Sequence[str]] | None = None,
    max_steps: int | None = None,
    aborts: dict[int, str] | None = None,
    slot_capacity: int = 4096,
    num_prompt_tokens: int = 12,
) -> Trace:
    """One policy's run of requests with these output lengths."""
    ids = ids or [QUESTIONS[i][0] if i < len(QUESTIONS) else f"r{i}" for i in range(len(lengths))]
    prompts = prompts or [QUESTIONS[i % len(QUESTIONS)][1] for i in range(len(lengths))]
    arrivals = arrivals or [0] * len(lengths)
    requests = [
        Request(ids[i], (1,) * num_prompt_tokens, max_tokens=length, arrival=arrivals[i], output_tokens=length)
        for i, length in enumerate(lengths)
    ]
    scheduler = make_scheduler(policy, num_slots)
    if runner is RunnerKind.SCRIPTED:
        engine = Engine(scheduler, ScriptedRunner(), slot_capacity=slot_capacity)
    else:
        recorded = {
            ids[i]: RecordedTokens((7,) * length, tuple(pieces[i]) if pieces else pieces_of(i, length))
            for i, length in enumerate(lengths)
        }
        replay = RecordedRunner(recorded, StepCost())
        engine = Engine(scheduler, replay, detokenizer=replay, slot_capacity=slot_capacity)
    engine.add_all(requests)
    steps = []
    while engine.has_work and (max_steps is None or len(steps) < max_steps):
        if aborts and engine.step_number in aborts:
            engine.abort(aborts[engine.step_number])
        steps.append(engine.step())
    traced = tuple(
        TracedRequest(request.id, request.num_prompt_tokens, request.max_tokens, request.arrival, request.output_tokens,
                      prompts[i])
        for i, request in enumerate(requests)
    )  # fmt: skip
    return Trace(
        ScenarioRecord("four-slots", "Eight chats, four slots", traced, "Watch what happens to a finished answer."),
        RunConfig(policy, scheduler.num_slots, slot_capacity),
        Origin(runner, Seconds.MODELLED),
        tuple(steps),
        TraceStatus.UNFINISHED if engine.has_work else TraceStatus.COMPLETE,
    )


def story(**options: object) -> list[Trace]:
    """The default story: static beside continuous."""
    return [make_trace(policy, **options) for policy in (Policy.STATIC, Policy.CONTINUOUS)]  # type: ignore[arg-type]
