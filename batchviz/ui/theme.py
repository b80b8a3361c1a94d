"""What the page's charts are drawn in, and the page's margins. The colours themselves are in colours.py.

Owns: margins, and which colour stands for which word. Must not know: streamlit, charts, traces' contents.
"""

from __future__ import annotations

from types import MappingProxyType

from batchviz.colours import DECODE, EMPTY, PREFILL, STALLED, WAITING, WITHHELD

PAGE_PADDING = "3.6rem clamp(1rem, 5.7vw, 5rem) 3rem"  # rem, as CSS: narrower than Streamlit's on a phone
WIDE_PADDING = "3.6rem clamp(1rem, 2.6vw, 3.5rem) 3rem"  # for words and two runs beside each other

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
POLICY_COLOURS = MappingProxyType({"left": WITHHELD, "middle": PREFILL, "right": DECODE})


def page_style(padding: str = PAGE_PADDING, more: str = "") -> str:
    """The page's margins, words that everybody can read, and what else a page wants, as an element for `st.html`."""
    legible = (
        "[data-testid='stCaptionContainer']{color:inherit;opacity:0.85}"
        "[data-variant][data-selected='true']{color:inherit!important}"
    )
    return f"<style>.stMainBlockContainer{{padding:{padding}}}{legible}{more}</style>"
