"""Azure's CSV and Mooncake's JSONL: read to the last row, cut as asked, or refused in one sentence that names the line.

The real files are not in the repository; what is built here has their shape.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.presets import load_scenario
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import MAX_REQUESTS, Scenario, ScenarioError
from batchviz.scheduler import Policy
from batchviz.workload_file import NO_CUT, Cut, parse_workload, read_workload_file
from tests.refusals import LIMIT_S, checked

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n"
    "2023-11-16 18:15:51.2224670,879,55\n"
    "2023-11-16 18:16:02.0000000,91,16"  # like the real one: no newline at the end
)
MOONCAKE = "".join(
    json.dumps({"timestamp": at, "input_length": prompt, "output_length": output, "hash_ids": [0, 1, 2]}) + "\n"
    for at, prompt, output in [(0, 6755, 500), (0, 7319, 490), (3000, 12, 7), (27482.5, 30, 1)]
)


def azure(text: str = AZURE, cut: Cut = NO_CUT) -> Scenario:
    return parse_workload(text.encode(), "a.csv", is_csv=True, cut=cut)


def mooncake(text: str = MOONCAKE, cut: Cut = NO_CUT) -> Scenario:
    return parse_workload(text.encode(), "m.jsonl", is_csv=False, cut=cut)


def lengths(scenario: Scenario) -> list[tuple[int | None, int | None, float]]:
    return [(request.prompt_tokens, request.output_tokens, request.arrival) for request in scenario.requests]


def said(content: bytes | str, *, is_csv: bool = True, cut: Cut = NO_CUT) -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    started = time.process_time()
    with pytest.raises(ScenarioError) as caught:
        parse_workload(raw, "bad", is_csv=is_csv, cut=cut)
    assert time.process_time() - started < LIMIT_S
    return checked(str(caught.value))


def test_azures_rows_become_requests_with_arrivals_in_seconds_from_the_first() -> None:
    scenario = azure()
    assert lengths(scenario) == [(374, 44, 0), (396, 109, 4.314579), (879, 55, 4.541877), (91, 16, 15.31941)]
    assert [request.id for request in scenario.requests] == ["line-2", "line-3", "line-4", "line-5"]
    assert (scenario.arrival_unit, scenario.has_words, scenario.has_exact_lengths) == ("seconds", False, True)


def test_mooncakes_lines_become_requests_and_other_keys_are_ignored() -> None:
    assert lengths(mooncake()) == [(6755, 500, 0), (7319, 490, 0), (12, 7, 3), (30, 1, 27.4825)]


def test_a_file_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "azure.CSV").write_text(AZURE)
    (tmp_path / "moon.jsonl").write_text(MOONCAKE)
    assert load_scenario(str(tmp_path / "azure.CSV")).name == "azure"
    assert lengths(load_scenario(str(tmp_path / "moon.jsonl"), Cut(limit=1))) == [(6755, 500, 0)]


def test_a_workload_runs_and_keeps_every_rule() -> None:
    for policy in Policy:
        trace = scripted_run(azure(), make_config(policy, 2)).finish()
        assert check_trace(trace) == []
        assert trace.duration_s > 15


def test_windows_line_ends_a_byte_order_mark_blank_lines_and_more_columns_are_fine() -> None:
    text = "\ufeff" + AZURE.replace("\n", "\r\n\r\n")
    assert lengths(azure(text)) == lengths(azure())
    rows = [line.split(",") for line in AZURE.split("\n")]
    turned = "\n".join(f'"{tokens}",model,{output},{at}' for at, tokens, output in rows)
    assert lengths(azure(turned)) == lengths(azure())


def test_times_are_exact_and_know_zones() -> None:
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    rows = "2024-05-10 23:59:59.9999990+00:00,1,1\n2024-05-11T02:00:00.000001+02:00,1,1\n2024-05-11 00:00:00Z,1,1\n"
    assert [arrival for _, _, arrival in lengths(azure(head + rows))] == [0, 0.000002, 0.000001]


def test_rows_out_of_order_count_from_the_earliest() -> None:
    head, first, *others = AZURE.split("\n")
    assert [at for _, _, at in lengths(azure("\n".join([head, *others, first])))] == [4.314579, 4.541877, 15.31941, 0]


def test_the_limit_counts_rows_and_then_long_ones_are_left_out() -> None:
    assert len(azure(cut=Cut(limit=2)).requests) == 2
    assert [prompt for prompt, _, _ in lengths(azure(cut=Cut(max_total_tokens=505)))] == [374, 396, 91]
    kept = azure(cut=Cut(limit=3, max_total_tokens=504))
    assert lengths(kept) == [(374, 44, 0)]
    assert lengths(azure(cut=Cut(limit=9, max_total_tokens=107))) == [(91, 16, 0)], (
        "seconds from the first that is left"
    )


def test_lengths_that_no_scenario_holds_can_be_left_out() -> None:
    text = AZURE.replace(",879,", ",120000,")
    assert said(text) == (
        "bad, line 4: ContextTokens is 120000; it must be a whole number from 1 to 100,000 "
        "(--max-total-tokens leaves long requests out)"
    )
    assert len(azure(text, Cut(max_total_tokens=1024)).requests) == 3


@given(st.floats(0.001, 1000), st.lists(st.integers(0, 10**9), min_size=2, max_size=20).filter(lambda at: max(at) > 0))
@settings(deadline=None)
def test_the_rate_is_the_rate(rate: float, gaps: list[int]) -> None:
    at = [sum(gaps[:i]) for i in range(len(gaps) + 1)]
    if at[-1] == at[0]:
        return
    text = "".join(json.dumps({"timestamp": t, "input_length": 5, "output_length": 5}) + "\n" for t in at)
    arrivals = [request.arrival for request in mooncake(text, Cut(rate=rate)).requests]
    assert arrivals[0] == 0
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == pytest.approx(len(gaps) / rate, abs=1e-6)


def test_a_whole_log_is_read_and_too_many_requests_are_told_what_to_do() -> None:
    rows = "".join(
        f"2023-11-16 18:{i // 600 % 60:02}:{i // 10 % 60:02}.{i % 10}000000,{i % 700 + 1},{i % 99 + 1}\n"
        for i in range(19_366)
    )
    text = AZURE.split("\n")[0] + "\n" + rows.rstrip("\n")
    assert said(text) == (
        f"bad has more than {MAX_REQUESTS:,} requests and a scenario at most so many; take its first rows with --limit 2000"
    )
    whole = azure(text + "\n2023-11-16 19:00:00.0000000,1,1", Cut(max_total_tokens=70))
    assert whole.requests[-1].id == "line-19368"
    assert len(azure(text, Cut(limit=2000)).requests) == 2000


BAD_AZURE = [
    ("", "bad has no rows; a workload has at least one request"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "bad has no rows"),
    ("time,in,out\n1,2,3\n", "bad, line 1: the column TIMESTAMP is missing; the first line must be TIMESTAMP,Context"),
    (AZURE.replace(",396,", ",three,"), "bad, line 3: ContextTokens is 'three'; it must be a whole number from 1 to"),
    (AZURE.replace(",109", ",0"), "bad, line 3: GeneratedTokens is 0; it must be a whole number from 1 to 100,000"),
    (AZURE.replace(",109", ",-5"), "bad, line 3: GeneratedTokens is '-5'"),
    (AZURE.replace(",109", ",1e3"), "bad, line 3: GeneratedTokens is '1e3'"),
    (AZURE.replace(",109", ",٣"), "bad, line 3: GeneratedTokens is '٣'"),
    (AZURE.replace(",109", ""), "bad, line 3: the row has 2 values; the first line has 3"),
    (AZURE.replace(",109", ',"109'), "bad, line 3: this is not valid CSV"),
    (AZURE.replace("18:15:50", "18:75:50"), "bad, line 3: TIMESTAMP is '2023-11-16 18:75:50.9951690'; it must be a time"),
    (AZURE.replace("2023-11-16 18:15:50", "2023-02-30 18:15:50"), "bad, line 3: TIMESTAMP is '2023-02-30"),
    (AZURE.replace("2023-11-16 18:15:50.9951690", "\x1b[31m"), "bad, line 3: TIMESTAMP is '\\x1b[31m'"),
    (AZURE.replace("2023-11-16 18:16", "2024-11-16 18:16"), "bad, line 5: the request arrives 31,622,415 s after the first"),
    (AZURE.encode() + b"\n\xff,1,1", "bad, line 6: byte 0xff is not UTF-8 text"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), BAD_AZURE, ids=[sentence[:40] for _, sentence in BAD_AZURE])
def test_a_bad_row_of_a_csv_is_named(content: str | bytes, sentence: str) -> None:
    assert sentence in said(content)


BAD_MOONCAKE = [
    ("", "bad has no rows"),
    ("[1, 2]\n", "bad, line 1: the line holds no object; it must have the keys timestamp, input_length, output_length"),
    ("{\n", "bad, line 1: this is not valid JSON"),
    (MOONCAKE + "{'timestamp': 1}", "bad, line 5: this is not valid JSON"),
    ('{"timestamp": 1, "input_length": 2}', "bad, line 1: output_length is missing"),
    ('{"timestamp": NaN, "input_length": 2, "output_length": 3}', "bad, line 1: this is not valid JSON"),
    ('{"timestamp": 1e999, "input_length": 2, "output_length": 3}', "bad, line 1: timestamp is Infinity; it must be"),
    ('{"timestamp": -1, "input_length": 2, "output_length": 3}', "bad, line 1: timestamp is -1; it must be a number"),
    ('{"timestamp": true, "input_length": 2, "output_length": 3}', "bad, line 1: timestamp is true"),
    ('{"timestamp": 1, "input_length": 2.5, "output_length": 3}', "bad, line 1: input_length is 2.5; it must be a whole"),
    ('{"timestamp": 1, "input_length": "\\u001b", "output_length": 3}', "bad, line 1: input_length is '\\x1b'"),
    ('{"timestamp": 1, "input_length": 2, "output_length": 0}', "bad, line 1: output_length is 0"),
    ('{"timestamp": 1' + "0" * 5000 + "}", "bad, line 1: this is not valid JSON"),
    ("[" * 60_000, "bad, line 1: this is not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), BAD_MOONCAKE, ids=[sentence[:40] for _, sentence in BAD_MOONCAKE])
def test_a_bad_line_of_a_jsonl_is_named(content: str, sentence: str) -> None:
    assert sentence in said(content, is_csv=False)


HUGE = [  # (a piece, how often, the sentence)
    (b"\n", 20_000_000, "bad has more than 50,000 lines"),
    (b"x", 20_000_000, "bad, line 1: the line is longer than 64 kB"),
    (b"0,1,1\n", 3_000_000, "bad, line 1: the column TIMESTAMP is missing"),
    (b"x", 20_000_001, "bad has 20.0 MB; a workload has at most 20 MB"),
    (b"2023-11-16 18:16:02,99999,1\n", 150_000, "bad has more than 50,000 lines"),
]


@pytest.mark.parametrize(("piece", "times", "sentence"), HUGE)
def test_a_huge_file_is_refused_quickly(piece: bytes, times: int, sentence: str) -> None:
    head = AZURE.encode() + b"\n" if times == 150_000 else b""
    assert sentence in said(head + piece * times, cut=Cut(max_total_tokens=50_000))


def test_cuts_that_leave_nothing_or_mean_nothing_are_refused() -> None:
    assert said(AZURE, cut=Cut(max_total_tokens=9)) == (
        "bad has no request of at most 9 tokens in its 4 rows; raise --max-total-tokens"
    )
    same = "\n".join(AZURE.split("\n")[:2] + AZURE.split("\n")[1:2])
    assert "all requests arrive at one moment" in said(same, cut=Cut(rate=2))
    assert "at most 1,000,000 s are allowed, so raise --rate" in said(AZURE, cut=Cut(rate=1e-9))
    for wrong in ({"limit": 0}, {"max_total_tokens": 1}, {"rate": 0}, {"rate": float("nan")}, {"rate": float("inf")}):
        with pytest.raises(ScenarioError):
            Cut(**wrong)  # type: ignore[arg-type]
    with pytest.raises(
        ScenarioError, match=r"'four-slots' cannot be cut: a limit or a rate is for \.csv and \.jsonl files"
    ):
        load_scenario("four-slots", Cut(limit=3))


@pytest.mark.parametrize("path", ["gone.csv", ".", os.devnull])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_workload_file(path)
    assert re.search(r"CSV or JSONL", checked(str(caught.value)))


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")), st.booleans())
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_raise_nothing_but_a_scenario_error(content: bytes, is_csv: bool) -> None:
    for prefix in (b"", AZURE.encode() + b"\n", MOONCAKE.encode()):
        try:
            parse_workload(prefix + content, "fuzz", is_csv=is_csv)
        except ScenarioError as error:
            checked(str(error))
