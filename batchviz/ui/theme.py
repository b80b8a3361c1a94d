"""Every colour that Python draws with, and the page's margins. The player's own colours are in assets/player/*.css.

Owns: colours, margins and the words for phases. Must not know: streamlit, charts, traces' contents. Okabe and Ito's palette,
chosen to be told apart with any colour vision; colour is never the only sign.
"""

from __future__ import annotations

from types import MappingProxyType

PAGE_PADDING = "3.6rem clamp(1rem, 5.7vw, 5rem) 3rem"  # rem, as CSS: narrower than Streamlit's on a phone
WIDE_PADDING = "3.6rem clamp(1rem, 2.6vw, 3.5rem) 3rem"  # for words and two runs beside each other
WAITING = "#9AA5B1"
PREFILL = "#56B4E9"
DECODE = "#0072B2"
WITHHELD = "#E69F00"
STALLED = "#CC79A7"
EMPTY = "#9AA5B155"  # see-through: it is what is not there

# What a request's bar in the Gantt chart shows, in the order of its life.
STAGE_COLOURS = MappingProxyType(
    {
        "waiting in the queue": WAITING,
        "prefill": PREFILL,
        "decode": DECODE,
        "finished, answer withheld": WITHHELD,
    }
)
PHASE_COLOURS = MappingProxyType(
    {
        "prefill": PREFILL,
        "decode": DECODE,
        "stalled": STALLED,
        "held, answer finished": WITHHELD,
        "empty": EMPTY,
    }
)
KV_COLOURS = MappingProxyType({"used": DECODE, "reserved and unused": EMPTY})
CURSOR = "#D55E00"
POLICY_COLOURS = MappingProxyType({"left": WITHHELD, "middle": PREFILL, "right": DECODE})
# Requests, as in the player (assets/player/colours.css), in the order of the scenario; a test holds the two together.
REQUEST_COLOURS = (
    "#0072b2", "#e69f00", "#00805c", "#cc79a7", "#56b4e9", "#c25100", "#7a5ea8", "#d9c52b", "#8a5a3c", "#66761c",
)  # fmt: skip


def page_style(padding: str = PAGE_PADDING, more: str = "") -> str:
    """The page's margins, words that everybody can read, and what else a page wants, as an element for `st.html`."""
    legible = (
        "[data-testid='stCaptionContainer']{color:inherit;opacity:0.85}"
        "[data-variant][data-selected='true']{color:inherit!important}"
    )
    return f"<style>.stMainBlockContainer{{padding:{padding}}}{legible}{more}</style>"
