"""Scenario files: a stranger's YAML or JSON -> Scenario, and back. Whatever is wrong is said in one sentence.

Owns: reading and writing files, and what holds between keys. Must not know: presets, engines, models, pages.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath

import yaml
from pydantic import ValidationError

from batchviz.given_file import name_from, read_given_file, shown_source, too_large
from batchviz.prefill import PrefillMode, make_prefill
from batchviz.scenario import (
    ArrivalUnitName,
    Scenario,
    ScenarioError,
    ScenarioRequest,
    shown_text,
)
from batchviz.scenario_schema import (
    RULES,
    GenerateFields,
    Path,
    RequestFields,
    ScenarioFields,
    read_arrival,
    sentence,
    shown_path,
    shown_value,
)
from batchviz.scenario_text import MAX_JSON_BYTES, MAX_YAML_BYTES, Document, read_document, read_plain
from batchviz.scheduler import Policy
from batchviz.workload_generator import Generator


def read_scenario_file(path: str | os.PathLike[str]) -> Scenario:
    """Reads a scenario file: JSON if its name ends with `.json`, YAML otherwise. Raises ScenarioError."""
    given = os.fspath(path)
    is_json = given.lower().endswith(".json")
    limit, kind = (MAX_JSON_BYTES, "JSON") if is_json else (MAX_YAML_BYTES, "YAML")
    content = read_given_file(given, limit, f"a scenario in {kind}", "YAML or JSON")
    return parse_scenario(content, given, is_json=is_json, default_name=FilePath(given).stem)


def parse_scenario(content: bytes, source: str, *, is_json: bool, default_name: str = "scenario") -> Scenario:
    """A file's bytes -> Scenario. `source` is what messages call it. Raises ScenarioError."""
    return _build(read_document(content, shown_source(source), is_json=is_json), default_name)


def scenario_from_data(data: object, source: str = "scenario", default_name: str = "scenario") -> Scenario:
    """Plain data with a scenario file's keys (a page's table, a link) -> Scenario. Raises ScenarioError."""
    return _build(Document(shown_source(source), data, lines={}), default_name)


def dump_scenario(scenario: Scenario) -> str:
    """YAML that reads back equal. Raises ScenarioError if that would be longer than a scenario file may be."""
    requests = [
        {"id": request.id}
        | ({"prompt": request.prompt} if request.prompt is not None else {"prompt_tokens": request.prompt_tokens})
        | {"max_tokens": request.max_tokens}
        | ({"output_tokens": request.output_tokens} if request.output_tokens is not None else {})
        | ({"arrival": request.arrival} if request.arrival else {})
        for request in scenario.requests
    ]
    settings = {
        "prefill": None if scenario.prefill is PrefillMode.MIXED else str(scenario.prefill),
        "max_batched_tokens": scenario.max_batched_tokens,
        "kv_budget_tokens": scenario.kv_budget_tokens,
        "group_timeout": scenario.group_timeout or None,
    }
    data = {
        "name": scenario.name,
        "title": scenario.title,
        "look_for": scenario.look_for,
        "num_slots": scenario.num_slots,
        "policies": [str(policy) for policy in scenario.policies],
        "arrival_unit": scenario.arrival_unit,
        **{key: value for key, value in settings.items() if value is not None},
        "requests": requests,
    }
    num_characters = sum(len(request.prompt or "") for request in scenario.requests)
    if num_characters > MAX_YAML_BYTES:  # said before minutes are spent on writing it
        raise too_large(f"scenario {shown_text(scenario.name)}", num_characters, MAX_YAML_BYTES, "a scenario in YAML")
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    if len(text.encode()) > MAX_YAML_BYTES:
        raise too_large(
            f"scenario {shown_text(scenario.name)}", len(text.encode()), MAX_YAML_BYTES, "a scenario in YAML"
        )
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes every text that this project's reader, which follows YAML 1.2, would take for something else."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        is_plain = read_plain(text) == text and text.isprintable()
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _Dumper.represent_text)


