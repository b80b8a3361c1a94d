"""The player's pure modules, run by node: the clock's rules, and the model's answers held against the trace."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from batchviz.playback import playback
from batchviz.player_assets import FOLDER
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, TraceStatus
from tests.story import make_trace, story

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not here; the browser tests cover the same"
)


def run(body: str, given: Any = None) -> Any:
    """What `body` returns, with the clock, the model and `given` in scope."""
    script = f"""
    import * as clocks from {json.dumps((FOLDER / "clock.js").as_uri())};
    import * as models from {json.dumps((FOLDER / "model.js").as_uri())};
    import {{ readFileSync }} from "node:fs";
    const given = JSON.parse(readFileSync(0, "utf8"));
    const result = (() => {{ {body} }})();
    console.log(JSON.stringify(result));
    """
    done = subprocess.run(
        ["node", "--no-warnings", "--input-type=module", "-e", script],
        input=json.dumps(given), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_second_is_four_steps_and_the_end_stops_it() -> None:
    body = """
    const c = clocks.newClock(10); clocks.play(c);
    for (let i = 0; i < 10; i++) clocks.advance(c, 0.1);
    const after = c.position;
    for (let i = 0; i < 100; i++) clocks.advance(c, 0.1);
    return [after, c.position, c.playing];
    """
    after, end, playing = run(body)
    assert after == pytest.approx(4)
    assert (end, playing) == (10, False)


def test_speed_changes_the_rate_and_never_the_place() -> None:
    body = """
    const c = clocks.newClock(1000); clocks.seek(c, 48.5); clocks.play(c);
    const places = clocks.SPEEDS.map((speed) => { clocks.setSpeed(c, speed); return c.position; });
    clocks.setSpeed(c, 16); clocks.advance(c, 0.1);
    const fast = c.position; clocks.setSpeed(c, 3);
    return [places, fast, c.speed];
    """
    places, fast, speed = run(body)
    assert set(places) == {48.5}
    assert fast == pytest.approx(48.5 + 6.4)
    assert speed == 16


def test_a_tab_that_slept_does_not_leap() -> None:
    assert run("const c = clocks.newClock(1e6); clocks.play(c); clocks.advance(c, 3600); return c.position;") == 1


def test_who_follows_a_live_run_stays_at_its_edge_and_who_looks_back_is_left_alone() -> None:
    body = """
    const c = clocks.newClock(30); c.live = true; clocks.seek(c, 30); c.playing = true;
    clocks.setExtent(c, 60, 60, true);
    for (let i = 0; i < 40; i++) clocks.advance(c, 0.05);
    const followed = c.position;
    clocks.seek(c, 10); clocks.pause(c);
    clocks.setExtent(c, 90, 90, true); clocks.advance(c, 1);
    return [followed, c.position];
    """
    followed, left_alone = run(body)
    assert followed > 59
    assert left_alone == 10


def test_when_the_next_policys_run_begins_a_follower_starts_again_with_it() -> None:
    body = """
    const c = clocks.newClock(319); c.live = true; clocks.seek(c, 319); c.playing = true;
    clocks.setExtent(c, 319, 4, true);
    return [c.position, c.following];
    """
    assert run(body) == [4, True]


def test_play_at_the_end_starts_again() -> None:
    assert run("const c = clocks.newClock(9); clocks.seek(c, 9); clocks.play(c); return [c.position, c.playing];") == [
        0,
        True,
    ]


def test_stops_are_found_in_both_directions() -> None:
    body = "return [[2,5,9],5].length && [clocks.nextStop([2,5,9],5,1), clocks.nextStop([2,5,9],5,-1), clocks.nextStop([2],2,1)];"
    assert run(body) == [9, 2, None]


@pytest.mark.parametrize("policy", list(Policy))
def test_the_model_answers_what_the_trace_says(policy: Policy) -> None:
    trace = make_trace(policy, 3, arrivals=[0, 0, 4, 4, 4, 9, 30, 31], aborts={5: "banana", 12: "rome"})
    body = """
    const model = models.readPayload(given); const pane = model.panes[0]; const steps = [];
    for (let step = 0; step < pane.numSteps; step++) steps.push({
      slots: pane.slots.map((_, slot) => { const s = models.spanAt(pane, slot, step);
        return s ? [models.PHASE_NAMES[s.phase], model.requests[s.request].id] : ["empty", null]; }),
      waiting: models.waitingAt(pane, step).map((r) => model.requests[r].id),
      tokens: model.requests.map((r) => models.tokensBy(pane, r.index, step)),
      totals: pane.totals.map((phase) => phase[step]), all: pane.tokenTotals[step],
      answers: models.answersAt(pane, step),
    });
    return steps;
    """
    payload = playback([trace])
    ids = payload["requests"]["id"]
    counts = dict.fromkeys(SlotPhase, 0)
    tokens = dict.fromkeys(ids, 0)
    delivered: set[str] = set()
    for snapshot, told in zip(trace.steps, run(body, payload), strict=True):
        for slot in snapshot.slots:
            counts[slot.phase] += 1
            if slot.token_id is not None and slot.request_id is not None:
                tokens[slot.request_id] += 1
        delivered |= set(snapshot.delivered)
        assert told["slots"] == [[slot.phase.value, slot.request_id] for slot in snapshot.slots]
        assert told["waiting"] == [request_id for request_id, _ in trace.waiting(snapshot.step)]
        assert told["tokens"] == [tokens[request_id] for request_id in ids]
        phases = (SlotPhase.PREFILL, SlotPhase.DECODE, SlotPhase.HELD, SlotPhase.STALLED)
        assert told["totals"][1:] == [counts[phase] for phase in phases]
        assert told["all"] == sum(tokens.values())
        assert {ids[request] for request in told["answers"]["delivered"]} == delivered


def test_the_edge_of_runs_that_go_on_together_is_that_of_the_one_ahead() -> None:
    unfinished = [replace(trace, status=TraceStatus.UNFINISHED) for trace in story()]
    steps = [len(trace.steps) for trace in unfinished]
    body = "const model = models.readPayload(given); return [model.edgeStep, model.edgeSeconds];"
    edge, seconds = run(body, playback(unfinished, live=True))
    assert steps[0] > steps[1]
    assert edge == steps[0] - 1
    assert seconds == pytest.approx(max(trace.duration_s for trace in unfinished), abs=1e-3)


def test_the_edge_of_runs_one_after_the_other_is_that_of_the_one_that_runs() -> None:
    done, begun = story()
    begun = replace(begun, steps=begun.steps[:7], status=TraceStatus.UNFINISHED)
    body = "return models.readPayload(given).edgeStep;"
    assert run(body, playback([done, begun], live=True)) == 6
