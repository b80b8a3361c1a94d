"""Figures of runs by name, and what can be computed from them: the claims, questions and numbers of a lesson.

Owns: the little language and what its names mean. Must not know: lessons, files, pages. Examples:

    static.num_steps > continuous.num_steps        runs by the policy of a lesson's pane
    static_8.num_steps == continuous_8.num_steps   by a pane's text, as in a link, with _ for -
    sixteen_chats.static.mean_e2e_steps            of another preset
    static.withheld("yes-no")                      of one request
    continuous.rows("first_refill")                of one step

A sentence is parsed, never executed: numbers, + - * /, comparisons, and, or, min, max, round, and the names here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from statistics import median
from types import MappingProxyType
from typing import Any, Protocol

from batchviz.batch_picture import padding
from batchviz.kv_metrics import KvTotals, kv_totals
from batchviz.ledger import Ledger
from batchviz.metrics import RequestResult, RunMetrics, SlotSteps, request_results, run_metrics
from batchviz.moments import NAMES, OF_A_REQUEST, moment_step, request_step
from batchviz.trace import Trace

Value = float | int | bool

OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
        ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
        ast.Eq: operator.eq, ast.NotEq: operator.ne,
    }
)  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({"min": min, "max": max, "round": round})
RUN_FIGURES = tuple(field.name for field in fields(RunMetrics) if field.name != "slot_steps")
KV_FIGURES = ("used", "held", "reserved", "unused", "peak_used", "peak_reserved", "used_share")
OWN_FIGURES = ("num_slots", "num_requests", "longest_step_s", "median_step_s", "longest_gap_s")
REQUEST_FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "slot": "slot",
        "wait": "e2e_steps",
        "wait_s": "e2e_s",
        "ttft": "ttft_steps",
        "ttft_s": "ttft_s",
        "queue": "queue_steps",
        "withheld": "withheld_steps",
        "withheld_s": "withheld_s",
        "output_tokens": "num_output_tokens",
    }
)
STEP_FIGURES = ("rows", "padded_rows", "keys", "padded_keys")
MAX_LENGTH = 400


class FigureError(ValueError):
    """A sentence that means nothing here. The message is one sentence."""


class Run:
    """One run, and its figures by name, each worked out when it is asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def results(self) -> dict[str, RequestResult]:
        return {result.request.id: result for result in request_results(self.trace)}

    @cached_property
    def metrics(self) -> RunMetrics:
        return run_metrics(self.trace, tuple(self.results.values()))

    @cached_property
    def kv(self) -> KvTotals:
        return kv_totals(self.trace)

    @cached_property
    def ledger(self) -> Ledger:
        ledger = Ledger()
        for snapshot in self.trace.steps:
            ledger.append(snapshot)
        return ledger

    def moment(self, text: str) -> int | None:
        return moment_step(self.trace, self.results, text)

    def figure(self, name: str) -> Value | None:
        """Of the whole run. Raises FigureError for an unknown name."""
        if name in RUN_FIGURES:
            return getattr(self.metrics, name)  # type: ignore[no-any-return]
        if name in SlotSteps._fields or name in ("working", "total"):
            return getattr(self.metrics.slot_steps, name)  # type: ignore[no-any-return]
        if name.startswith("kv_") and name.removeprefix("kv_") in KV_FIGURES:
            return getattr(self.kv, name.removeprefix("kv_"))  # type: ignore[no-any-return]
        if name in NAMES:
            return self.moment(name)
        match name:
            case "num_slots":
                return self.trace.num_slots
            case "num_requests":
                return len(self.trace.scenario.requests)
            case "longest_step_s":
                return max((step.duration_s for step in self.trace.steps), default=None)
            case "median_step_s":
                return median(step.duration_s for step in self.trace.steps) if self.trace.steps else None
            case "longest_gap_s":
                return max((gap for result in self.results.values() for gap in result.itl_s), default=None)
        known = (
            *RUN_FIGURES,
            *SlotSteps._fields,
            "working",
            *OWN_FIGURES,
            *(f"kv_{one}" for one in KV_FIGURES),
            *NAMES,
        )
        raise FigureError(f"a run has no figure {name!r}; it has {', '.join(known)}")

    def figure_of(self, name: str, whose: str) -> Value | None:
        """Of one request, or of the step of a moment. Raises FigureError for what is unknown."""
        if name in STEP_FIGURES:
            step = self.moment(whose)
            return None if step is None else getattr(padding(self.ledger[step]), name)
        request_id = whose
        if request_id not in self.results:
            raise FigureError(f"no request is called {request_id!r}; there are {', '.join(self.results)}")
        result = self.results[request_id]
        if name == "prompt_tokens":
            return result.request.num_prompt_tokens
        if name in OF_A_REQUEST:
            return request_step(result, name)
        if name in REQUEST_FIGURES:
            return getattr(result, REQUEST_FIGURES[name])  # type: ignore[no-any-return]
        known = ", ".join(("prompt_tokens", *OF_A_REQUEST, *REQUEST_FIGURES))
        raise FigureError(f"a request has no figure {name!r}; it has {known}; a step has {', '.join(STEP_FIGURES)}")


