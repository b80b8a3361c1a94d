"""Untrusted bytes -> plain data, with the line of every value. YAML and JSON; no classes, tags, aliases or surprises.

Owns: decoding, syntax, duplicate keys, depth and size. Must not know: what a scenario's keys mean.
YAML is read event by event, so nothing is ever built that was not asked for, and plain words mean what YAML 1.2 says
(`no` is a word, `1_000` is a word). Every problem is a ScenarioError of one sentence that names the file and the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from batchviz.given_file import too_large
from batchviz.scenario import ScenarioError, is_printable, shown_text
from batchviz.scenario_schema import Path

MAX_YAML_BYTES = 256_000
MAX_JSON_BYTES = 5_000_000
MAX_DEPTH = 16
MAX_VALUES = 50_000  # keys, values and brackets; 2,000 requests of six keys each have half of that
_TOO_MANY = f"the file holds more than {MAX_VALUES:,} values; a scenario needs far fewer"
_TOO_DEEP = f"nested too deeply; a scenario needs no more than {MAX_DEPTH} levels"

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
WHOLE_NUMBER = re.compile(r"[-+]?[0-9]+")
FRACTION = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where it came from. Line numbers count from 1."""

    source: str  # already safe to print
    data: object
    text: str = ""
    lines: Mapping[Path, int] | None = None  # None: not known yet; JSON's are only looked for when there is an error

    def error(self, path: Path, problem: str) -> ScenarioError:
        """The error that says what is wrong at this path, with the line of the innermost value whose line is known."""
        lines = json_lines(self.text) if self.lines is None else self.lines
        known = (lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines)
        line = next(known, None)
        place = self.source if line is None or not path else f"{self.source}, line {line}"
        return ScenarioError(f"{place}: {problem}")


class Problem(Exception):
    """What is wrong with a text, and on which line (counted from 1)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read_document(content: bytes, source: str, *, is_json: bool) -> Document:
    """Reads a whole file. `source` is what messages call it and must be safe to print. Raises ScenarioError."""
    limit, kind = (MAX_JSON_BYTES, "JSON") if is_json else (MAX_YAML_BYTES, "YAML")
    if len(content) > limit:
        raise too_large(source, len(content), limit, f"a scenario in {kind}")
    try:
        text = _decode(content)
        if is_json:
            return Document(source, _read_json(text), text)
        data, lines = read_yaml(text)
        return Document(source, data, text, lines)
    except Problem as problem:
        raise ScenarioError(f"{source}, line {problem.line}: {problem.message}") from None


def _decode(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Problem(f"byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8", line) from None
    control = CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        message = f"the control character U+{ord(control.group()):04X} is not text; a scenario file is plain UTF-8 text"
        raise Problem(message, line)
    if not text.strip():
        raise Problem("the file is empty; a scenario has at least a list of requests", 1)
    return text


# --- JSON


def _outside_strings(text: str) -> str:
    """JSON without its strings, line breaks kept: what is left of it says how many values there are. Always fast."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    if unescaped.count('"') > 2 * MAX_VALUES:
        raise Problem(_TOO_MANY, 1)
    return "".join(unescaped.split('"')[::2])


def _read_json(text: str) -> object:
    outside = _outside_strings(text)
    if sum(map(outside.count, "[{,:")) > MAX_VALUES:
        raise Problem(_TOO_MANY, 1)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=read_whole_number)
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}, column {error.colno}"
        raise Problem(f"this is not valid JSON ({reason}); correct it there or just before", error.lineno) from None
    except RecursionError:
        raise Problem(_TOO_DEEP, 1) from None
    except _RefusedError as refused:
        raise Problem(str(refused), _line_of(refused, text)) from None


class _RefusedError(Exception):
    """Valid JSON to Python, but not to us. `needle` is what to look for in the text."""

    def __init__(self, message: str, needle: str) -> None:
        super().__init__(message)
        self.needle = needle


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(_said_twice(twice), "")
    return result


def _refuse_constant(constant: str) -> NoReturn:
    raise _RefusedError(f"{constant} is not a number that a scenario can use; write a whole number", constant)


def _line_of(refused: _RefusedError, text: str) -> int:
    if refused.needle:
        outside = _outside_strings(text)  # no string of valid JSON contains a line break
        return outside.count("\n", 0, max(outside.find(refused.needle), 0)) + 1
    try:
        read_yaml(_as_yaml(text))
    except Problem as problem:
        return problem.line if problem.message == str(refused) else 1
    return 1


