"""Drawing on an image in logical pixels, at any scale: text, badges, boxes, hatching.

Owns: Pen, how colours are mixed, what the built-in font can say. Must not know: traces, runs, layouts.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from types import MappingProxyType

from PIL import Image, ImageColor, ImageDraw, ImageFont

from batchviz import colours

Rgb = tuple[int, int, int]
SPELLED = MappingProxyType({"×": "x", "–": "-", "—": "-", "−": "-", "‘": "'", "’": "'", "„": '"', "ß": "ss"})
KNOWN = frozenset("·…“”")  # beside ASCII


def levels(colour: str) -> Rgb:
    """Red, green and blue, 0 to 255, of a colour as CSS writes it."""
    found = ImageColor.getcolor(colour, "RGB")
    assert isinstance(found, tuple)
    return found[0], found[1], found[2]


def mix(colour: Rgb, share: float, other: Rgb) -> Rgb:
    """`share` of a colour in another one, as CSS's color-mix does it in sRGB."""
    red, green, blue = (round(share * one + (1 - share) * two) for one, two in zip(colour, other, strict=True))
    return red, green, blue


TEXT = levels(colours.TEXT)
PAPER = levels(colours.PAPER)
WARN = levels(colours.WARN)
GOOD = levels(colours.GOOD)
ACCENT = levels(colours.ACCENT)
CARD = mix(levels(colours.SECOND), 0.55, PAPER)  # these as in assets/player/colours.css
SOFT = mix(TEXT, 0.72, PAPER)
FAINT = mix(TEXT, 0.58, PAPER)
LINE = mix(TEXT, 0.13, PAPER)
TRACK = mix(TEXT, 0.05, CARD)
HELD_PAPER = mix(TEXT, 0.09, CARD)
HELD_LINE = mix(TEXT, 0.24, CARD)
WARN_TEXT = mix(WARN, 0.72, TEXT)
REQUESTS = tuple(map(levels, colours.REQUEST_COLOURS))
INKS = tuple(map(levels, colours.REQUEST_INKS))


@lru_cache(maxsize=64)
def font_of(size: float) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow, so that a picture is the same on every machine."""
    font = ImageFont.load_default(size=size)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow was built without FreeType"
    return font


def sayable(text: str) -> str:
    """What the built-in font can draw: accents are left off, what it lacks is a question mark.

    >>> sayable("naïve – 3 × 中")
    'naive - 3 x ?'
    """
    spelled = "".join(SPELLED.get(letter, letter) for letter in text)
    base = (letter for letter in unicodedata.normalize("NFKD", spelled) if not unicodedata.combining(letter))
    return "".join(
        letter if (letter.isascii() and letter.isprintable()) or letter in KNOWN else " " if letter.isspace() else "?"
        for letter in unicodedata.normalize("NFC", "".join(base))
    )


class Pen:
    """Draws on one image. Every number is in logical pixels; the image has `scale` times as many."""

    def __init__(self, image: Image.Image, scale: int) -> None:
        self.image = image
        self.scale = scale
        self._draw = ImageDraw.Draw(image)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Rgb) -> None:
        """A filled rectangle, the right and the bottom edge left out; never thinner than a pixel of the image."""
        scaled = [round(value * self.scale) for value in (left, top, right, bottom)]
        self._draw.rectangle(
            (scaled[0], scaled[1], max(scaled[0], scaled[2] - 1), max(scaled[1], scaled[3] - 1)), fill=fill
        )

    def rounded(
        self, left: float, top: float, right: float, bottom: float, radius: float, fill: Rgb, outline: Rgb | None = None
    ) -> None:
        scaled = [round(value * self.scale) for value in (left, top, right, bottom)]
        self._draw.rounded_rectangle(
            (scaled[0], scaled[1], scaled[2] - 1, scaled[3] - 1), radius * self.scale, fill=fill, outline=outline,
            width=self.scale,
        )  # fmt: skip

    def triangle(self, x: float, top: float, half: float, height: float, fill: Rgb) -> None:
        """Pointing down to (x, top + height)."""
        points = [(x - half, top), (x + half, top), (x, top + height)]
        self._draw.polygon([(a * self.scale, b * self.scale) for a, b in points], fill=fill)

    def width(self, text: str, size: float) -> float:
        return font_of(size * self.scale).getlength(sayable(text)) / self.scale

    def text(
        self, x: float, y: float, text: str, size: float, fill: Rgb, anchor: str = "ls", bold: bool = False
    ) -> float:
        """Writes it and returns its width. `y` is the baseline, unless the anchor (Pillow's) says otherwise."""
        shown, font = sayable(text), font_of(size * self.scale)
        weight = 0.022 * size * self.scale if bold else 0
        place = (x * self.scale, y * self.scale)
        self._draw.text(place, shown, fill=fill, font=font, anchor=anchor, stroke_width=weight)
        return font.getlength(shown) / self.scale

    def fitted(self, text: str, size: float, room: float) -> str:
        """As much of it as the room holds, with an ellipsis where it was cut."""
        shown = sayable(text)
        if self.width(shown, size) <= room:
            return shown
        while shown and self.width(f"{shown}…", size) > room:
            shown = shown[:-1]
        return f"{shown.rstrip()}…"

    def wrapped(self, text: str, size: float, room: float, lines: int) -> list[str]:
        """The text in at most so many lines; what is too long for them is cut."""
        words, found = sayable(text).split(), [""]
        for place, word in enumerate(words):
            longer = f"{found[-1]} {word}".strip()
            if found[-1] and self.width(longer, size) > room:
                if len(found) == lines:
                    return [*found[:-1], self.fitted(" ".join([found[-1], *words[place:]]), size, room)]
                found.append(word)
            else:
                found[-1] = longer
        return [*found[:-1], self.fitted(found[-1], size, room)]

    def badge(self, left: float, top: float, size: float, letters: str, request: int, *, held: bool = False) -> None:
        """A request's square, with its letter where there is room. `held`: grey, as what is not let go."""
        place = request % len(REQUESTS)
        fill, ink = (HELD_PAPER, SOFT) if held else (REQUESTS[place], INKS[place])
        self.rounded(left, top, left + size, top + size, min(5, size / 4), fill, HELD_LINE if held else None)
        if size >= 9:
            room = 0.62 if len(letters) == 1 else 0.48 if len(letters) == 2 else 0.36
            self.text(left + size / 2, top + size / 2, letters, size * room, ink, anchor="mm", bold=True)

    def hatch(self, left: float, top: float, right: float, bottom: float) -> None:
        """The grey stripes of a held slot; they run on from one cell to the next."""
        x0, y0, x1, y1 = (round(value * self.scale) for value in (left, top, right, bottom))
        if x1 <= x0 or y1 <= y0:
            x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)
        tile = Image.new("RGB", (x1 - x0, y1 - y0), HELD_PAPER)
        draw = ImageDraw.Draw(tile)
        every = 6 * self.scale
        height = y1 - y0
        first = -((x0 + y1) % every) - height
        for x in range(first, x1 - x0 + height, every):
            draw.line((x, height, x + height, 0), fill=HELD_LINE, width=max(1, round(1.5 * self.scale)))
        self.image.paste(tile, (x0, y0))
