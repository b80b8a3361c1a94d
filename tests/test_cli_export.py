"""`export` in the terminal: what it writes, and what it refuses in one sentence."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from batchviz.cli import app
from batchviz.export.formats import FORMATS, format_of
from batchviz.export.images import to_png
from batchviz.recordings import load_recording
from batchviz.scheduler import Policy
from batchviz.trace_file import write_traces
from tests.builders import GOLDEN_LENGTHS, scripted_trace
from tests.story import story


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def image_format(path: Path) -> str | None:
    with Image.open(path) as image:
        return image.format


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "two.json"
    write_traces(path, story(lengths=(4, 9, 5), num_slots=2))
    return path


def test_each_format_is_written_by_its_suffix_and_the_path_is_the_last_line(traces: Path, tmp_path: Path) -> None:
    for known in FORMATS:
        target = tmp_path / f"Out{known.suffix.upper()}"
        done = export(traces, "-o", target)
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines()[-1] == str(target)
        assert target.stat().st_size > 100
        assert format_of(target.name) is known
    assert (tmp_path / "Out.HTML").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert image_format(tmp_path / "Out.PNG") == "PNG"
    assert image_format(tmp_path / "Out.GIF") == "GIF"
    assert json.loads((tmp_path / "Out.PERFETTO.JSON").read_text(encoding="utf-8"))["traceEvents"]
    assert (tmp_path / "Out.MD").read_text(encoding="utf-8").startswith("## Eight chats")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "Out.REQUESTS.CSV").read_text(encoding="utf-8-sig"))))
    assert [row["id"] for row in rows] == ["yes-no", "rome", "capital"] * 2


@pytest.mark.parametrize("preset", ["four-slots", "golden-lengths", "long-prompt"])
def test_a_preset_means_its_usual_panes(preset: str, tmp_path: Path) -> None:
    target = tmp_path / "out.perfetto.json"
    assert export(preset, "-o", target).exit_code == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    named = [event for event in data["traceEvents"] if event["name"] == "process_name"]
    assert len(named) == len(load_recording(preset))


def test_two_traces_of_one_scenario_stand_side_by_side(tmp_path: Path) -> None:
    paths = [tmp_path / f"{policy}.json.gz" for policy in (Policy.STATIC, Policy.CONTINUOUS)]
    for path, trace in zip(paths, story(lengths=(4, 9, 5), num_slots=2), strict=True):
        write_traces(path, [trace])
    target = tmp_path / "out.md"
    assert export(*paths, "-o", target).exit_code == 0
    text = target.read_text(encoding="utf-8")
    assert "| 1: static, 2 slots |" in text
    assert "| 2: continuous, 2 slots |" in text


def test_a_picture_is_of_the_step_that_is_asked_for_or_of_the_last(tmp_path: Path) -> None:
    target = tmp_path / "out.png"
    for options, step in (((), 199), (("--step", "12"), 12)):
        assert export("eight-chats", "-o", target, *options).exit_code == 0
        assert target.read_bytes() == to_png(load_recording("eight-chats"), step)


def test_a_page_opens_as_it_is_told(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    assert export("four-slots", "-o", target, "--step", "34", "--no-play").exit_code == 0
    assert '{"step":34,"play":false}' in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("two.json", "-o", "x.pdf"), "--output 'x.pdf': it must end in one of .html, .png"),
        (("two.json", "-o", "x.csv"), "it must end in one of"),
        (("two.json", "-o", "none/x.html"), "the folder 'none' does not exist"),
        (("two.json", "-o", "x.png", "--step", "14"), "--step 14 is beyond the run: its steps are 0 to 13"),
        (("two.json", "-o", "x.gif", "--step", "1"), "--step says nothing for .gif"),
        (("two.json", "-o", "x.png", "--play"), "--play says nothing for .png"),
        (("two.json", "four-slots", "-o", "x.md"), "these runs are of different scenarios"),
        (("two.json", "two.json", "-o", "x.html"), "there are 4 runs; .html shows at most 3 side by side"),
        (("four-slotz", "-o", "x.md"), "no preset and no file called 'four-slotz'; did you mean four-slots?"),
        (("none.json", "-o", "x.md"), "none.json does not exist"),
        (("empty.json", "-o", "x.md"), "there is not a single step in these runs"),
        (("odd.json", "-o", "x.perfetto.json"), "the trace contradicts itself and cannot be drawn"),
        (("two.json", "-o", "x.html/"), "it must end in one of"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: tuple[str, ...], sentence: str, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_traces(tmp_path / "empty.json", story(max_steps=0))
    trace = scripted_trace(Policy.STATIC, 4, GOLDEN_LENGTHS)
    odd = tuple(
        step._replace(
            slots=tuple(slot._replace(request_id="ghost") if slot.request_id else slot for slot in step.slots)
        )
        for step in trace.steps
    )
    write_traces(tmp_path / "odd.json", [replace(trace, steps=odd)])
    monkeypatch.chdir(tmp_path)
    if arguments[-1] == "x.html/":
        arguments = (*arguments[:-1], ".")
    before = set(tmp_path.iterdir())
    done = export(*arguments)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.output
    assert set(tmp_path.iterdir()) == before
