"""Why a step went as it did: every decision with its reason, and the packed batch row by row, from a trace alone.

Owns: the sentences of `decisions` and `why`, and PackedRow. Must not know: engines, schedulers' code, terminals, pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from batchviz.ledger import Facts
from batchviz.prefill import PrefillMode
from batchviz.request import FinishReason
from batchviz.scenario import joined_names
from batchviz.scheduler import Policy, WaitReason
from batchviz.trace import RunConfig, SlotPhase, SlotSnapshot, StepSnapshot, Trace, TracedRequest

MAX_NAMED = 20  # of those who wait
END_WORDS = MappingProxyType(
    {
        FinishReason.STOP: "it sampled an end token",
        FinishReason.LENGTH: "it has all the tokens it may have",
        FinishReason.ERROR: "no token could be computed for it",
        FinishReason.ABORT: "its user left",
        FinishReason.REJECTED: "no slot could ever hold it",
    }
)


class PackedRow(NamedTuple):
    """One row of the packed batch, as every linear layer sees it."""

    row: int
    slot: int
    request_id: str
    phase: SlotPhase
    position: int  # in its sequence
    token_id: int | None  # fed; None where only lengths are known
    text: str | None  # what it showed when it was sampled; None for prompt tokens
    is_sampled: bool  # a token is sampled after this row


def packed_rows(trace: Trace, step: int) -> list[PackedRow]:
    """The step's batch: one row for every decoding slot, in slot order, then the prompts, one after the other."""
    shown = [(number, slot) for number, slot in enumerate(trace.steps[step].slots) if slot.num_tokens]
    ordered = [pair for pair in shown if pair[1].phase is SlotPhase.DECODE]
    ordered += [pair for pair in shown if pair[1].phase is SlotPhase.PREFILL]
    prompts = {request.id: request.prompt_token_ids for request in trace.scenario.requests}
    rows: list[PackedRow] = []
    for number, slot in ordered:
        request_id = slot.request_id or ""
        ids = prompts.get(request_id)
        for offset in range(slot.num_tokens):
            position = slot.position + offset
            token_id, text = ids[position] if ids is not None and position < len(ids) else None, None
            if slot.phase is SlotPhase.DECODE:
                token_id, text = _last_sampled(trace, request_id, step)
            last = offset == slot.num_tokens - 1 and slot.token_id is not None
            rows.append(PackedRow(len(rows), number, request_id, slot.phase, position, token_id, text, last))
    return rows


def decisions(trace: Trace, facts: Facts) -> Iterator[str]:
    """What was decided in a step, in the order in which a step decides it."""
    snapshot, config = facts.snapshot, trace.config_at(facts.snapshot.step)
    for rejection in snapshot.rejected:
        yield f"{rejection.request_id} was rejected: it {rejection.why}"
    if snapshot.arrived:
        yield f"{joined_names(snapshot.arrived)} arrived and joined the queue"
    for request_id in snapshot.aborted:
        yield f"{request_id} was aborted: its user left"
    yield f"may the first in the queue sit down? {_may_admit(config, facts)}"
    for admission in snapshot.admitted:
        yield f"{admission.request_id} was admitted to slot {admission.slot}: first in the queue, lowest free slot"
    for request_id in islice(facts.waiting_since, MAX_NAMED):
        yield why(trace, facts, request_id)
    if facts.num_waiting > MAX_NAMED:
        yield f"{facts.num_waiting - MAX_NAMED:,} more wait behind them: first come, first served"
    for slot, shown in enumerate(snapshot.slots):
        if shown.request_id is not None:
            yield f"slot {slot}: {_seated(trace, config, facts, shown)}"
    yield f"may the finished leave their slots? {_may_release(config, snapshot)}"
    if snapshot.delivered:
        yield f"{joined_names(snapshot.delivered)} delivered: the user has the answer"


def why(trace: Trace, facts: Facts, request_id: str) -> str:
    """Where a request stands at the end of a step, and why. Raises KeyError for one that the scenario does not have."""
    request = _request(trace, request_id)
    snapshot, config = facts.snapshot, trace.config_at(facts.snapshot.step)
    if request_id in facts.waiting_since:
        waited = facts.waited(request_id)
        return f"{request_id} waits (step {waited} of its wait): {why_waits(trace, facts, request_id)}"
    for slot, shown in enumerate(snapshot.slots):
        if shown.request_id == request_id:
            return f"{request_id} sits in slot {slot}: {_seated(trace, config, facts, shown)}"
    past = trace.steps[: snapshot.step + 1]
    for step in past:
        if request_id in [rejection.request_id for rejection in step.rejected]:
            return f"{request_id} was rejected in step {step.step}"
        if request_id in step.delivered:
            return f"{request_id} is done: delivered in step {step.step}"
        if request_id in step.aborted:
            return f"{request_id} is gone: aborted in step {step.step}"
    if any(request_id in step.arrived for step in past):
        return f"{request_id} has ended without an answer"
    return f"{request_id} has not arrived yet; it comes at {trace.scenario.arrival_unit} {request.arrival:g}"


def _may_admit(config: RunConfig, facts: Facts) -> str:
    snapshot = facts.snapshot
    admitted = f"yes, {len(snapshot.admitted)} of them did; " if snapshot.admitted else ""
    if snapshot.head_reason is None:
        return f"{admitted}now nobody waits"
    return (
        f"{admitted}no longer: {WAIT_WORDS[snapshot.head_reason]}" if admitted else f"no: {_reason_here(config, facts)}"
    )


