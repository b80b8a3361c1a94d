"""Markdown -> plain blocks that a page builds elements from; nothing in it can become markup.

Owns: which Markdown lessons may use: paragraphs, lists, headings, *emphasis*, **strong**, `code`. Must not know: lessons.
A block is [tag, pieces], or ["ul" | "ol", [pieces, ...]]; a piece is [style, text] with style "", "em", "strong" or "code".
"""

from __future__ import annotations

from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

Pieces = list[list[str]]
Block = list[Any]
STYLES = ("em", "strong")


def blocks(markdown: str) -> list[Block]:
    """Whatever else is in it is shown as the text that it is."""
    found: list[Block] = []
    items: list[Pieces] | None = None
    tag = "p"
    for token in _parser().parse(markdown):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            items = []
            found.append([token.tag, items])
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            items = None
        elif token.type in ("paragraph_open", "heading_open"):
            tag = token.tag
        elif token.type == "inline":
            pieces = _pieces(token.children or [])
            if items is not None:
                items.append(pieces)
            else:
                found.append([tag, pieces])
        elif token.content:  # a code block
            found.append(["pre", [["code", token.content]]])
    return found


def plain(markdown: str) -> str:
    """The words alone."""
    words = []
    for tag, content in blocks(markdown):
        parts = content if tag in ("ul", "ol") else [content]
        words += ["".join(text for _, text in pieces) for pieces in parts]
    return " ".join(words)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink", "html_inline", "html_block"])


def _pieces(tokens: list[Token]) -> Pieces:
    pieces: Pieces = []
    style = ""
    for token in tokens:
        if token.type.endswith("_open") and token.tag in STYLES:
            style = token.tag
        elif token.type.endswith("_close") and token.tag in STYLES:
            style = ""
        elif token.type == "code_inline":
            pieces.append(["code", token.content])
        elif token.type in ("softbreak", "hardbreak"):
            pieces.append([style, " "])
        elif token.content:
            pieces.append([style, token.content])
    return pieces
