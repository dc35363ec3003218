"""The line that stands there to be taken, edited or typed over, on a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from llm_do.ui.terminal.line_editor import edit_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def edited(text: str, keys: str) -> str | None:
    """What becomes of a line when these keys are pressed, and then Enter."""
    import pty

    ours, theirs = pty.openpty()

    async def sit() -> str | None:
        seen = b""

        def watch() -> None:
            nonlocal seen
            begun = b"rule: " in seen
            seen += os.read(ours, 4096)
            if not begun and b"rule: " in seen:
                os.write(ours, f"{keys}\r".encode())

        asyncio.get_running_loop().add_reader(ours, watch)
        try:
            async with asyncio.timeout(20):
                return await edit_line(theirs, theirs, "rule: ", text, lambda: (80, 24))
        finally:
            asyncio.get_running_loop().remove_reader(ours)

    try:
        return asyncio.run(sit())
    finally:
        os.close(ours)
        os.close(theirs)


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
def test_the_line_is_taken_typed_over_emptied_or_edited(keys: str, becomes: str | None) -> None:
    assert edited("send(to=ann)", keys) == becomes


def test_what_is_typed_behind_the_end_of_a_line_takes_no_other() -> None:
    assert edited("send(to=ann)", "\x04") is None
    assert edited("send(to=bob)", "\x15other") == "other"


def test_ctrl_c_is_told_to_who_asked() -> None:
    with pytest.raises(KeyboardInterrupt):
        edited("send(to=ann)", "\x03")
