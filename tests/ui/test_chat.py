"""A message that is told twice joins the runs once."""

from __future__ import annotations

from batchviz.ui.chat import ECHO_S, is_echo


def test_the_same_message_right_after_itself_is_an_echo_and_nothing_else_is() -> None:
    assert not is_echo("hi", 10.0, None)
    assert is_echo("hi", 10.2, ["hi", 10.0])
    assert not is_echo("ho", 10.2, ["hi", 10.0])
    assert not is_echo("hi", 10.0 + ECHO_S, ["hi", 10.0])
