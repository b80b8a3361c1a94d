"""Markdown becomes plain blocks, and nothing in it becomes markup."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from batchviz.markdown_blocks import blocks, plain

TAGS = {"p", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "code"}


def test_paragraphs_lists_and_styles() -> None:
    assert blocks("One **two** *three* `four`\nfive\n\n- a\n- b") == [
        [
            "p",
            [
                ["", "One "],
                ["strong", "two"],
                ["", " "],
                ["em", "three"],
                ["", " "],
                ["code", "four"],
                ["", " "],
                ["", "five"],
            ],
        ],
        ["ul", [[["", "a"]], [["", "b"]]]],
    ]


def test_html_and_links_stay_the_text_that_they_are() -> None:
    hostile = "<img src=x onerror=alert(1)> [here](javascript:alert(1)) ![x](http://x) <http://x>"
    assert plain(hostile) == hostile


@given(st.text(max_size=80))
def test_any_text_gives_blocks_of_known_tags_and_styles(text: str) -> None:
    found = json.loads(json.dumps(blocks(text)))
    for tag, content in found:
        assert tag in TAGS
        for pieces in content if tag in ("ul", "ol") else [content]:
            for style, words in pieces:
                assert style in ("", "em", "strong", "code")
                assert isinstance(words, str)
