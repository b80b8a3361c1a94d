"""Requests as real servers recorded them, without words: Azure's CSV and Mooncake's JSONL -> Scenario.

Owns: the two formats, their limits, and the cut (`--limit`, `--max-total-tokens`, `--rate`). Must not know: YAML,
presets, engines, models. Azure's public trace has the columns TIMESTAMP, ContextTokens, GeneratedTokens (Splitwise,
ISCA 2024); Mooncake's lines have timestamp (in ms), input_length, output_length (FAST 2025), and AIPerf replays those.
Files are read line by line, so that a refusal costs no more than the lines before it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from batchviz.given_file import name_from, read_given_file, shown_source, too_large
from batchviz.scenario import (
    MAX_ARRIVAL,
    MAX_LENGTH,
    MAX_REQUESTS,
    Scenario,
    ScenarioError,
    ScenarioRequest,
    shown_text,
)

WORKLOAD_SUFFIXES = (".csv", ".jsonl")
MAX_WORKLOAD_BYTES = 20_000_000
MAX_LINES = 50_000
MAX_LINE_BYTES = 65_536

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MOONCAKE_KEYS = ("timestamp", "input_length", "output_length")
WHOLE_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):?(\d\d))?", re.ASCII)
DAY_ZERO = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """What is taken of a workload, in this order."""

    limit: int | None = None  # the first so many rows of the file
    max_total_tokens: int | None = None  # leaves out requests whose prompt and answer are longer together
    rate: float | None = None  # requests per second on average, first to last; arrivals are stretched to it

    def __post_init__(self) -> None:
        """Raises ScenarioError."""
        if self.limit is not None and self.limit < 1:
            raise ScenarioError(f"the limit is {self.limit}; it must be a whole number of rows, at least 1")
        if self.max_total_tokens is not None and self.max_total_tokens < 2:
            raise ScenarioError(
                f"the most tokens of a request are {self.max_total_tokens}; a prompt and its answer have at least 2"
            )
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ScenarioError(f"the rate is {self.rate:g}; it must be a number of requests per second above 0")


NO_CUT = Cut()


class _Row(NamedTuple):
    line: int  # of the file, counted from 1
    nanoseconds: int
    prompt_tokens: int
    output_tokens: int


_ReadLine = Callable[[str], tuple[int, int, int]]  # -> nanoseconds, prompt tokens, output tokens


class _RowError(Exception):
    """What is wrong with a row. The message is one sentence without the place."""


def read_workload_file(path: str | os.PathLike[str], cut: Cut = NO_CUT) -> Scenario:
    """Reads Azure's CSV (`.csv`) or Mooncake's JSONL (`.jsonl`). Raises ScenarioError with one sentence."""
    given = os.fspath(path)
    content = read_given_file(given, MAX_WORKLOAD_BYTES, "a workload", "CSV or JSONL")
    is_csv = given.lower().endswith(".csv")
    return parse_workload(content, given, is_csv=is_csv, cut=cut, default_name=Path(given).stem)


def parse_workload(
    content: bytes, source: str, *, is_csv: bool, cut: Cut = NO_CUT, default_name: str = "workload"
) -> Scenario:
    """A file's bytes -> Scenario with exact lengths and arrivals in seconds from its first request.

    `source` is what messages call it. Raises ScenarioError with one sentence that names the line.
    """
    source = shown_source(source)
    if len(content) > MAX_WORKLOAD_BYTES:
        raise too_large(source, len(content), MAX_WORKLOAD_BYTES, "a workload")
    kept: list[_Row] = []
    num_rows = 0
    for row in _rows(content, source, is_csv):
        num_rows += 1
        if cut.max_total_tokens is None or row.prompt_tokens + row.output_tokens <= cut.max_total_tokens:
            _check_lengths(row, source, AZURE_COLUMNS if is_csv else MOONCAKE_KEYS)
            kept.append(row)
        if len(kept) > MAX_REQUESTS:
            raise ScenarioError(
                f"{source} has more than {MAX_REQUESTS:,} requests and a scenario at most so many; take its first rows "
                f"with --limit {MAX_REQUESTS}"
            )
        if num_rows == cut.limit:
            break
    if not num_rows:
        raise ScenarioError(f"{source} has no rows; a workload has at least one request")
    if not kept:
        raise ScenarioError(
            f"{source} has no request of at most {cut.max_total_tokens} tokens in its {num_rows:,} rows; "
            "raise --max-total-tokens"
        )
    return _scenario(kept, _arrivals(kept, cut, source), name_from(default_name))


def _lines(content: bytes, source: str) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number, decoded by itself."""
    reader = io.BytesIO(content)
    for number, raw in enumerate(iter(lambda: reader.readline(MAX_LINE_BYTES + 1), b""), 1):
        if number > MAX_LINES:
            raise ScenarioError(f"{source} has more than {MAX_LINES:,} lines; take its first rows with --limit")
        if len(raw) > MAX_LINE_BYTES:
            raise _error(source, number, f"the line is longer than {MAX_LINE_BYTES // 1024} kB; a row is far shorter")
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise _error(source, number, f"byte 0x{raw[error.start]:02x} is not UTF-8 text; save it as UTF-8") from None
        if text:
            yield number, text


def _rows(content: bytes, source: str, is_csv: bool) -> Iterator[_Row]:
    number = 1
    read: _ReadLine | None = None if is_csv else _read_mooncake
    try:
        for number, text in _lines(content, source):
            if read is None:
                read = _azure_reader(text)
            else:
                yield _Row(number, *read(text))
    except _RowError as error:
        raise _error(source, number, str(error)) from None


