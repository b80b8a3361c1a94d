"""The Markdown table: its numbers are the metrics', and a stranger's text is nothing but text."""

from __future__ import annotations

import html
import re

import pytest

from batchviz.export.markdown import plain, to_markdown
from batchviz.metrics import run_metrics
from batchviz.prefill import PrefillMode
from batchviz.recordings import load_recording, rescheduled
from batchviz.runs import make_config
from batchviz.scheduler import Policy
from tests.hostile import HOSTILE, hostile_traces
from tests.story import story


def cells(line: str) -> list[str]:
    """As a reader of tables cuts it: at every pipe without a backslash before it."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heading = cells(lines[0])
    assert all(len(cells(line)) == len(heading) for line in lines)
    return [dict(zip(heading, cells(line), strict=True)) for line in lines[2:]]


def test_a_row_holds_the_figures_of_its_run() -> None:
    traces = load_recording("four-slots")
    for row, trace in zip(table(to_markdown(traces)), traces, strict=True):
        metrics = run_metrics(trace)
        assert int(row["steps"]) == metrics.num_steps
        assert row["seconds"] == f"{metrics.duration_s:.2f} measured"
        counted = [int(row[kind]) for kind in ("working", "held", "empty")]
        assert sum(counted) == trace.config.num_slots * metrics.num_steps
        assert row["utilization"] == f"{100 * (metrics.slot_utilization or 0):.1f} %"
        assert row["mean TTFT"] == f"{metrics.mean_ttft_steps:,.1f} ({metrics.mean_ttft_s:.2f} s)"
        assert row["mean E2E"] == f"{metrics.mean_e2e_steps:,.1f} ({metrics.mean_e2e_s:.2f} s)"


def test_stalled_slot_steps_have_a_column_where_there_are_any() -> None:
    recordings = load_recording("four-slots")
    config = make_config(Policy.CONTINUOUS, 4, prefill=PrefillMode.EXCLUSIVE)
    (row,) = table(to_markdown([rescheduled(recordings, config)]))
    assert int(row["stalled"]) > 0
    assert "stalled" not in table(to_markdown(recordings))[0]


def test_it_says_when_where_and_by_what_the_run_was_made() -> None:
    text = to_markdown(load_recording("four-slots"))
    (line,) = [line for line in text.splitlines() if line.startswith("Origin: ")]
    for part in (
        "recorded from the model",
        "2026-",
        "AMD EPYC",
        "SmolLM2-135M-Instruct",
        "float16-weights",
        "seconds measured",
    ):
        assert part in line
    assert "no model, lengths only" in to_markdown(load_recording("golden-lengths"))


def test_a_run_in_which_nobody_was_served_has_no_means() -> None:
    (row, _) = table(to_markdown(story(max_steps=1)))
    assert row["mean E2E"] == "–"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("one\r\ntwo\u2028three", "one two three"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("*a* _b_ `c` ~~d~~ $e$", r"\*a\* \_b\_ \`c\` \~\~d\~\~ \$e\$"),
        ("[a](javascript:1) ![b](c)", r"\[a\]\(javascript:1\) \!\[b\]\(c\)"),
        ("# not a heading", r"\# not a heading"),
        ("- no list", r"\- no list"),
        ("12. no list", r"12\. no list"),
        ("---", r"\---"),
        ("https://a.b and www.a.b", r"https\://a.b and www\.a.b"),
        ("\u202eright to left\x00", "right to left"),
    ],
)
def test_whatever_markdown_would_take_for_its_own_is_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_hostile_trace_makes_one_table_and_no_markup() -> None:
    text = to_markdown(hostile_traces())
    assert len(table(text)) == 2
    assert "<" not in text
    assert not re.search(r"(?<!\\)[\[`*]", text)
    assert sum(line.startswith("#") for line in text.splitlines()) == 1
    title = text.splitlines()[0].removeprefix("## ")
    assert html.unescape(re.sub(r"\\(.)", r"\1", title)) == " ".join(HOSTILE.replace("\u202e", "").split())
