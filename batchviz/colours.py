"""Every colour that Python draws with. The player's own colours are in assets/player/colours.css and page.css.

Owns: colours. Must not know: what is drawn with them. Okabe and Ito's palette, chosen to be told apart with any colour
vision; colour is never the only sign.
"""

from __future__ import annotations

WAITING = "#9AA5B1"
PREFILL = "#56B4E9"
DECODE = "#0072B2"
WITHHELD = "#E69F00"
STALLED = "#CC79A7"
EMPTY = "#9AA5B155"  # see-through: it is what is not there
CURSOR = "#D55E00"
# Requests and the letters on them, in the order of the scenario; a test holds them and those below to the player's CSS.
REQUEST_COLOURS = (
    "#0072b2", "#e69f00", "#00805c", "#cc79a7", "#56b4e9", "#c25100", "#7a5ea8", "#d9c52b", "#8a5a3c", "#66761c",
)  # fmt: skip
REQUEST_INKS = (
    "#ffffff", "#1c1400", "#ffffff", "#24101b", "#06202f", "#ffffff", "#ffffff", "#211d00", "#ffffff", "#ffffff",
)  # fmt: skip
# A picture's: those of an exported page in the light.
TEXT = "#1c2128"
PAPER = "#ffffff"
SECOND = "#f3f6f8"
ACCENT = "#0072b2"
GOOD = "#00805c"
WARN = "#c25100"
