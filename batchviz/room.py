"""The page's address for a room: what others on the network can type, and the QR code of it.

Owns: which addresses, the code's drawing, the warning. Must not know: servers, pages. Looking sends nothing anywhere.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

ANY_HOST = ("0.0.0.0", "::")
MAX_ADDRESSES = 4
QUIET_MODULES = 4  # the light frame that the standard asks for
OUTSIDE = "192.0.2.1"  # an address that belongs to nobody (RFC 5737); it is only asked which way it would be reached
WARNING = (
    "Everybody who can reach this machine on the network can open the page, start runs on its processor and send it "
    "files, without a password or encryption; Ctrl-C ends that."
)
NO_NETWORK = "This machine has no address on a network, so nobody else can reach it."
# Both rows of a line: above dark or light, below dark or light.
BLOCKS = ((" ", "▄"), ("▀", "█"))


def is_own(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def page_address(host: str, port: int) -> str:
    """
    >>> page_address("192.168.1.7", 8501), page_address("fd00::7", 8501)
    ('http://192.168.1.7:8501', 'http://[fd00::7]:8501')
    """
    bare = host.strip("[]")
    return f"http://[{bare}]:{port}" if ":" in bare else f"http://{bare}:{port}"


def own_address(host: str, port: int) -> str:
    """What a browser on this machine opens. A server that listens everywhere is asked at localhost."""
    return page_address("localhost" if host.strip("[]") in ANY_HOST else host, port)


def room_addresses(host: str, port: int, found: Iterable[str]) -> tuple[str, ...]:
    """What others can type, the likeliest first; none if only this machine can reach `host`.

    `found` are this machine's addresses. 0.0.0.0 itself is never one of them: nobody can type it.
    """
    if is_own(host):
        return ()
    if host.strip("[]") not in ANY_HOST:
        return (page_address(host, port),)
    usable = [ipaddress.ip_address(address) for address in dict.fromkeys(found)]
    reachable = [address for address in usable if not (address.is_loopback or address.is_unspecified)]
    given = [address for address in reachable if not address.is_link_local] or reachable
    return tuple(page_address(str(address), port) for address in given[:MAX_ADDRESSES])


def find_addresses() -> tuple[str, ...]:
    """This machine's IPv4 addresses, the one on the way to elsewhere first."""
    import psutil

    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    cards = psutil.net_if_addrs()
    others = [card.address for name in cards if name in up for card in cards[name] if card.family == socket.AF_INET]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((OUTSIDE, 9))  # of a datagram socket this sends nothing
            return (str(probe.getsockname()[0]), *others)
        except OSError:
            return tuple(others)


def qr_lines(text: str) -> tuple[str, ...]:
    """The QR code of a text, two rows of it a line: dark modules are blocks, so draw it dark on light."""
    import segno

    code = segno.make(text, error="m", micro=False)
    rows = [[int(module) & 1 for module in row] for row in code.matrix_iter(border=QUIET_MODULES)]
    rows += [[0] * len(rows[0])] * (len(rows) % 2)
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return tuple("".join(BLOCKS[above][below] for above, below in zip(*pair, strict=True)) for pair in pairs)
