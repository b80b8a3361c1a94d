"""The attention mask and the padding of a step, against the plan that the real runner makes of the same step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.batch_picture import attention_mask, padding
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy


def new_session(prompts: list[int], policy: Policy = Policy.CONTINUOUS) -> DebugSession:
    requests = tuple(
        ScenarioRequest(f"r{i}", 2 + i % 3, prompt_tokens=length, output_tokens=2 + i % 3)
        for i, length in enumerate(prompts)
    )
    return DebugSession(ScriptedStart(Scenario("s", "S", requests), 256), make_config(policy, 3, 256))


def test_a_prompt_is_a_staircase_and_a_decoding_token_a_line() -> None:
    session = new_session([3, 2])
    first = session.step()
    assert [(one.row, one.start, one.end) for one in attention_mask(session.trace, first)] == [
        (0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 3, 4), (4, 3, 5),
    ]  # fmt: skip
    assert padding(first) == (2, 5, 6, 5, 6)
    second = session.step()
    assert [(one.start, one.end) for one in attention_mask(session.trace, second)] == [(0, 4), (4, 7)]
    assert padding(second) == (2, 2, 2, 7, 8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.sampled_from([Policy.STATIC, Policy.CONTINUOUS]))
def test_nobody_looks_at_the_keys_of_another(prompts: list[int], policy: Policy) -> None:
    session = new_session(prompts, policy)
    while session.has_more:
        facts = session.step()
        mask = attention_mask(session.trace, facts)
        assert len(mask) == facts.snapshot.num_rows
        by_slot: dict[int, set[int]] = {}
        for one in mask:
            by_slot.setdefault(one.slot, set()).update(range(one.start, one.end))
        assert sum(map(len, by_slot.values())) == len(set().union(*by_slot.values())) if by_slot else True
        assert {slot: len(keys) for slot, keys in by_slot.items()} == {slot: facts.kv_used[slot] for slot in by_slot}
        counted = padding(facts)
        assert counted.rows <= counted.padded_rows
        assert counted.keys <= counted.padded_keys
