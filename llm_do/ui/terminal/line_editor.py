"""A prefilled line that a person accepts, edits or replaces. prompt_toolkit, which draws it, is imported on use."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

__all__ = ["edit_line"]


async def edit_line(
    reads: int,
    writes: int,
    mark: str,
    text: str,
    size: Callable[[], tuple[int, int]],
    write_again: Callable[[], None],
) -> str | None:
    """Let a person edit a line.

    The text starts selected: Enter accepts it, typing replaces it, an arrow key starts editing it. Ctrl-Z suspends the
    process.

    Args:
        reads: The file descriptor of the terminal to read.
        writes: The one to write.
        mark: What is in front of the line.
        text: The line as it begins.
        size: The terminal's columns and rows.
        write_again: Writes what is above the line, once the process continues after it was suspended.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.input.typeahead import clear_typeahead
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output.vt100 import Vt100_Output

    def now() -> Size:
        columns, rows = size()
        return Size(rows=rows, columns=columns)

    def select() -> None:
        buffer = session.default_buffer
        buffer.cursor_position = 0
        buffer.start_selection()
        if buffer.selection_state is not None:
            buffer.selection_state.enter_shift_mode()
        buffer.cursor_position = len(buffer.text)

    with os.fdopen(os.dup(reads), encoding="utf-8") as source, os.fdopen(os.dup(writes), "w", encoding="utf-8") as sink:
        typed = Vt100Input(source)
        # Input left over from another line, which prompt_toolkit keeps by file descriptor, must not answer this one.
        clear_typeahead(typed)
        session: PromptSession[str] = PromptSession(
            mark,
            input=typed,
            output=Vt100_Output(sink, now, term=os.environ.get("TERM"), enable_cpr=False),
            key_bindings=_key_bindings(write_again),
            enable_open_in_editor=False,
        )
        try:
            return await session.prompt_async(default=text, handle_sigint=False, pre_run=select if text else None)
        except EOFError:
            return None


def _key_bindings(write_again: Callable[[], None]) -> KeyBindings:
    from prompt_toolkit.application import run_in_terminal
    from prompt_toolkit.filters import has_selection
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("c-d")
    def leave(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        if not event.app.is_done:
            event.app.exit(exception=EOFError)

    def suspend() -> None:
        os.kill(0, signal.SIGTSTP)
        write_again()

    @keys.add("c-z")
    async def stop(_: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        await run_in_terminal(suspend)

    # Keys that were typed ahead of the end still arrive.
    @keys.add("enter")
    def take(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        if not event.app.is_done:
            event.current_buffer.validate_and_handle()

    # Keys that prompt_toolkit leaves without a meaning, or with another one, while something is selected.
    @keys.add("c-u")
    @keys.add("c-k", filter=has_selection)
    @keys.add("delete", filter=has_selection)
    def clear(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.reset()

    @keys.add("<bracketed-paste>", filter=has_selection)
    def paste(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.cut_selection()
        event.current_buffer.insert_text(" ".join(event.data.split()))

    return keys
