"""One run's side of the story: what a step did, in phrases that do not claim what the trace does not hold.

Owns: PaneStory, which answers "what just happened here?" and "what about that request meanwhile?".
Must not know: the other runs, payloads, browsers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from batchviz.pace import LongStep
from batchviz.phrases import Phrase, count, listed
from batchviz.scheduler import Policy, WaitReason
from batchviz.timeline import Life, Timeline, shorten
from batchviz.trace import SlotPhase

WAITS: Mapping[WaitReason, str] = MappingProxyType(
    {
        WaitReason.NO_FREE_SLOT: "no free slot",
        WaitReason.GROUP_RUNNING: "group running",
        WaitReason.GROUP_FILLING: "group not full yet",
        WaitReason.TOKEN_BUDGET: "token budget spent",
        WaitReason.KV_CAPACITY: "no KV space",
        WaitReason.BEHIND_HEAD: "behind the one before it",
    }
)
MAX_QUOTE = 36


class PaneStory:
    """Phrases about one run. Requests are indices into `order`, shared by all runs of the story."""

    def __init__(self, timeline: Timeline, label: str, order: Mapping[str, int]) -> None:
        self.label = label
        self.policy = timeline.trace.config.policy
        self.num_steps = timeline.num_steps
        self.is_complete = timeline.is_complete
        self._snapshots = timeline.trace.steps
        self._order = order
        self._life: dict[int, Life] = {order[request_id]: life for request_id, life in timeline.lives.items()}
        self._held: dict[int, int] = {}  # request -> how long its slot was held, where the trace holds the end of it
        self.num_held = 0
        for span in timeline.spans:
            if span.phase is SlotPhase.HELD:
                self.num_held += span.last - span.first + 1
                if self.is_complete or span.last < self.num_steps - 1:
                    self._held[order[span.request_id]] = span.last - span.first + 1
        self.num_slot_steps = timeline.trace.config.num_slots * self.num_steps
        self._long = {slow.step: slow for slow in timeline.long_steps}
        self._by_step: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for index, life in sorted(self._life.items()):
            for kind in ("arrived", "rejected", "aborted", "admitted", "finished", "delivered"):
                step = getattr(life, kind)
                if step is not None:
                    self._by_step[kind][step].append(index)

    @property
    def steps(self) -> list[int]:
        """The steps at which there is something to tell: the first, the last, every event, every long one."""
        happened = {step for by_step in self._by_step.values() for step in by_step} | self._long.keys()
        return sorted(happened | ({0, self.num_steps - 1} if self.num_steps else {0}))

    @property
    def mean_wait(self) -> float | None:
        """Mean of delivered − arrived + 1 over the delivered, in steps; None if nobody got an answer."""
        waits = [
            life.delivered - life.arrived + 1
            for life in self._life.values()
            if life.delivered is not None and life.arrived is not None
        ]
        return sum(waits) / len(waits) if waits else None

    def weight(self, step: int) -> int:
        """3 for a turn of the story, 2 for an answer finished, 1 for a detail, 0 if nothing happened here."""
        finishes = self._by_step["finished"]
        if step == self.num_steps - 1 or (finishes and step == min(finishes)):
            return 3
        if self._is_group_policy and self._at("delivered", step):
            return 3
        if step in self._long or any(self._at(kind, step) for kind in ("finished", "aborted", "rejected")):
            return 2
        return 1 if self._at("admitted", step) or self._at("arrived", step) or step == 0 else 0

    def finished_at(self, step: int) -> list[int]:
        return self._at("finished", step)

    def admitted_at(self, step: int) -> list[int]:
        return self._at("admitted", step)

    def queue_at(self, step: int) -> list[int]:
        return [index for index, life in self._life.items() if self._waits(life, step)]

    def topic(self, step: int) -> list[int]:
        """Whom this step is about."""
        for kind in ("finished", "aborted", "admitted", "rejected", "arrived"):
            if happened := self._at(kind, step):
                return happened
        return []

    def seating(self, subject: str) -> Phrase:
        """Step 0. `subject` is "Static seats", "Both seat"."""
        seated, waiting = self.admitted_at(0), self.queue_at(0)
        if not seated:
            return (f"{subject} nobody yet.",)
        phrase: Phrase = (f"{subject} ", *listed(seated))
        if waiting:
            return (*phrase, "; ", *listed(waiting), _verb(waiting, " waits", " wait"), " in the queue.")
        return (*phrase, "; nobody has to wait for a slot.")

    def who_finished(self, indices: Sequence[int]) -> Phrase:
        """A is finished after 3 tokens: “No.”"""
        if len(indices) > 1:
            return (*listed(indices), " are finished.")
        life = self._life[indices[0]]
        tokens = count(len(life.token_steps), "token")
        if life.reason == "error":
            return (indices[0], f" ended with an error after {tokens}.")
        text = shorten(life.text, MAX_QUOTE)
        return (indices[0], f" is finished after {tokens}: “{text}”" if text else f" is finished after {tokens}.")

    def tell(self, step: int, already_told: Collection[int] = ()) -> list[Phrase]:
        """What this step did here, the main thing first. Requests in `already_told` were said to be finished."""
        phrases: list[Phrase] = []
        if step == 0:
            phrases.append(self.seating(f"{self.label} seats"))
        done = self._at("finished", step)
        if done:
            new = [index for index in done if index not in already_told]
            phrases += self._tell_group(step, done, new) if self._is_group_policy else self._tell_freed(step, done, new)
        phrases += self._tell_departures(step)
        if not done and step > 0 and (seated := self.admitted_at(step)):
            phrases.append(self._tell_seated(step, seated))
        if not phrases and step > 0 and (arrived := self._at("arrived", step)):
            phrases.append(
                (
                    *listed(arrived),
                    _verb(arrived, " arrives and waits: ", " arrive and wait: "),
                    self._why(step, arrived[0]),
                    ".",
                )
            )
        stalled = self._stalled_at(step) if self.admitted_at(step) else []
        if stalled:
            phrases.append((*listed(stalled), _verb(stalled, " is", " are"), " stalled while prompts are read."))
        if step in self._long:
            phrases.append(_tell_long(self._long[step]))
        if step == self.num_steps - 1 and self.is_complete:
            phrases.append((f"This run is over after {count(self.num_steps, 'step')}.",))
        return phrases[:1] + [_capital(phrase) for phrase in phrases[1:]]

    def meanwhile(self, step: int, topic: Sequence[int]) -> list[Phrase]:
        """How the first of these requests fares here, in a step that did nothing to it."""
        index = topic[0]
        life = self._life.get(index)
        if step >= self.num_steps:
            return [(f"over since step {self.num_steps - 1}.",)] if self.is_complete else []
        if life is None or life.arrived is None or life.arrived > step:
            return []
        if life.delivered is not None and life.delivered <= step:
            return [(index, f" was delivered at step {life.delivered}.")]
        if self._waits(life, step):
            return [(index, f" still waits in the queue: {self._why(step, index)}.")]
        if life.last_step is not None and life.last_step <= step:
            return [(index, f" was finished at step {life.last_step}, and its answer is still withheld.")]
        return [(index, " is still being written.")] if life.admitted is not None else []

    @property
    def _is_group_policy(self) -> bool:
        return self.policy is not Policy.CONTINUOUS

    def _at(self, kind: str, step: int) -> list[int]:
        return self._by_step[kind].get(step, [])

    def _waits(self, life: Life, step: int) -> bool:
        gone = min((at for at in (life.admitted, life.aborted) if at is not None), default=self.num_steps)
        return life.arrived is not None and life.arrived <= step < gone

    def _why(self, step: int, index: int) -> str:
        snapshot = self._snapshots[step]
        if snapshot.head is not None and snapshot.head_reason is not None and self._order[snapshot.head] == index:
            return WAITS.get(snapshot.head_reason, snapshot.head_reason.value.replace("_", " "))
        return WAITS[WaitReason.BEHIND_HEAD]

    def _tell_freed(self, step: int, done: Sequence[int], new: Sequence[int]) -> list[Phrase]:
        """Continuous: delivered at once, and the slot is filled in the very next step if anybody waits."""
        subject: Phrase = (*listed(new), _verb(new, " is", " are"), " finished and ") if new else ()
        freed = {self._life[index].slot for index in done}
        followers = [index for index in self.admitted_at(step + 1) if self._life[index].slot in freed]
        core: Phrase = (*subject, "delivered at once")
        if followers:
            slide = _verb(followers, " slides into the freed slot", " slide into the freed slots")
            return [(*core, "; ", *listed(followers), slide, " at the next step.")]
        if step < self.num_steps and self._snapshots[step].num_waiting == 0:
            return [(*core, "; nobody waits, so ", _verb(done, "its slot stays", "their slots stay"), " empty.")]
        return [(*core, ".")]

    def _tell_group(self, step: int, done: Sequence[int], new: Sequence[int]) -> list[Phrase]:
        """Static and sequential: held until the group's last member is finished, then all at once."""
        delivered = self._at("delivered", step)
        subject: Phrase = (*listed(new), _verb(new, " is", " are"), " finished; ") if new else ()
        if delivered:
            followers = self.admitted_at(step + 1)
            if self.policy is Policy.SEQUENTIAL:
                core: Phrase = (*subject, "delivered")
                return [
                    (*core, "; ", followers[0], " takes the only slot at the next step.") if followers else (*core, ".")
                ]
            phrases: list[Phrase] = [
                (
                    "the group ends: ",
                    *listed(delivered),
                    _verb(delivered, " is", " are"),
                    " delivered",
                    _verb(delivered, ".", " together."),
                )
            ]
            longest = max(delivered, key=lambda index: step - (self._life[index].finished or 0))
            withheld = step - (self._life[longest].finished or 0)
            if withheld:
                phrases.append(("The answer of ", longest, f" had been withheld for {count(withheld, 'step')}."))
            if followers:
                phrases.append(
                    (*listed(followers), _verb(followers, " takes a slot", " take the slots"), " at the next step.")
                )
            return phrases
        held = [self._held.get(index) for index in done]
        slot = _verb(done, "its slot is held, unused,", "their slots are held, unused,")
        answer = _verb(done, "its answer is", "their answers are")
        last = self._last_of_group(done[0])
        until: Phrase = (" until ", last, " is finished.") if last is not None else (" until the group ends.",)
        if held[0] is None:
            return [(*subject, f"{slot} and {answer} withheld", *until)]
        return [(*subject, f"{slot} for {count(held[0], 'more step')}; {answer} withheld", *until)]

    def _last_of_group(self, index: int) -> int | None:
        """Whose end ends the group; None while the trace does not say."""
        life = self._life[index]
        together = [
            other
            for other, theirs in self._life.items()
            if life.delivered is not None and theirs.delivered == life.delivered == theirs.finished
        ]
        return together[0] if together else None

    def _tell_departures(self, step: int) -> list[Phrase]:
        phrases: list[Phrase] = []
        for index in self._at("rejected", step):
            phrases.append((index, f" is rejected: {shorten(self._life[index].why, 110)}."))
        for index in self._at("aborted", step):
            life = self._life[index]
            was_seated = life.admitted is not None and life.admitted < step
            if not was_seated:
                phrases.append(("the user of ", index, " left; it leaves the queue."))
            elif self._is_group_policy and self._slot_held_at(index, step):
                phrases.append(("the user of ", index, " left; its slot stays held until the group ends."))
            else:
                phrases.append(("the user of ", index, " left; its slot is free at once."))
        return phrases

    def _stalled_at(self, step: int) -> list[int]:
        slots = self._snapshots[step].slots
        return [
            self._order[slot.request_id]
            for slot in slots
            if slot.phase is SlotPhase.STALLED and slot.request_id is not None
        ]

    def _slot_held_at(self, index: int, step: int) -> bool:
        slot = self._life[index].slot
        return slot is not None and self._snapshots[step].slots[slot].phase is SlotPhase.HELD

    def _tell_seated(self, step: int, seated: Sequence[int]) -> Phrase:
        if self._is_group_policy and self.policy is not Policy.SEQUENTIAL:
            return ("a new group starts: ", *listed(seated), ".")
        slot = self._life[seated[0]].slot
        place = f"slot {slot}" if len(seated) == 1 else f"{len(seated)} slots"
        just_freed = any(self._life[index].finished == step - 1 for index in self._life)
        freed = _verb(seated, ", freed one step ago", " freed one step ago") if just_freed else ""
        return (*listed(seated), _verb(seated, " now sits in ", " now sit in "), place, freed, ".")


def _tell_long(slow: LongStep) -> Phrase:
    read = f": {count(slow.num_prompt_tokens, 'prompt token')} were read in it" if slow.num_prompt_tokens > 1 else ""
    return (f"this step took {slow.duration_s:.2f} s, {slow.times_usual:.0f} times the usual{read}.",)


def _capital(phrase: Phrase) -> Phrase:
    first = phrase[0]
    return (first[:1].upper() + first[1:], *phrase[1:]) if isinstance(first, str) else phrase


def _verb(subjects: Sequence[object], one: str, many: str) -> str:
    return one if len(subjects) == 1 else many
