"""The table in the README says what was measured, and is written only where it belongs and can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batchviz.bench_report import BEGIN, END, check_place, print_tables, to_markdown, write_into

ROOT = Path(__file__).parent.parent


def row(engine: str, slots: int, tok_s: float, ratio: float | None) -> dict[str, Any]:
    return {
        "engine": engine,
        "slots": slots,
        "tok_s": tok_s,
        "fastest_tok_s": tok_s + 1,
        "slowest_tok_s": tok_s - 1,
        "ms_per_step": 1000 * slots / tok_s,
        "ratio_to_generate": ratio,
        "same_tokens": None if ratio is None else 1.0,
    }


def measured(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "batchviz-bench/1",
        "date": "2026-01-02",
        "machine": "a machine",
        "dtype": "float32",
        "exact": True,
        "num_tokens": 64,
        "repeats": 3,
        "versions": {"torch": "2.13.0"},
        "busy": None,
        "left_out": ["llama_cpp is left out: llama-cpp-python is not installed"],
        "rows": [
            row("batchviz", 1, 10, 1.25),
            row("generate", 1, 8, 1.0),
            row("batchviz", 8, 40, 1.5),
            row("generate", 8, 26.67, 1.0),
        ],
        "steps": [
            {
                "slots": 8,
                "ms": 120.0,
                "linear_ms": 80.0,
                "attention_ms": 15.0,
                "rest_ms": 25.0,
                "limit_ms": 30.0,
                "limit_pct": 25.0,
            }
        ],
        "overhead": {"snapshot_pct": 0.5},
        "limit": {"read_bytes_per_s": 2e10, "multiply_flop_per_s": 1e11},
        "resident_bytes": 1_100_000_000,
    } | changes


def test_the_table_has_a_column_an_engine_and_a_row_a_slot_count() -> None:
    lines = to_markdown(measured()).splitlines()
    assert lines[:4] == [
        "| tokens per second | batchviz | `generate` |",
        "|---|---|---|",
        "| 1 slot | 10.0 (1.25×) | 8.0 |",
        "| 8 slots | 40.0 (1.50×) | 26.7 |",
    ]
    said = " ".join(lines[4:])
    assert "Measured 2026-01-02 on a machine, 64 forced tokens" in said
    assert "All in float32." in said
    assert "8: 120 ms, of which linear layers 80, attention 15, 25 % of what the machine could do" in said
    assert "Bit-identical across policies on this machine: yes." in said
    assert "Llama_cpp is left out" in said


def test_where_engines_keep_weights_in_different_formats_that_is_said() -> None:
    rows = [row("batchviz", 8, 40, 1.5), row("batchviz-float32", 8, 30, 1.2), row("generate", 8, 26.67, 1.0)]
    text = to_markdown(measured(dtype="float16-weights", rows=rows))
    assert "| tokens per second | batchviz | the same, weights in float32 | `generate` |" in text
    assert "batchviz keeps its weights in float16 and calculates in float32; transformers' are float32." in text
    text = to_markdown(measured(dtype="float16-weights", rows=[*rows, row("llama_cpp", 8, 90, 3.0)]))
    assert "transformers' are float32, llama.cpp's bfloat16." in text


def test_it_is_written_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold \\1\n{END}\nafter\n", encoding="utf-8")
    write_into(page, measured())
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n{BEGIN}\n{to_markdown(measured())}\n{END}\nafter\n"
    write_into(page, measured())
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("text", ["no marks", f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_its_place_is_refused_before_anything_is_measured(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.md has no place for the table"):
        check_place(page)
    with pytest.raises(ValueError, match="has no place"):
        check_place(tmp_path / "not there.md")


def test_what_was_measured_on_a_busy_machine_is_not_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}old{END}", encoding="utf-8")
    with pytest.raises(ValueError, match="left as it was, since this machine is busy"):
        write_into(page, measured(busy="this machine is busy"))
    assert page.read_text(encoding="utf-8") == f"{BEGIN}old{END}"


def test_the_readme_has_its_place() -> None:
    check_place(ROOT / "README.md")


def test_the_terminal_shows_the_split_the_exactness_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(measured(busy="this machine is busy"))
    shown = capsys.readouterr().out
    for words in (
        "8 slots",
        "80.0",
        "25 %",
        "bit-identical across policies on this machine: yes",
        "1.10 GB",
        "left out",
    ):
        assert words in shown
    assert shown.rstrip().endswith("this machine is busy")
