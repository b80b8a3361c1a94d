"""What holds at each step of a run that is still growing: who waits since when, how much of each slot's cache is used.

Owns: Facts, Ledger. Must not know: engines, schedulers, files, pages. It reads snapshots, in order, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from batchviz.trace import SlotPhase, StepSnapshot


class Facts(NamedTuple):
    """At the end of one step."""

    snapshot: StepSnapshot
    waiting_since: Mapping[str, int]  # who waits, in order -> the step of its arrival
    kv_used: tuple[int, ...]  # of each slot: positions whose keys and values are there; 0 where nobody sits
    num_output: Mapping[str, int]  # of everybody who sits: tokens sampled so far
    first_tokens: tuple[str, ...]  # who got its first token in this step

    @property
    def num_waiting(self) -> int:
        return len(self.waiting_since)

    @property
    def has_free_slot(self) -> bool:
        return any(slot.phase is SlotPhase.EMPTY for slot in self.snapshot.slots)

    def waited(self, request_id: str) -> int:
        """Steps that it has waited by the end of this one, this one included; 0 for whoever does not wait."""
        since = self.waiting_since.get(request_id)
        return 0 if since is None else self.snapshot.step - since + 1


class Ledger:
    """The facts of every step so far."""

    def __init__(self) -> None:
        self._facts: list[Facts] = []
        self._queue: dict[str, int] = {}
        self._shown_queue: Mapping[str, int] = MappingProxyType({})  # as it is; made anew only when it changes
        self._computed: dict[str, int] = {}
        self._num_output: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def __getitem__(self, step: int) -> Facts:
        return self._facts[step]

    def append(self, snapshot: StepSnapshot) -> Facts:
        """Takes the next step's snapshot."""
        leaving = (*snapshot.aborted, *(admission.request_id for admission in snapshot.admitted))
        if snapshot.arrived or leaving:
            self._queue.update(dict.fromkeys(snapshot.arrived, snapshot.step))
            for request_id in leaving:
                self._queue.pop(request_id, None)
            self._shown_queue = MappingProxyType(self._queue.copy())
        first_tokens: list[str] = []
        for slot in snapshot.slots:
            if slot.request_id is None:
                continue
            if slot.num_tokens:
                self._computed[slot.request_id] = slot.position + slot.num_tokens
            if slot.token_id is not None:
                so_far = self._num_output.get(slot.request_id, 0)
                self._num_output[slot.request_id] = so_far + 1
                if so_far == 0:
                    first_tokens.append(slot.request_id)
        facts = Facts(
            snapshot=snapshot,
            waiting_since=self._shown_queue,
            kv_used=tuple(self._computed.get(slot.request_id or "", 0) for slot in snapshot.slots),
            num_output=MappingProxyType(
                {
                    slot.request_id: self._num_output.get(slot.request_id, 0)
                    for slot in snapshot.slots
                    if slot.request_id is not None
                }
            ),
            first_tokens=tuple(first_tokens),
        )
        self._facts.append(facts)
        return facts