def _azure_reader(heading: str) -> _ReadLine:
    """How to read the lines below this one."""
    columns = [name.strip() for name in _cells(heading)]
    missing = next((column for column in AZURE_COLUMNS if column not in columns), None)
    if missing is not None:
        raise _RowError(f"the column {missing} is missing; the first line must be {','.join(AZURE_COLUMNS)}")
    time_at, prompt_at, output_at = map(columns.index, AZURE_COLUMNS)

    def read(text: str) -> tuple[int, int, int]:
        cells = _cells(text)
        if len(cells) != len(columns):
            raise _RowError(f"the row has {len(cells)} values; the first line has {len(columns)}")
        prompt_tokens = _csv_length(cells[prompt_at], AZURE_COLUMNS[1])
        return _time(cells[time_at]), prompt_tokens, _csv_length(cells[output_at], AZURE_COLUMNS[2])

    return read


def _cells(text: str) -> list[str]:
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise _RowError(f"this is not valid CSV ({error}); correct it there") from None


def _csv_length(text: str, column: str) -> int:
    if not WHOLE_NUMBER.fullmatch(text.strip()):
        raise _RowError(f"{column} is {shown_text(text)}; {_length_rule()}")
    return int(text)


def _time(text: str) -> int:
    """Nanoseconds since 1970, exactly; without a zone it is taken for UTC."""
    found = TIME.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        since = datetime.fromisoformat(found[1]) - DAY_ZERO
    except ValueError:
        rule = "it must be a time like 2023-11-16 18:15:46.6805900"
        raise _RowError(f"TIMESTAMP is {shown_text(text)}; {rule}") from None
    fraction, sign, zone_hours, zone_minutes = found.groups()[1:]
    seconds = since.days * 86_400 + since.seconds
    if sign is not None:
        seconds -= int(f"{sign}1") * (int(zone_hours) * 3_600 + int(zone_minutes) * 60)
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _read_mooncake(text: str) -> tuple[int, int, int]:
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # a number with thousands of digits is a ValueError too
        raise _RowError("this is not valid JSON; a line holds one object") from None
    if not isinstance(data, dict):
        raise _RowError(f"the line holds no object; it must have the keys {', '.join(MOONCAKE_KEYS)}")
    missing = next((key for key in MOONCAKE_KEYS if key not in data), None)
    if missing is not None:
        raise _RowError(f"{missing} is missing; a line must have the keys {', '.join(MOONCAKE_KEYS)}")
    milliseconds, *lengths = (data[key] for key in MOONCAKE_KEYS)
    if type(milliseconds) not in (int, float) or not 0 <= milliseconds <= 1e15:
        raise _RowError(f"timestamp is {_shown(milliseconds)}; it must be a number of milliseconds, at least 0")
    for key, length in zip(MOONCAKE_KEYS[1:], lengths, strict=True):
        if type(length) is not int:
            raise _RowError(f"{key} is {_shown(length)}; {_length_rule()}")
    return round(milliseconds * 1_000_000), lengths[0], lengths[1]


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _shown(value: Any) -> str:
    return shown_text(value) if isinstance(value, str) else shown_text(json.dumps(value)[:60])[1:-1]


def _length_rule() -> str:
    return f"it must be a whole number from 1 to {MAX_LENGTH:,}"


def _check_lengths(row: _Row, source: str, names: tuple[str, ...]) -> None:
    for name, length in ((names[1], row.prompt_tokens), (names[2], row.output_tokens)):
        if not 1 <= length <= MAX_LENGTH:
            advice = " (--max-total-tokens leaves long requests out)" if length > 1 else ""
            raise _error(source, row.line, f"{name} is {length}; {_length_rule()}{advice}")


def _error(source: str, line: int, problem: str) -> ScenarioError:
    return ScenarioError(f"{source}, line {line}: {problem}")


def _arrivals(rows: list[_Row], cut: Cut, source: str) -> list[float]:
    """Seconds from the first request, in whole microseconds, stretched or squeezed to the rate."""
    first, last = (pick(row.nanoseconds for row in rows) for pick in (min, max))
    span = last - first
    scale = 1e-9
    if cut.rate is not None and len(rows) > 1:
        if span == 0:
            raise ScenarioError(
                f"{source}: all requests arrive at one moment, so there is no rate to change; omit --rate"
            )
        scale = (len(rows) - 1) / cut.rate / span
    arrivals = [round((row.nanoseconds - first) * scale, 6) for row in rows]
    for row, arrival in zip(rows, arrivals, strict=True):
        if arrival > MAX_ARRIVAL:
            advice = "raise --rate" if cut.rate is not None else "take fewer rows with --limit or give a --rate"
            problem = f"the request arrives {arrival:,.0f} s after the first; at most {MAX_ARRIVAL:,} s are allowed"
            raise _error(source, row.line, f"{problem}, so {advice}")
    return arrivals


def _scenario(rows: list[_Row], arrivals: list[float], name: str) -> Scenario:
    requests = tuple(
        ScenarioRequest(
            id=f"line-{row.line}",
            max_tokens=row.output_tokens,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            arrival=arrival,
        )
        for row, arrival in zip(rows, arrivals, strict=True)
    )
    span = max(arrivals)
    pace = f", {(len(rows) - 1) / span:.3g} a second" if span > 0 else ""
    return Scenario(
        name=name,
        title=f"{len(rows):,} recorded request{'' if len(rows) == 1 else 's'}{pace}",
        requests=requests,
        look_for="Arrivals and lengths are those of a real server's log, which keeps no words; watch the queue.",
        arrival_unit="seconds",
    )