def json_lines(text: str) -> Mapping[Path, int]:
    """The lines of JSON's values, as far as they can be had: JSON is YAML, if it is not too long for that."""
    if not text or len(text) > MAX_YAML_BYTES:
        return {}
    try:
        return read_yaml(_as_yaml(text))[1]
    except Problem:
        return {}


def _as_yaml(text: str) -> str:
    """JSON that libyaml reads, with every key still on its line: no tabs, no halves of surrogate pairs."""
    return UNICODE_ESCAPE.sub("??????", text.replace("\t", " "))


# --- YAML


def read_yaml(text: str) -> tuple[object, dict[Path, int]]:
    """YAML -> plain data, and the line (from 1) of every path. Raises Problem."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(_events(text, loader)).document()
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = "".join(filter(is_printable, error.problem or "a syntax error"))[:120]
        if "nesting depth" in problem:  # libyaml's own limit, met while it looks ahead
            raise Problem(_TOO_DEEP, line) from None
        hint = _hint(problem, text, line)
        raise Problem(f"this is not valid YAML ({problem}, column {column}); {hint}", line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Problem("a character that YAML does not allow; a scenario file is plain UTF-8 text", line) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise Problem("this is not valid YAML; write one mapping with a list of requests", 1) from None


def _events(text: str, loader: Any) -> Iterator[yaml.Event]:
    return iter(yaml.parse(text, Loader=loader))


def _hint(problem: str, text: str, line: int) -> str:
    lines = text.split("\n")
    around = lines[max(line - 2, 0) : line]
    if any("\t" in each[: len(each) - len(each.lstrip())] for each in around):
        return "indent with spaces, not with tabs"
    if "mapping values" in problem:
        return "put text that contains a colon in quotes"
    return "correct it there or just before"


class _Reader:
    """Builds plain data out of YAML events, and refuses what has no place in a scenario."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._num_events = 0
        self._lines: dict[Path, int] = {}

    def document(self) -> tuple[object, dict[Path, int]]:
        event = self._next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise Problem("the file is empty; a scenario has at least a list of requests", 1)
        data = self._value(event, ())
        self._next()  # the document's end
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise Problem("a second document begins here; a scenario file holds one", _line(event))
        return data, self._lines

    def _next(self) -> yaml.Event:
        event = next(self._events)
        self._num_events += 1
        if self._num_events > MAX_VALUES:
            raise Problem(_TOO_MANY, _line(event))
        if isinstance(event, yaml.AliasEvent):
            raise Problem("aliases (*name) are not accepted; write the value out", _line(event))
        if getattr(event, "tag", None) is not None:
            raise Problem("tags (!name) are not accepted; write the plain value", _line(event))
        return event

    def _value(self, event: yaml.Event, path: Path) -> object:
        self._lines.setdefault(path, _line(event))
        if len(path) > MAX_DEPTH:
            raise Problem(_TOO_DEEP, _line(event))
        if isinstance(event, yaml.ScalarEvent):
            return read_plain(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                items.append(self._value(event, (*path, len(items))))
            return items
        return self._mapping(path)

    def _mapping(self, path: Path) -> dict[str, object]:
        result: dict[str, object] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise Problem("a key is a list or a mapping; keys are words", _line(event))
            key = event.value
            if key in result:
                raise Problem(_said_twice(key), _line(event))
            self._lines[*path, key] = _line(event)
            result[key] = self._value(self._next(), (*path, key))
        return result


def _line(event: yaml.Event) -> int:
    mark: Any = event.start_mark  # every event of a parsed text has one
    return int(mark.line) + 1


def _said_twice(key: str) -> str:
    return f"the key {shown_text(key)} is given twice; give it once"


def read_plain(text: str) -> object:
    """What a word without quotes means, by YAML 1.2's core schema (decimal numbers only)."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    if WHOLE_NUMBER.fullmatch(text):
        return read_whole_number(text)
    if FRACTION.fullmatch(text):
        return float(text)
    if NOT_FINITE.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def read_whole_number(digits: str) -> int | float:
    """An int; beyond 30 digits a float, which no field accepts: Python refuses to read or print very long ints."""
    return int(digits) if len(digits) <= 30 else float(digits)
