"""Traces and bundles to and from versioned JSON: one step a line, columns where slots repeat.

Owns: the file formats `batchviz-trace/1` and `batchviz-bundle/1`, their limits, and the sentence about a broken file.
Must not know: engines, models, pages. A file from a stranger is validated whole, and nothing of it is executed.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from zlib import error as ZlibError

from pydantic import TypeAdapter, ValidationError

from batchviz.trace import RunConfig, StepSnapshot, Trace, TracedRequest, TraceStatus

TRACE_SCHEMA = "batchviz-trace/1"
BUNDLE_SCHEMA = "batchviz-bundle/1"
NEWER = re.compile(r"batchviz-(trace|bundle)/([2-9]|[1-9][0-9]{1,3})")
TRACE_MARKS = (b'"batchviz-trace/', b'"batchviz-bundle/')
GZIP_MARK = b"\x1f\x8b"
MAX_FILE_BYTES = 5_000_000
MAX_UNPACKED_BYTES = 50_000_000
TIME_FIELDS = ("start_s", "schedule_s", "forward_s", "sample_s")


class TraceError(ValueError):
    """A trace that cannot be read. The message is one sentence that names the place."""


Kind = TypeVar("Kind")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _read(kind: type[Kind], text: str) -> Kind:
    """One value of this kind. JSON has no tuples and no enums: pydantic's JSON mode knows that, its Python mode does not."""
    key: Any = kind  # mypy does not know that classes are hashable
    value: Kind = _adapter(key).validate_json(text)
    return value


def trace_to_json(trace: Trace, *, durations: bool = True) -> str:
    """One step a line. Without `durations`, times are 0 and the origin is left bare: a golden trace, same everywhere."""
    return join_lines(header_line(trace, durations=durations), (step_line(step, durations) for step in trace.steps))


def header_line(trace: Trace, *, durations: bool = True) -> str:
    """Everything but the steps, as one JSON object on one line: what a run in progress can say at once."""
    header = _header(trace)
    if not durations:
        header["origin"] = {"runner": trace.origin.runner, "seconds": trace.origin.seconds}
    return json.dumps({"schema": TRACE_SCHEMA, **header}, ensure_ascii=False, allow_nan=False)