def _reason_here(config: RunConfig, facts: Facts) -> str:
    reason = facts.snapshot.head_reason or WaitReason.BEHIND_HEAD
    if reason is WaitReason.GROUP_RUNNING:
        running = _unfinished(facts.snapshot)
        ended = [slot for slot in facts.snapshot.slots if slot.phase is SlotPhase.HELD]
        still = (
            f"{joined_names(running)} of it {'is' if len(running) == 1 else 'are'} not finished"
            if running
            else "it ends now"
        )
        return f"{WAIT_WORDS[reason]}; {still}" + (
            f", {len(ended)} of its slots {'is' if len(ended) == 1 else 'are'} held" if ended else ""
        )
    if reason is WaitReason.KV_CAPACITY:
        return f"{WAIT_WORDS[reason]} of {config.kv_budget_tokens:,}"
    if reason is WaitReason.TOKEN_BUDGET:
        return f"{WAIT_WORDS[reason]} of {config.max_batched_tokens:,}"
    return WAIT_WORDS[reason]


def why_waits(trace: Trace, facts: Facts, request_id: str) -> str:
    """The reason alone, for a request that waits at the end of the step."""
    request, config = _request(trace, request_id), trace.config_at(facts.snapshot.step)
    queue = list(facts.waiting_since)
    place = queue.index(request_id)
    if place:
        return f"first come, first served, and {queue[0]} is first; {place} before it"
    if facts.snapshot.head_reason is WaitReason.KV_CAPACITY:
        need = request.num_reserved_tokens
        seated = [slot.request_id for slot in facts.snapshot.slots if slot.request_id is not None]
        reserved = sum(_request(trace, request_id).num_reserved_tokens for request_id in seated)
        return f"{_reason_here(config, facts)}: it needs {need:,}, and {reserved:,} are reserved"
    return _reason_here(config, facts)


def _seated(trace: Trace, config: RunConfig, facts: Facts, slot: SlotSnapshot) -> str:
    request = _request(trace, slot.request_id or "")
    output = facts.num_output.get(request.id, 0)
    finish = next((one for one in facts.snapshot.finished if one.request_id == request.id), None)
    if slot.phase is SlotPhase.HELD:
        return f"{request.id} has ended and holds it, since {_may_release(config, facts.snapshot).removeprefix('no: ')}"
    if slot.phase is SlotPhase.STALLED:
        rule = (
            "a prompt is read, and nobody decodes beside it"
            if config.prefill is PrefillMode.EXCLUSIVE
            else ("the step's token budget went to those before it")
        )
        return f"{request.id} is stalled: {rule}"
    if slot.phase is SlotPhase.PREFILL:
        read = slot.position + slot.num_tokens
        work = f"{request.id} reads its prompt, {read:,} of {request.num_prompt_tokens:,} tokens so far"
    else:
        work = f"{request.id} decodes, position {slot.position:,}"
    if finish is not None:
        return f"{work}; it ends with {output:,} tokens, since {END_WORDS[finish.reason]}"
    if slot.token_id is None:
        return f"{work}; it goes on, since its prompt is not all read"
    return (
        f"{work}; it goes on, since it has {output:,} of at most {request.max_output_tokens:,} tokens and no end token"
    )


def _may_release(config: RunConfig, snapshot: StepSnapshot) -> str:
    if config.policy is Policy.CONTINUOUS:
        return "yes, always: continuous batching frees a slot at once"
    running = _unfinished(snapshot)
    if running:
        return f"no: the group leaves together, and {joined_names(running)} {'is' if len(running) == 1 else 'are'} not finished"
    return "yes: the whole group is finished" if any(slot.request_id for slot in snapshot.slots) else "yes: nobody sits"


def _unfinished(snapshot: StepSnapshot) -> list[str]:
    """Who of those seated goes on after this step."""
    ended = {finish.request_id for finish in snapshot.finished}
    seated = [slot.request_id for slot in snapshot.slots if slot.request_id and slot.phase is not SlotPhase.HELD]
    return [request_id for request_id in seated if request_id not in ended]


def _last_sampled(trace: Trace, request_id: str, step: int) -> tuple[int | None, str | None]:
    """The token that a decoding slot feeds: the one it sampled last before this step."""
    for snapshot in reversed(trace.steps[:step]):
        for slot in snapshot.slots:
            if slot.request_id == request_id and slot.token_id is not None:
                scripted = slot.text is None
                return (None, None) if scripted else (slot.token_id, slot.text)
    return None, None


def _request(trace: Trace, request_id: str) -> TracedRequest:
    return next(_matching(trace, request_id))


def _matching(trace: Trace, request_id: str) -> Iterator[TracedRequest]:
    yield from (request for request in trace.scenario.requests if request.id == request_id)
    raise KeyError(f"no request has the id {request_id!r}")


WAIT_WORDS = MappingProxyType(
    {
        WaitReason.NO_FREE_SLOT: "every slot is occupied",
        WaitReason.GROUP_RUNNING: "static batching admits nobody while the group in the slots runs",
        WaitReason.GROUP_FILLING: "the next group is not full and its time-out is not over",
        WaitReason.TOKEN_BUDGET: "those seated use up the step's token budget",
        WaitReason.KV_CAPACITY: "there is no room in the KV budget",
        WaitReason.BEHIND_HEAD: "it is not first",
    }
)
