"""Reading a person's messages in a chat: on a terminal with history and completion, elsewhere line by line."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from llm_do.ui.terminal.size import terminal_size

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.output import Output

__all__ = ["Leave", "LinePrompt", "Prompt", "TerminalPrompt", "candidates"]


class Leave(Exception):  # noqa: N818 (not an error: what a person wants)
    """The person wants to leave; `interrupted` distinguishes Ctrl-C from the end of input."""

    def __init__(self, *, interrupted: bool = False) -> None:
        super().__init__()
        self.interrupted = interrupted


class Prompt(Protocol):
    """Where turns come from."""

    async def read(self) -> str:
        """The next message."""
        ...


class LinePrompt:
    """Lines of a pipe or a file, one a turn; empty ones are left out."""

    async def read(self) -> str:
        """The next line."""
        while True:
            line = await asyncio.to_thread(sys.stdin.buffer.readline)
            if not line:
                raise Leave
            text = line.decode("utf-8", "replace").strip()
            if text:
                return text


class TerminalPrompt:
    """A line editor: history between sessions, completion, and messages of several lines.

    Enter sends; Alt-Enter, or a backslash in front of Enter, begins another line. Ctrl-Z suspends the process. Ctrl-C
    empties the line, on an empty one twice leaves.

    Args:
        mark: The prompt in front of the line.
        words: The completions of the last word, made from the text in front of the cursor.
        history: The file of earlier messages; None keeps none.
        show: Shows a line.
    """

    def __init__(
        self,
        mark: str,
        words: Callable[[str], Iterable[str]],
        history: Path | None,
        show: Callable[[str], None],
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()

        @keys.add("escape", "enter")
        def newline(event: Any) -> None:  # pyright: ignore[reportUnusedFunction]
            event.current_buffer.insert_text("\n")

        @keys.add("enter")
        def send(event: Any) -> None:  # pyright: ignore[reportUnusedFunction]
            buffer = event.current_buffer
            if buffer.document.current_line_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        self._show = show
        self._session: PromptSession[str] = PromptSession(
            mark,
            multiline=True,
            completer=_completer(words),
            complete_while_typing=False,
            history=FileHistory(str(history)) if history is not None else InMemoryHistory(),
            key_bindings=keys,
            prompt_continuation="  ",
            output=_output(),
            enable_open_in_editor=False,
            enable_suspend=True,
        )

    async def read(self) -> str:
        """The next message."""
        asked = False
        while True:
            try:
                text = (await self._session.prompt_async(handle_sigint=False)).strip()
            except KeyboardInterrupt:
                if asked:
                    raise Leave(interrupted=True) from None
                asked = True
                self._show("Ctrl-C again or Ctrl-D leaves; /help lists the commands")
                continue
            except EOFError:
                raise Leave from None
            if text:
                return text
            asked = False


def _output() -> Output:
    """The terminal behind stderr; it isn't asked where its cursor is, since not every one answers."""
    if sys.platform == "win32":
        from prompt_toolkit.output import create_output

        return create_output(stdout=sys.stderr)
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, rows = terminal_size()
        return Size(rows=rows, columns=columns)

    return Vt100_Output(sys.stderr, size, term=os.environ.get("TERM"), enable_cpr=False)


def _completer(words: Callable[[str], Iterable[str]]) -> Completer:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        """Completes the last word."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            before = document.text_before_cursor
            last = before.split()[-1] if before and not before[-1].isspace() else ""
            return (Completion(word, start_position=-len(last)) for word in words(before))

    return Words()


def candidates(before: str, commands: Sequence[str], agents: Sequence[str], root: Path) -> list[str]:
    """What the last word of a line could become.

    Example:
        >>> candidates("/to", ["/tools", "/help"], [], Path())
        ['/tools']
        >>> candidates("/tools an", ["/tools"], ["analyst"], Path())
        ['analyst']
    """
    words = before.split()
    last = words[-1] if before and not before[-1].isspace() else ""
    if last.startswith("@"):
        return [f"@{path}" for path in _paths(last[1:], root)]
    if last.startswith("/") and len(words) == 1:
        return [name for name in commands if name.startswith(last)]
    found = [name for name in agents if last and name.startswith(last)]
    return found or (list(agents) if before.startswith("/") and not last else [])


def _paths(prefix: str, root: Path) -> list[str]:
    folder, _, name = prefix.rpartition("/")
    try:
        entries = sorted(os.scandir(root / folder if folder else root), key=lambda entry: entry.name)
        return [
            (f"{folder}/" if folder else "") + entry.name + ("/" if entry.is_dir() else "")
            for entry in entries
            if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
        ][:200]
    except OSError:
        return []