def step_line(step: StepSnapshot, durations: bool = True) -> str:
    """One step as one JSON object on one line."""
    return json.dumps(_step_to_plain(step, durations), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def join_lines(header: str, steps: Iterable[str]) -> str:
    """The trace file made of a header line and its step lines."""
    return header[:-1] + ', "steps": [\n' + ",\n".join(steps) + "\n]}\n"


def joined_trace(header: str, steps: Sequence[StepSnapshot], status: TraceStatus) -> Trace:
    """A run in progress: what `header_line` said of it, its steps so far, and the status that it has now."""
    plain = json.loads(header) | {"status": status}
    (trace,) = traces_from_json(join_lines(json.dumps(plain), ()), name="the running trace")
    return dataclasses.replace(trace, steps=tuple(steps))


def step_from_line(line: str) -> StepSnapshot:
    """What `step_line` said."""
    return _read(StepSnapshot, line)


def request_line(request: TracedRequest) -> str:
    """One request as one JSON object on one line."""
    return _adapter(TracedRequest).dump_json(request).decode()


def request_from_line(line: str) -> TracedRequest:
    """What `request_line` said."""
    return _read(TracedRequest, line)


def config_from_plain(plain: Mapping[str, Any]) -> RunConfig:
    """A configuration that went from one process to another as plain data."""
    return _read(RunConfig, json.dumps(plain))


def bundle_to_json(traces: Iterable[Trace]) -> str:
    """Several runs of one scenario in one file."""
    members = ",\n".join(trace_to_json(trace).rstrip() for trace in traces)
    return f'{{"schema": "{BUNDLE_SCHEMA}", "traces": [\n{members}\n]}}\n'


def traces_from_json(text: str | bytes, *, name: str = "the trace") -> tuple[Trace, ...]:
    """Reads a trace or a bundle; whoever reads takes either. Raises TraceError with one sentence."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)
    except json.JSONDecodeError as error:
        raise TraceError(f"{name}, line {error.lineno}: this is not JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise TraceError(f"{name} is not a text file in UTF-8; a trace is JSON, plain or gzipped") from None
    except RecursionError:
        raise TraceError(f"{name} is nested too deeply to be a trace") from None
    except TraceError as error:
        raise TraceError(f"{name}: {error}") from None
    except ValueError as error:  # a number with thousands of digits
        raise TraceError(f"{name} holds a number that cannot be read ({error})") from None
    if not isinstance(data, dict):
        raise TraceError(f"{name} is not a trace: expected an object with the key 'schema'")
    schema = data.get("schema")
    if schema == TRACE_SCHEMA:
        return (_trace_from_plain(data, name),)
    if schema == BUNDLE_SCHEMA:
        members = data.get("traces")
        if not isinstance(members, list) or not members:
            raise TraceError(f"{name}: 'traces' must be a list with at least one trace")
        traces = tuple(_trace_from_plain(member, f"{name}, traces[{i}]") for i, member in enumerate(members))
        for i, trace in enumerate(traces):
            if trace.scenario.requests != traces[0].scenario.requests:
                raise TraceError(
                    f"{name}, traces[{i}]: a bundle holds runs of one scenario; its requests differ from traces[0]"
                )
        return traces
    raise TraceError(f"{name}: {_other_schema(schema)}; this version reads {TRACE_SCHEMA!r} and {BUNDLE_SCHEMA!r}")


def read_traces(path: Path) -> tuple[Trace, ...]:
    """Reads a file, plain or gzipped, at most 5 MB (50 MB unpacked). Raises TraceError with one sentence."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise TraceError(f"{path} is a folder; expected a trace file (.json or .json.gz)")
        if size > MAX_FILE_BYTES:
            raise TraceError(f"{path} has {size:,} bytes; a trace file has at most {MAX_FILE_BYTES:,}")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise TraceError(f"{path} does not exist") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    return traces_from_bytes(raw, name=str(path))


def is_trace(raw: bytes) -> bool:
    """Whether a file's first bytes look like a trace's or a bundle's, packed or not; nothing is validated."""
    return raw[:2] == GZIP_MARK or any(mark in raw[:200] for mark in TRACE_MARKS)


def traces_from_bytes(raw: bytes, *, name: str = "the trace") -> tuple[Trace, ...]:
    """The same for bytes in hand, such as an upload."""
    if not raw.strip():
        raise TraceError(f"{name} is empty")
    if raw[:2] == GZIP_MARK:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as unpacker:
                raw = unpacker.read(MAX_UNPACKED_BYTES + 1)
        except (OSError, EOFError, ZlibError):
            raise TraceError(f"{name} is a broken gzip file") from None
        if len(raw) > MAX_UNPACKED_BYTES:
            raise TraceError(f"{name} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
    return traces_from_json(raw, name=name)


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Writes one trace or a bundle; gzipped (without a time stamp, so equal runs give equal files) if named .gz."""
    members = tuple(traces)
    text = trace_to_json(members[0]) if len(members) == 1 else bundle_to_json(members)
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _header(trace: Trace) -> dict[str, Any]:
    plain = {
        "scenario": _without_defaults(trace.scenario),
        "config": _config_to_plain(trace.config),
        "origin": _without_defaults(trace.origin),
        "status": trace.status,
    }
    if trace.forks:
        plain["forks"] = [{"step": fork.step, "before": _config_to_plain(fork.before)} for fork in trace.forks]
    return plain | ({"message": trace.message} if trace.message else {})


def _config_to_plain(config: RunConfig) -> dict[str, Any]:
    plain = dataclasses.asdict(config)
    if not config.policy_class:
        del plain["policy_class"]
    return plain


def _without_defaults(value: Any) -> Any:
    """A dataclass as plain data, fields at their defaults left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _without_defaults(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.default is dataclasses.MISSING or getattr(value, field.name) != field.default
        }
    if isinstance(value, tuple):
        return [_without_defaults(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _step_to_plain(step: StepSnapshot, durations: bool) -> dict[str, Any]:
    defaults = StepSnapshot._field_defaults
    plain = {key: value for key, value in step._asdict().items() if key not in defaults or value != defaults[key]}
    if not durations:
        plain.update(dict.fromkeys(TIME_FIELDS, 0))
    plain["slots"] = [_trimmed(slot) for slot in step.slots]
    return plain


def _trimmed(row: tuple[Any, ...]) -> list[Any]:
    """A slot's columns without the defaults at the end of the row."""
    last = len(row)
    defaults = (None, None, 0, 0, None, None)
    while last > 1 and row[last - 1] == defaults[last - 1]:
        last -= 1
    return list(row[:last])


def _trace_from_plain(data: Any, name: str) -> Trace:
    if not isinstance(data, dict):
        raise TraceError(f"{name} is not a trace: expected an object")
    if data.get("schema") != TRACE_SCHEMA:
        raise TraceError(f"{name}: {_other_schema(data.get('schema'))}; expected {TRACE_SCHEMA!r}")
    body = {key: value for key, value in data.items() if key != "schema"}
    try:
        return _read(Trace, json.dumps(body))
    except ValidationError as error:
        raise TraceError(f"{name}, {_sentence(error)}") from None
    except (ValueError, RecursionError):
        raise TraceError(f"{name} holds text that is not valid Unicode, or is nested too deeply") from None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ""
    for part in first["loc"]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part not in ("call", "arguments"):
            place += f".{part}" if place else str(part)
    message = first["msg"].removesuffix(".")
    more = error.error_count() - 1
    return f"{place or 'the top'}: {message[0].lower()}{message[1:]} (it is {_shown(first['input'])})" + (
        f", and {more} more such faults" if more else ""
    )


def _other_schema(schema: object) -> str:
    is_newer = isinstance(schema, str) and NEWER.fullmatch(schema) is not None
    return f"schema is {_shown(schema)}" + (", of a newer batchviz; update this one to open it" if is_newer else "")


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_constant(name: str) -> float:
    raise TraceError(f"{name} is not a number that a trace can hold")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise TraceError(f"the key {_shown(twice)} stands twice in one object")
    for key, value in pairs:
        if isinstance(value, float) and not math.isfinite(value):
            raise TraceError(f"{_shown(key)} is too large a number")
    return plain
