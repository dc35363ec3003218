"""Editing a prefilled line, on a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from llm_do.ui.terminal.line_editor import edit_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def line_after(text: str, keys: str) -> str | None:
    """The line after these keys and Enter."""
    import pty

    ours, theirs = pty.openpty()

    async def edit() -> str | None:
        seen = b""

        def watch() -> None:
            nonlocal seen
            prompted = b"rule: " in seen
            seen += os.read(ours, 4096)
            if not prompted and b"rule: " in seen:
                os.write(ours, f"{keys}\r".encode())

        asyncio.get_running_loop().add_reader(ours, watch)
        try:
            async with asyncio.timeout(20):
                return await edit_line(theirs, theirs, "rule: ", text, lambda: (80, 24), lambda: None)
        finally:
            asyncio.get_running_loop().remove_reader(ours)

    try:
        return asyncio.run(edit())
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("keys", "becomes"),
    [
        ("", "send(to=ann)"),
        ("1", "1"),
        ("send", "send"),
        ("\x1b[D\x1b[C\x7f\x7f\x7f\x7f*)", "send(to=*)"),
        ("\x7f", ""),
        ("\x15", ""),
        ("\x0b", ""),
        ("\x1b[3~", ""),
        ("\x02\x15", ""),
        ("\x1b[200~send(*)\n\x1b[201~", "send(*)"),
        ("\x04", None),
    ],
)
def test_a_prefilled_line_can_be_accepted_replaced_cleared_or_edited(keys: str, becomes: str | None) -> None:
    assert line_after("send(to=ann)", keys) == becomes


def test_input_typed_after_a_line_ended_does_not_reach_the_next_line() -> None:
    assert line_after("send(to=ann)", "\x04") is None
    assert line_after("send(to=bob)", "\x15other") == "other"


def test_ctrl_c_raises_keyboard_interrupt_in_the_caller() -> None:
    with pytest.raises(KeyboardInterrupt):
        line_after("send(to=ann)", "\x03")
