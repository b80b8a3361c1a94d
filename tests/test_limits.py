"""What one viewer may ask stands in one place, and a file that changes it is read whole or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchviz.limits import Limits, LimitsError, limits_from_file, limits_from_plain, read_limits


def test_without_a_file_the_defaults_hold() -> None:
    assert read_limits({}) == Limits()
    assert read_limits({"BATCHVIZ_LIMITS": " "}) == Limits()


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text("max_tokens: 64\nmax_queued: 5\n")
    assert read_limits({"BATCHVIZ_LIMITS": str(path)}) == Limits(max_tokens=64, max_queued=5)
    path.write_text("")
    assert limits_from_file(path) == Limits()


@pytest.mark.parametrize(
    ("plain", "sentence"),
    [
        ([1], "must have one `name: number` a line"),
        ({"max_tokenz": 5}, "'max_tokenz' is no limit; there are max_requests, max_tokens"),
        ({3: 5}, "'3' is no limit"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1 to 1,000,000, not '0'"),
        ({"max_tokens": True}, "not 'True'"),
        ({"max_tokens": 2.0}, "not '2.0'"),
        ({"max_tokens": "many"}, "not 'many'"),
        ({"max_tokens": 10**7}, "not '10000000'"),
    ],
)
def test_a_bad_value_is_named_in_one_sentence(plain: object, sentence: str) -> None:
    with pytest.raises(LimitsError) as error:
        limits_from_plain(plain, "limits.yaml")
    assert str(error.value).startswith("limits.yaml")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\x00", b"x" * 10_001])
def test_a_file_that_is_no_list_of_limits_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(LimitsError, match=r"^broken\.yaml"):
        limits_from_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LimitsError, match=r"^absent\.yaml: the limits cannot be read: No such file"):
        read_limits({"BATCHVIZ_LIMITS": str(tmp_path / "absent.yaml")})