def _build(document: Document, default_name: str) -> Scenario:
    if not isinstance(document.data, dict):
        problem = f"the file holds {shown_value(document.data)}; it must hold a mapping with a list called requests"
        raise document.error((), problem)
    try:
        fields = ScenarioFields.model_validate(document.data)
    except ValidationError as error:
        raise _first_error(document, error) from None
    name = fields.name or name_from(default_name)
    unit = fields.arrival_unit
    if fields.generate is not None:
        requests = _generate(document, fields, fields.generate)
    elif fields.requests:
        requests = tuple(_build_request(document, i, request, unit) for i, request in enumerate(fields.requests))
    else:
        raise document.error(("requests",), sentence("missing", ("requests",), None))
    first_place: dict[str, int] = {}
    for place, request in enumerate(requests):
        first = first_place.setdefault(request.id, place)
        if first != place:
            problem = f"requests[{place}].id is {shown_text(request.id)} like requests[{first}].id; give each its own"
            raise document.error(("requests", place, "id"), problem)
    try:
        make_prefill(PrefillMode(fields.prefill), fields.num_slots, fields.max_batched_tokens)
    except ValueError as error:
        raise document.error(("max_batched_tokens",), str(error)) from None
    return Scenario(
        name=name,
        title=fields.title or name,
        requests=requests,
        look_for=fields.look_for,
        num_slots=fields.num_slots,
        policies=tuple(Policy(policy) for policy in fields.policies),
        arrival_unit=unit,
        prefill=PrefillMode(fields.prefill),
        max_batched_tokens=fields.max_batched_tokens,
        kv_budget_tokens=fields.kv_budget_tokens,
        group_timeout=fields.group_timeout,
    )


def _generate(document: Document, fields: ScenarioFields, given: GenerateFields) -> tuple[ScenarioRequest, ...]:
    if fields.requests:
        problem = "the file has both requests and generate; leave one of the two out"
        raise document.error(("generate",), problem)
    generator = Generator(
        num_requests=given.requests,
        arrivals=given.arrivals,
        prompt_tokens=given.prompt_tokens,
        output_tokens=given.output_tokens,
        rate=given.rate,
        burst=given.burst,
        seed=given.seed,
    )
    try:
        return generator.requests(fields.arrival_unit)
    except ScenarioError as error:
        raise document.error(("generate", "rate"), str(error)) from None


def _build_request(
    document: Document, place: int, fields: RequestFields, arrival_unit: ArrivalUnitName
) -> ScenarioRequest:
    here: Path = ("requests", place)
    if fields.prompt is None and fields.prompt_tokens is None:
        raise document.error(here, f"{shown_path(here)} has neither prompt nor prompt_tokens; give it one of the two")
    if fields.prompt is not None and fields.prompt_tokens is not None:
        problem = f"{shown_path(here)} has both prompt and prompt_tokens; leave one of the two out"
        raise document.error((*here, "prompt_tokens"), problem)
    max_tokens = fields.output_tokens if fields.max_tokens is None else fields.max_tokens
    if max_tokens is None:
        problem = f"{shown_path(here)}.max_tokens is missing; it must be {RULES['max_tokens']}"
        raise document.error(here, f"{problem} (or give output_tokens, an exact length)")
    arrival = read_arrival(fields.arrival, arrival_unit)
    if arrival is None:
        rule = RULES["arrival in seconds" if arrival_unit == "seconds" else "arrival"]
        problem = f"{shown_path(here)}.arrival is {shown_value(fields.arrival)}; it must be {rule}"
        raise document.error((*here, "arrival"), problem)
    return ScenarioRequest(fields.id, max_tokens, fields.prompt, fields.prompt_tokens, fields.output_tokens, arrival)


def _first_error(document: Document, error: ValidationError) -> ScenarioError:
    """One sentence for the problem that explains most: a misspelt key comes before the key that is missing for it."""
    problems = error.errors(include_url=False, include_context=False)
    problem = next((each for each in problems if each["type"] != "missing"), problems[0])
    return document.error(tuple(problem["loc"]), sentence(problem["type"], tuple(problem["loc"]), problem["input"]))
