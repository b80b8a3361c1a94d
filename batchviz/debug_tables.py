"""How a debugging session looks in a terminal: slots, queue, batch, cache, candidates, as tables.

Owns: the tables and what each phase shows. Must not know: commands, how a step is made. Text from models and prompts is
shown as it is: control characters are taken out, and nothing of it is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType

from rich.table import Table
from rich.text import Text

from batchviz import explain
from batchviz.debugger import DebugSession, Phase
from batchviz.scenario import shown_text
from batchviz.trace import SlotPhase

COLOURS = MappingProxyType(
    {
        SlotPhase.PREFILL: "cyan",
        SlotPhase.DECODE: "green",
        SlotPhase.HELD: "red",
        SlotPhase.STALLED: "yellow",
        SlotPhase.EMPTY: "dim",
    }
)
MAX_ROWS = 40


def heading(session: DebugSession) -> str:
    """One line: where we are."""
    snapshot = session.facts().snapshot
    config = session.trace.config_at(snapshot.step)
    done = "" if session.phase is Phase.RELEASE else f" · after {session.phase}"
    last = "" if session.is_at_end else f" (of 0–{session.num_steps - 1}, history)"
    over = "" if session.has_more else " · the run is over"
    return (
        f"step {snapshot.step}{last}{done} · {config.policy}, {len(snapshot.slots)} slots · "
        f"{snapshot.num_rows} rows · {session.facts().num_waiting} wait{over}"
    )


def slots_table(session: DebugSession) -> Table:
    facts = session.facts()
    table = _table("slot", "phase", "request", "fed", "from position", "KV used", "tokens so far", "sampled")
    for number, slot in enumerate(facts.snapshot.slots):
        output = facts.num_output.get(slot.request_id or "", 0)
        sampled = "" if slot.token_id is None else _token(slot.token_id, slot.text)
        table.add_row(
            str(number),
            Text(slot.phase, COLOURS[slot.phase]),
            *_plain(slot.request_id or "–"),
            *([str(slot.num_tokens), str(slot.position)] if slot.num_tokens else ["–", "–"]),
            f"{facts.kv_used[number]:,}",
            f"{output:,}" if slot.request_id else "–",
            Text(sampled),
        )
    return table


def queue_table(session: DebugSession) -> Table:
    facts = session.facts()
    table = _table("place", "request", "waits for", "since step", "why")
    for place, (request_id, since) in enumerate(facts.waiting_since.items()):
        if place == MAX_ROWS:
            table.add_row("…", f"{facts.num_waiting - MAX_ROWS:,} more", "", "", "")
            break
        reason = explain.why_waits(session.trace, facts, request_id)
        table.add_row(str(place), *_plain(request_id), f"{facts.waited(request_id)} steps", str(since), *_plain(reason))
    return table


def batch_table(session: DebugSession) -> Table:
    """The packed batch: what every linear layer sees, a row a token."""
    table = _table("row", "slot", "request", "phase", "position", "token", "sampled after it")
    rows = explain.packed_rows(session.trace, session.facts().snapshot.step)
    for row in rows[:MAX_ROWS]:
        token = "" if row.token_id is None else _token(row.token_id, row.text)
        phase, sampled = Text(row.phase, COLOURS[row.phase]), "yes" if row.is_sampled else ""
        table.add_row(
            str(row.row), str(row.slot), *_plain(row.request_id), phase, str(row.position), Text(token), sampled
        )
    if len(rows) > MAX_ROWS:
        table.add_row("…", "", f"{len(rows) - MAX_ROWS:,} more", "", "", "", "")
    return table


def kv_table(session: DebugSession) -> Table:
    """The cache: what is used of each slot, and what is reserved and empty."""
    facts, trace = session.facts(), session.trace
    capacity = trace.config_at(facts.snapshot.step).slot_capacity
    needs = {one.id: one.num_reserved_tokens for one in trace.scenario.requests}
    table = _table("slot", "request", "used", "reserved", "reserved, unused", "of a slot")
    reserved_in_all = 0
    for number, slot in enumerate(facts.snapshot.slots):
        used, reserved = facts.kv_used[number], needs.get(slot.request_id or "", 0)
        reserved_in_all += reserved
        share = f"{100 * used / capacity:.1f} %"
        table.add_row(
            str(number), *_plain(slot.request_id or "–"), f"{used:,}", f"{reserved:,}", f"{reserved - used:,}", share
        )
    used_in_all = sum(facts.kv_used)
    unused = f"{reserved_in_all - used_in_all:,}"
    table.add_row("all", "", f"{used_in_all:,}", f"{reserved_in_all:,}", unused, "")
    return table


def top_table(session: DebugSession) -> Table | None:
    """The likeliest next tokens of every sampled slot; None where no model runs."""
    seen = session.seen()
    if seen is None:
        return None
    facts = session.facts()
    table = _table("slot", "request", "place", "token", "probability", "chosen")
    for slot, candidates in sorted(seen.likeliest.items()):
        shown = facts.snapshot.slots[slot]
        for place, candidate in enumerate(candidates):
            first = place == 0
            chosen = "←" if candidate.token_id == shown.token_id else ""
            table.add_row(
                str(slot) if first else "",
                *_plain((shown.request_id or "") if first else ""),
                str(place + 1),
                Text(_token(candidate.token_id, candidate.text)),
                f"{100 * candidate.probability:.1f} %",
                chosen,
            )
    return table


def time_line(session: DebugSession) -> str:
    """Where the step's seconds went."""
    snapshot = session.facts().snapshot
    total = snapshot.schedule_s + snapshot.forward_s + snapshot.sample_s
    seen = session.seen()
    parts = [("schedule", snapshot.schedule_s), ("forward", snapshot.forward_s), ("sample", snapshot.sample_s)]
    if seen is not None and seen.linear_s is not None and seen.attention_s is not None:
        parts[2:2] = [("of it linear", seen.linear_s), ("attention", seen.attention_s)]
    said = ", ".join(f"{name} {1000 * seconds:.2f} ms ({_share(seconds, total)})" for name, seconds in parts)
    return f"{said}; {session.trace.origin.seconds}"


def decision_lines(session: DebugSession) -> Iterator[str]:
    yield from explain.decisions(session.trace, session.facts())


def _share(seconds: float, total: float) -> str:
    return f"{100 * seconds / total:.0f} %" if total else "0 %"


def _token(token_id: int, text: str | None) -> str:
    return str(token_id) if text is None else f"{token_id} {shown_text(text)}"


def _plain(*cells: str) -> Iterable[Text]:
    return [Text(shown_text(cell)[1:-1] if not cell.isprintable() else cell) for cell in cells]


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in headings:
        table.add_column(name, overflow="fold")
    return table
