"""A room is told an address that others can type, as text and as a QR code; a page for oneself tells nobody."""

from __future__ import annotations

import io

import pytest
import segno
from rich.console import Console

from batchviz.room import (
    ANY_HOST,
    BLOCKS,
    MAX_ADDRESSES,
    NO_NETWORK,
    QUIET_MODULES,
    WARNING,
    find_addresses,
    is_own,
    own_address,
    page_address,
    qr_lines,
    room_addresses,
)
from batchviz.serve import tell_room

FOUND = ("192.168.1.7", "127.0.0.1", "10.0.0.3", "192.168.1.7", "169.254.3.3")
URL = "http://192.168.1.7:8501"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.9", "::1", "[::1]"])
def test_what_only_this_machine_reaches_has_no_address_for_a_room(host: str) -> None:
    assert is_own(host)
    assert room_addresses(host, 8501, FOUND) == ()


@pytest.mark.parametrize("host", ANY_HOST)
def test_listening_everywhere_is_told_as_addresses_that_can_be_typed(host: str) -> None:
    assert not is_own(host)
    assert room_addresses(host, 8501, FOUND) == (URL, "http://10.0.0.3:8501")
    assert own_address(host, 8501) == "http://localhost:8501"


def test_an_address_that_was_asked_for_is_the_one_that_is_told() -> None:
    assert room_addresses("192.168.1.9", 80, FOUND) == ("http://192.168.1.9:80",)
    assert room_addresses("desk.local", 8600, FOUND) == ("http://desk.local:8600",)
    assert own_address("desk.local", 8600) == page_address("desk.local", 8600)
    assert room_addresses("fd00::7", 8501, FOUND) == ("http://[fd00::7]:8501",)


def test_a_network_without_a_router_still_has_an_address() -> None:
    assert room_addresses("0.0.0.0", 8501, ["127.0.0.1", "169.254.3.3"]) == ("http://169.254.3.3:8501",)
    assert room_addresses("0.0.0.0", 8501, ["127.0.0.1"]) == ()


def test_not_more_addresses_are_told_than_people_would_try() -> None:
    assert len(room_addresses("0.0.0.0", 8501, [f"10.0.0.{n}" for n in range(1, 30)])) == MAX_ADDRESSES


def test_the_addresses_of_this_machine_can_be_asked_for() -> None:
    assert "127.0.0.1" in find_addresses()


def drawn(lines: tuple[str, ...]) -> list[list[int]]:
    """The modules of a drawing, read back from its blocks."""
    pairs = {BLOCKS[above][below]: (above, below) for above in (0, 1) for below in (0, 1)}
    return [[pairs[block][half] for block in line] for line in lines for half in (0, 1)]


@pytest.mark.parametrize("url", [URL, "http://[fd00::7]:8501", "http://desk.local:8600"])
def test_the_drawing_is_the_qr_code_of_the_address_in_its_light_frame(url: str) -> None:
    rows = drawn(qr_lines(url))
    matrix = segno.make(url, error="m", micro=False).matrix
    size = len(matrix)
    inside = [row[QUIET_MODULES : QUIET_MODULES + size] for row in rows[QUIET_MODULES : QUIET_MODULES + size]]
    assert inside == [list(row) for row in matrix]
    assert sum(map(sum, rows)) == sum(map(sum, inside)), "nothing is dark outside of it"
    assert len(rows[0]) == size + 2 * QUIET_MODULES


class Utf8(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]


class Cp1252(io.StringIO):
    encoding = "cp1252"  # type: ignore[assignment]


def told(addresses: tuple[str, ...], file: io.StringIO, width: int = 120) -> str:
    tell_room(addresses, Console(file=file, width=width, color_system=None))
    return file.getvalue()


def test_a_room_gets_the_code_the_address_and_the_warning() -> None:
    text = told((URL, "http://10.0.0.3:8501"), Utf8())
    assert "\n".join(qr_lines(URL)) in text
    assert f"for the room: {URL}\nif that does not answer: http://10.0.0.3:8501\n{WARNING}\n" in text
    assert "0.0.0.0" not in text


def test_a_code_that_would_be_torn_or_cannot_be_written_is_left_out() -> None:
    for text in (told((URL,), Utf8(), width=30), told((URL,), Cp1252())):
        assert "█" not in text
        assert text == f"for the room: {URL}\n{WARNING}\n"


def test_a_machine_on_no_network_is_told_so() -> None:
    assert told((), Utf8()) == f"{NO_NETWORK}\n"
