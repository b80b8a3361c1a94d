"""The house keeps its walls: who may import whom, how long a file may be, where colours live, what stays immutable."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "batchviz"
FILES = sorted(PACKAGE.rglob("*.py"))

# From the ground up. A file imports only from floors under its own; neighbours on one floor do not know each other,
# except inside a room (a name ending in ".").
FLOORS: tuple[tuple[str, ...], ...] = (
    ("request", "machine", "colours", "room", "doctor", "offline", "limits", "patience"),
    ("prefill",),
    ("scheduler",),
    ("scenario",),
    ("given_file", "workload_generator"),
    ("workload_file",),
    ("scenario_schema",),
    ("scenario_text",),
    ("scenario_file",),
    ("presets", "link"),
    ("trace",),
    ("runner",),
    ("engine",),
    ("__init__",),
    ("check_rules", "ledger", "check_any", "own_policy"),
    ("trace_file", "metrics", "kv_metrics", "check", "player_assets"),
    ("breakpoints", "explain", "debug_run"),
    ("debugger", "batch_picture"),
    ("pace",),
    ("timeline",),
    ("phrases",),
    ("pane_story",),
    ("narrate",),
    ("playback",),
    ("model.",),
    ("export.",),
    ("runs",),
    ("panes",),
    ("recordings", "together", "debug_start", "debug_remote", "diff", "debug_source", "debug_registry"),
    ("moments", "markdown_blocks", "step_picture", "lesson_schema", "lesson_source", "lesson_assets"),
    ("figures",),
    ("lesson_runs",),
    ("lesson",),
    ("lesson_payload",),
    ("static_site",),
    ("jobs", "child_process"),
    ("job_queue", "run_log"),
    ("live", "worker", "serve"),
    ("cli_runs", "debug_model", "doctor_facts"),
    ("debug_child",),
    ("worker_child",),
    ("record", "bench", "bench_report", "cli_options"),
    ("debug_tables", "debug_words"),
    ("debug_shell",),
    ("cli_bench", "cli_debug", "cli_serve", "cli_doctor", "cli_offline", "cli_site", "cli_export"),
    ("cli_machine",),
    ("cli",),
    ("ui.theme", "ui.words", "ui.tidy"),
    ("ui.charts", "ui.player", "ui.lesson_view"),
    ("ui.series_charts", "ui.state", "ui.batch_charts"),
    ("ui.source", "ui.debug_views", "ui.knobs", "ui.chart_data", "ui.chat"),
    ("ui.address", "ui.prompts", "ui.first_page"),
    ("ui.figures", "ui.files", "ui.health"),
    ("ui.debug_desk",),
    ("ui.debug_changes",),
    ("ui.", "ui.live_panel"),
    ("ui.pages.",),
    ("ui.pages.compare", "ui.pages.what_is_real", "ui.pages.debug", "ui.pages.learn"),
    ("ui.warm_up",),
    ("__main__",),
)


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__") + "." if name.endswith(".__init__") else name


def floor_of(name: str) -> int:
    for number, floor in enumerate(FLOORS):
        if name in floor:
            return number
    for number, floor in enumerate(FLOORS):
        if any(room.endswith(".") and name.startswith(room) for room in floor):
            return number
    raise AssertionError(f"batchviz/{name} has no floor: give it one in FLOORS")


def imports_of(path: Path) -> Iterator[str]:
    """Every module imported anywhere in the file, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_import_runs_upwards(path: Path) -> None:
    name = module_name(path)
    known = {module_name(file) for file in FILES}
    for imported in imports_of(path):
        below = imported.removeprefix("batchviz.") if imported.startswith("batchviz.") else None
        if imported == "batchviz":
            below = "__init__"
        if below is None or below not in known or below == name:
            continue
        same_room = name.rpartition(".")[0] and name.rpartition(".")[0] == below.rpartition(".")[0]
        assert floor_of(below) < floor_of(name) or (same_room and floor_of(below) == floor_of(name)), (
            f"{name} imports {below}"
        )


@pytest.mark.parametrize("path", [*FILES, ROOT / "app.py"], ids=str)
def test_torch_and_streamlit_stay_in_their_rooms(path: Path) -> None:
    roots = {imported.split(".")[0] for imported in imports_of(path)}
    where = path.relative_to(ROOT).as_posix()
    if not where.startswith("batchviz/model/"):
        assert not roots & {"torch", "transformers", "gguf", "accelerate", "safetensors"}
    if not where.startswith("batchviz/ui/") and where != "app.py":
        assert "streamlit" not in roots


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_batchviz_loads_neither_torch_nor_streamlit() -> None:
    assert not loaded_by("import batchviz") & {"torch", "transformers", "streamlit", "pandas", "altair"}


def test_the_pages_load_no_torch() -> None:
    assert not loaded_by("import batchviz.ui.pages.compare") & {"torch", "transformers"}


def long_files() -> list[Path]:
    player = [path for path in (ROOT / "assets").rglob("*") if path.suffix in (".js", ".css", ".html")]
    return [*FILES, *player, ROOT / "app.py"]


@pytest.mark.parametrize("path", long_files(), ids=lambda path: path.name)
def test_files_are_short_and_say_what_they_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= (40 if path.name == "app.py" else 300)
    if path.suffix == ".py" and text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_module_level_mutable_state(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        value = getattr(node, "value", None)
        names = [ast.unparse(target) for target in getattr(node, "targets", [getattr(node, "target", None)]) if target]
        if isinstance(node, ast.Assign | ast.AnnAssign) and names != ["__all__"]:
            mutable = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
            called = isinstance(value, ast.Call) and ast.unparse(value.func) in ("list", "dict", "set", "defaultdict")
            shared = mutable or called
            assert not shared, f"{path}: {names} can be changed by anybody"


def test_colours_live_in_one_file_of_python_and_in_the_players_css() -> None:
    colour = re.compile(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|rgba?\(")
    for path in [*FILES, *(ROOT / "assets").rglob("*.js")]:
        if path != PACKAGE / "colours.py":
            assert not colour.search(path.read_text(encoding="utf-8")), f"{path} names a colour"


def test_text_never_becomes_html() -> None:
    danger = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|unsafe_allow_html|unsafe_allow_javascript|(?<!\.)\beval\("
    )
    for path in [*FILES, ROOT / "app.py", *(ROOT / "assets").rglob("*.js")]:
        assert not danger.search(path.read_text(encoding="utf-8")), path


def test_the_readme_names_the_two_commands_and_ci_calls_one() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_requirement_is_pinned() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            requirement = line.split("#")[0].strip()
            assert not requirement or requirement.startswith("-r ") or re.fullmatch(r"[\w.-]+==[\w.]+", requirement)
