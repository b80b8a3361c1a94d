"""The doctor says what must be mended, each fault by itself, on facts that are made up; and nothing it meets is a traceback."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from batchviz.cli_doctor import print_checks, to_plain
from batchviz.doctor import (
    BUSY_PCT,
    FETCH_BYTES,
    FINE_STEP_MS,
    MODEL_BYTES,
    PAGE_BYTES,
    Check,
    Facts,
    Mark,
    Port,
    Steps,
    Weights,
    examine,
    must_mend,
    read_pins,
)
from batchviz.doctor_facts import find_installed, find_pins, find_port, find_room
from tests.weights_folder import write_manifest

ROOT = Path(__file__).parent.parent
FOLDER = Path("cache") / "model"
STEPS = Steps(81.4, 4, "cpu", "float32", True, "", 3.0)
WELL = Facts(
    python=(3, 11, 7),
    pins={"torch": "2.13.0", "rich": "15.0.0"},
    installed={"torch": "2.13.0+cpu", "rich": "15.0.0"},
    memory=(16_000_000_000, 9_000_000_000),
    cache=Path("cache"),
    cache_free=80_000_000_000,
    weights=Weights(FOLDER, True, None),
    port=Port(8501, None),
    browser="firefox",
    steps=STEPS,
)


def found(name: str, facts: Facts = WELL, **changes: Any) -> Check:
    """The check of that name on a well machine with these changes."""
    (check,) = (check for check in examine(facts._replace(**changes)) if check.name == name)
    return check


def test_a_well_machine_has_nothing_to_mend_and_nothing_to_do() -> None:
    checks = examine(WELL)
    assert {check.mark for check in checks} == {Mark.OK}
    assert all(not check.advice for check in checks)
    assert not must_mend(checks)


FAULTS = [
    ("Python", {"python": (3, 10, 12)}, "3.10.12", "install Python 3.11"),
    ("packages", {"installed": {"torch": None, "rich": "15.0.0"}}, "missing: torch", "pip install -r requirements.txt"),
    ("memory", {"memory": (8 * 10**9, MODEL_BYTES + PAGE_BYTES - 1)}, "1.7 GB free of 8.0 GB", "close other programs"),
    ("disk", {"cache_free": FETCH_BYTES - 1, "weights": Weights(FOLDER, False, None)}, "needed", "make room"),
    ("disk", {"cache_free": "read-only", "weights": Weights(FOLDER, False, None)}, "read-only", "BATCHVIZ_CACHE"),
    ("weights", {"weights": Weights(FOLDER, False, None)}, f"not in {FOLDER}", "python -m batchviz fetch"),
    ("weights", {"weights": Weights(FOLDER, True, "the hash is wrong")}, "the hash is wrong", "delete the folder"),
    ("weights", {"weights": "No module named 'platformdirs'"}, "platformdirs", "pip install"),
    ("port", {"port": Port(8501, "is in use", 8503)}, "8501: is in use", "python -m batchviz app --port 8503"),
    ("port", {"port": Port(8501, "is in use")}, "8501: is in use", "another port"),
    ("one step", {"steps": "No module named 'torch'"}, "the model fails: No module named 'torch'", "pip install"),
]


@pytest.mark.parametrize(("name", "changes", "text", "advice"), FAULTS, ids=[f"{f[0]}: {f[2]}" for f in FAULTS])
def test_a_fault_is_one_thing_to_mend_with_its_cure(name: str, changes: Any, text: str, advice: str) -> None:
    check = found(name, **changes)
    assert check.mark is Mark.MEND
    assert text in check.found
    assert advice in check.advice
    assert must_mend(examine(WELL._replace(**changes)))


NOTES = [
    ("packages", {"installed": {"torch": "2.12.0", "rich": "15.0.0"}}, "torch 2.12.0 instead of 2.13.0"),
    ("packages", {"pins": "there is no requirements.txt"}, "no requirements.txt"),
    ("memory", {"memory": (10**9, 10**8)}, "0.1 GB free of 1.0 GB"),
    ("memory", {"memory": "no psutil"}, "no psutil"),
    ("disk", {"cache_free": "cannot be written to (read-only)"}, "read-only"),
    ("browser", {"browser": None}, "none"),
    ("one step", {"steps": STEPS._replace(median_ms=FINE_STEP_MS + 1)}, "251 ms with 4 slots, float32 on cpu: slow"),
    ("one step", {"steps": STEPS._replace(busy_pct=BUSY_PCT + 1)}, "26 % busy"),
    ("one step", {"steps": None}, "--no-model"),
    ("bit-identical", {"steps": STEPS._replace(exact=False, exact_note="1 of 12")}, "no (1 of 12)"),
    ("bit-identical", {"steps": STEPS._replace(exact=None)}, "not checked"),
    ("bit-identical", {"steps": None}, "not loaded"),
]


@pytest.mark.parametrize(("name", "changes", "text"), NOTES, ids=[f"{n[0]}: {n[2]}" for n in NOTES])
def test_what_cannot_or_need_not_be_mended_is_a_note(name: str, changes: Any, text: str) -> None:
    check = found(name, **changes)
    assert check.mark is Mark.NOTE
    assert text in check.found
    assert not must_mend(examine(WELL._replace(**changes)))


def test_without_weights_no_step_is_asked_for_and_only_the_weights_are_to_mend() -> None:
    facts = WELL._replace(steps=None, weights=Weights(FOLDER, False, None))
    assert "the weights come first" in found("one step", facts).found
    assert [check.name for check in examine(facts) if check.mark is Mark.MEND] == ["weights"]


def test_a_full_disk_is_well_where_the_weights_are_there_already() -> None:
    assert found("disk", cache_free=0).mark is Mark.OK


def test_a_quick_machine_is_fine_for_live_runs_and_a_slow_one_is_told_to_use_recordings() -> None:
    assert "81 ms with 4 slots, float32 on cpu: fine for live runs" in found("one step").found
    assert found("one step", steps=STEPS._replace(median_ms=900.0)).advice == "use recorded runs"


def test_the_table_can_be_read_without_colour_and_takes_words_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    print_checks((Check("weights", Mark.MEND, "in [red]here", "do"), Check("port", Mark.OK, "free")), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split()[:2] for line in text.splitlines()[1:3]] == [["MEND", "weights"], ["ok", "port"]]
    assert "in [red]here" in text
    assert "to mend: weights" in text


def test_the_json_names_itself_and_says_whether_all_is_ready() -> None:
    assert to_plain(examine(WELL))["ready"] is True
    plain = json.loads(json.dumps(to_plain(examine(WELL._replace(browser=None, port=Port(8501, "is in use"))))))
    assert (plain["schema"], plain["ready"]) == ("batchviz-doctor/1", False)
    port = next(check for check in plain["checks"] if check["name"] == "port")
    assert port["mark"] == "mend"
    assert set(port) == {"name", "mark", "found", "advice"}


def test_pins_are_read_as_pip_reads_them() -> None:
    assert read_pins("# all\n-r other.txt\nrich==15.0.0  # tables\n\nllama-cpp.x==1.0+cpu\nloose>=1\n") == {
        "rich": "15.0.0",
        "llama-cpp.x": "1.0+cpu",
    }
    assert {"torch", "streamlit", "rich"} <= set(find_pins(ROOT / "requirements.txt"))
    assert "no requirements.txt" in str(find_pins(ROOT / "nowhere" / "requirements.txt"))


def test_a_package_that_is_not_there_has_no_version() -> None:
    versions = find_installed(["rich", "no-such-package-of-ours"])
    assert versions["rich"]
    assert versions["no-such-package-of-ours"] is None


def test_a_port_in_use_is_noticed_and_the_next_free_one_offered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        port = find_port(number)
    assert port.problem == "is in use"
    assert port.free is not None
    assert port.free > number
    assert find_port(number) == Port(number, None)


def test_a_folder_that_cannot_be_written_to_has_no_room(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    room = find_room(tmp_path / "not" / "yet" / "there")
    assert isinstance(room, int)
    assert room > 0
    assert "cannot be written to (not a directory)" in str(find_room(tmp_path / "file" / "cache"))


def doctor(cache: Path, *arguments: str, stubs: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(folder) for folder in (stubs, ROOT) if folder is not None)
    return subprocess.run(
        [sys.executable, "-m", "batchviz", "doctor", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(cache.parent), "BATCHVIZ_CACHE": str(cache)},
    )


def whole_weights(cache: Path, content: bytes = b"weights") -> Path:
    """A folder that looks like the converted weights, with a true manifest."""
    from batchviz.model import weights

    folder = cache / weights.FOLDER
    folder.mkdir(parents=True)
    (folder / weights.WEIGHTS_FILE).write_bytes(content)
    write_manifest(folder, content)
    return folder


def check_of(done: subprocess.CompletedProcess[str], name: str) -> dict[str, str]:
    assert "Traceback" not in done.stderr
    checks: list[dict[str, str]] = json.loads(done.stdout)["checks"]
    (check,) = (check for check in checks if check["name"] == name)
    return check


def test_a_cache_that_cannot_be_made_and_a_port_in_use_are_said_and_exit_with_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        done = doctor(tmp_path / "file" / "cache", "--json", "--port", str(number))
    assert done.returncode == 1
    assert check_of(done, "disk")["mark"] == "mend"
    assert check_of(done, "weights")["mark"] == "mend"
    assert check_of(done, "port")["found"] == f"{number}: is in use"
    assert "the weights come first" in check_of(done, "one step")["found"]


def test_weights_with_another_hash_are_said_and_never_loaded(tmp_path: Path) -> None:
    folder = whole_weights(tmp_path / "cache", b"weights")
    (folder / "model.safetensors").write_bytes(b"Weights")
    done = doctor(tmp_path / "cache", "--json")
    assert done.returncode == 1
    assert "does not have the hash" in check_of(done, "weights")["found"]
    assert "the weights come first" in check_of(done, "one step")["found"]


def test_missing_torch_is_one_sentence(tmp_path: Path) -> None:
    whole_weights(tmp_path / "cache")
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
    )
    done = doctor(tmp_path / "cache", "--json", stubs=tmp_path / "stubs")
    assert check_of(done, "weights")["mark"] == "ok"
    assert check_of(done, "one step")["found"] == "the model fails: No module named 'torch'"


def test_weights_that_no_model_can_be_made_of_are_one_sentence(tmp_path: Path) -> None:
    whole_weights(tmp_path / "cache")
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "torch.py").write_text("raise OSError('a library of torch cannot be loaded')\n")
    done = doctor(tmp_path / "cache", "--json", stubs=tmp_path / "stubs")
    assert check_of(done, "one step")["found"] == "the model fails: a library of torch cannot be loaded"


def test_without_the_packages_of_the_terminal_there_is_one_sentence_too(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n")
    done = doctor(tmp_path / "cache", stubs=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the package typer is not installed" in done.stderr


def test_a_python_that_is_too_old_is_told_in_one_sentence() -> None:
    code = "import sys; sys.version_info = (3, 10, 1); import batchviz"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith("batchviz needs Python 3.11 or newer; this is ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.model
def test_a_step_of_the_real_model_is_timed() -> None:
    from batchviz.doctor_facts import measure_steps

    steps = measure_steps(lambda message, fraction: None)
    assert isinstance(steps, Steps), steps
    assert 0 < steps.median_ms < 60_000
    assert isinstance(steps.exact, bool)