class Runs(Protocol):
    """Where runs come from."""

    def run(self, pane: str, scenario: str | None) -> Run:
        """A pane's run, by name (a policy, or a pane's text with _ for -). Raises FigureError."""
        ...

    def is_scenario(self, name: str) -> bool:
        """Whether a name (with _ for -) is a scenario's."""
        ...


def evaluate(text: str, runs: Runs) -> Value:
    """What the sentence says of these runs. Raises FigureError, one sentence."""
    if len(text) > MAX_LENGTH:
        raise FigureError(f"a sentence has at most {MAX_LENGTH} characters, and this one has {len(text):,}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FigureError(f"{text!r} cannot be read as a comparison of figures") from None
    try:
        return _value(tree.body, runs)
    except ZeroDivisionError:
        raise FigureError(f"{text!r} divides by nothing") from None
    except FigureError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise FigureError(f"{text!r} has no value: {error}") from None


def shown(value: Value, form: str = "") -> str:
    """A figure in a sentence: whole numbers with commas, others with a digit or two, or as `form` (Python's) says."""
    if form:
        return format(value, form)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _value(node: ast.expr, runs: Runs) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, runs)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATORS:
            return OPERATORS[type(operation)](_value(left, runs), _value(right, runs))  # type: ignore[no-any-return]
        case ast.BoolOp(op=operation, values=values):
            found = [bool(_value(value, runs)) for value in values]
            return all(found) if isinstance(operation, ast.And) else any(found)
        case ast.Compare(left=left, ops=operations, comparators=others) if all(
            type(op) in OPERATORS for op in operations
        ):
            sides = [_value(one, runs) for one in (left, *others)]
            pairs = zip(operations, sides, sides[1:], strict=False)
            return all(OPERATORS[type(one)](first, second) for one, first, second in pairs)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, runs) for argument in arguments))  # type: ignore[no-any-return]
        case ast.Call(
            func=ast.Attribute(value=run, attr=name), args=[ast.Constant(value=str() as request_id)], keywords=[]
        ):
            return _known(_run(run, runs).figure_of(name, request_id), f"{ast.unparse(node)}")
        case ast.Attribute(value=run, attr=name):
            return _known(_run(run, runs).figure(name), ast.unparse(node))
    raise FigureError(f"{ast.unparse(node)!r} is neither a number nor a figure of a run")


def _run(node: ast.expr, runs: Runs) -> Run:
    match node:
        case ast.Name(id=pane):
            return runs.run(pane, None)
        case ast.Attribute(value=ast.Name(id=scenario), attr=pane) if runs.is_scenario(scenario):
            return runs.run(pane, scenario)
    raise FigureError(f"{ast.unparse(node)!r} names no run; write a policy, such as static, or preset.policy")


def _known(value: Value | None, what: str) -> Value:
    if value is None:
        raise FigureError(f"{what} has no value in this run")
    return value
