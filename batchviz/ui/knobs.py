"""The knobs: which policy in which pane, on how many slots, with which prefill mode and budgets.

Owns: the widgets' keys, and panes to and from them. Must not know: traces, charts, the player. The usual case needs
one row; what differs between panes waits behind a button.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from types import MappingProxyType

import streamlit as st

from batchviz.link import PaneChoice, checked
from batchviz.prefill import PrefillMode
from batchviz.scenario import MAX_SLOTS, MAX_TOKENS_TOGETHER
from batchviz.scheduler import Policy
from batchviz.ui.words import WORDS

SIDES = ("left", "right", "third")
NOTHING = "nothing"  # in the third pane
DEFAULT_BUDGET = 64  # tokens a step, chunked
SETTINGS = "settings"  # bool: whether that button's box is open
GROUP_TIMEOUT = "group_timeout"  # float: not a knob, kept from the scenario or the link
POLICY_WORDS = MappingProxyType(
    {
        Policy.SEQUENTIAL: "sequential: one request at a time",
        Policy.STATIC: "static: a fixed group",
        Policy.CONTINUOUS: "continuous: refill freed slots",
        NOTHING: "nothing: two panes are enough",
    }
)
PREFILL_WORDS = MappingProxyType(
    {
        PrefillMode.MIXED: "mixed: with decoding",
        PrefillMode.EXCLUSIVE: "exclusive: alone",
        PrefillMode.CHUNKED: "chunked: in pieces",
    }
)


def are_set() -> bool:
    """False in a new session, and after another page was shown: Streamlit forgets widgets that are not drawn."""
    return all(side in st.session_state for side in SIDES)


def put_panes(panes: tuple[PaneChoice, ...]) -> None:
    """Turns every knob so that `panes_now()` gives these."""
    counts = Counter(pane.num_slots for pane in panes if pane.policy is not Policy.SEQUENTIAL)
    shared = counts.most_common(1)[0][0] if counts else 1
    st.session_state["slots"] = shared
    st.session_state[GROUP_TIMEOUT] = max((pane.group_timeout for pane in panes), default=0)
    for place, side in enumerate(SIDES):
        pane = panes[place] if place < len(panes) else None
        own = pane is not None and pane.policy is not Policy.SEQUENTIAL and pane.num_slots != shared
        st.session_state[side] = str(pane.policy) if pane is not None else NOTHING
        st.session_state[f"slots_{side}"] = pane.num_slots if pane is not None and own else None
        st.session_state[f"prefill_{side}"] = str(pane.prefill if pane is not None else PrefillMode.MIXED)
        st.session_state[f"budget_{side}"] = (pane.max_batched_tokens if pane else None) or DEFAULT_BUDGET
        st.session_state[f"kv_{side}"] = pane.kv_budget_tokens if pane is not None else None


def panes_now() -> tuple[PaneChoice, ...]:
    """What the knobs say. A token budget that is less than a token a slot is raised to that."""
    now = st.session_state
    panes = []
    for side in SIDES:
        if now[side] == NOTHING:
            continue
        policy, prefill = Policy(now[side]), PrefillMode(now[f"prefill_{side}"])
        slots = 1 if policy is Policy.SEQUENTIAL else int(now[f"slots_{side}"] or now["slots"])
        budget = max(int(now[f"budget_{side}"] or DEFAULT_BUDGET), slots) if prefill is PrefillMode.CHUNKED else None
        kv = now[f"kv_{side}"]
        timeout = float(now[GROUP_TIMEOUT])
        panes.append(checked(PaneChoice(policy, slots, prefill, budget, None if kv is None else int(kv), timeout)))
    return tuple(panes)


def show_knobs(titles: dict[str, str], take_source: Callable[[], None], disabled: bool, fixed: bool) -> None:
    """One row of knobs, and the settings of each pane behind a button. `fixed`: the runs cannot be scheduled anew."""
    columns = st.columns([3, 2.1, 2.1, 1.2, 1.3], vertical_alignment="bottom")
    columns[0].selectbox(
        "Preset",
        list(titles),
        key="preset",
        format_func=lambda key: titles.get(key, key),
        on_change=take_source,
        disabled=disabled,
        help=WORDS["preset"],
    )
    if fixed:
        columns[1].caption("Shown as it was recorded: not all its tokens are there, so it cannot be scheduled anew.")
        return
    for column, side in zip(columns[1:3], SIDES[:2], strict=True):
        column.selectbox(
            side.capitalize(),
            _policies(side),
            key=side,
            format_func=_policy_words,
            disabled=disabled,
            help=f"{WORDS['policy']} {WORDS['static']} {WORDS['continuous']}",
        )
    columns[3].number_input("Slots", 1, MAX_SLOTS, key="slots", disabled=disabled, help=WORDS["slots"])
    box = columns[4].popover(
        "Settings", icon=":material/tune:", width="stretch", disabled=disabled, key=SETTINGS, on_change="rerun"
    )
    if not box.open:
        _keep(("third", *chain(*map(_own_keys, SIDES))))
        return
    with box:
        _show_settings()


def _show_settings() -> None:
    """A third pane, and what each pane has for itself."""
    st.selectbox("Third pane", _policies("third"), key="third", format_func=_policy_words, help=WORDS["policy"])
    for side in SIDES:
        if st.session_state[side] == NOTHING:
            _keep(_own_keys(side))
            continue
        st.markdown(f"**{side.capitalize()}**: {st.session_state[side]}")
        slots, prefill, budget, kv = st.columns(4, vertical_alignment="bottom")
        slots.number_input(
            "Own slots",
            1,
            MAX_SLOTS,
            key=f"slots_{side}",
            placeholder="as above",
            disabled=st.session_state[side] == Policy.SEQUENTIAL,
            help=WORDS["slot"],
        )
        prefill.selectbox(
            "Prefill",
            [str(mode) for mode in PrefillMode],
            key=f"prefill_{side}",
            format_func=lambda mode: PREFILL_WORDS[PrefillMode(mode)],
            help=f"{WORDS['prefill']} {WORDS['exclusive']} {WORDS['chunked']}",
        )
        budget.number_input(
            "Token budget",
            1,
            MAX_TOKENS_TOGETHER,
            key=f"budget_{side}",
            disabled=st.session_state[f"prefill_{side}"] != PrefillMode.CHUNKED,
            help=WORDS["token budget"],
        )
        kv.number_input(
            "KV budget", 1, MAX_TOKENS_TOGETHER, key=f"kv_{side}", placeholder="no limit", help=WORDS["KV budget"]
        )


def _own_keys(side: str) -> tuple[str, ...]:
    return (f"slots_{side}", f"prefill_{side}", f"budget_{side}", f"kv_{side}")


def _keep(keys: Iterable[str]) -> None:
    """What widgets say that are not drawn now is kept from being forgotten."""
    for key in keys:
        st.session_state[key] = st.session_state[key]


def _policies(side: str) -> list[str]:
    policies = [str(policy) for policy in Policy]
    return [NOTHING, *policies] if side == "third" or st.session_state[side] == NOTHING else policies


def _policy_words(policy: str) -> str:
    return POLICY_WORDS[NOTHING if policy == NOTHING else Policy(policy)]
