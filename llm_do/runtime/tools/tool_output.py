"""A tool's result for models, events and hooks: JSON data or media, within a limit.

Results and failure texts that are too long keep their head and tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import ToolReturn, is_multi_modal_content

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.outcomes import ToolOutput
from llm_do.text.json_data import to_json_data
from llm_do.text.large_data.conversion import is_large, json_parts, large_json_data, text_parts
from llm_do.text.output_text import output_text
from llm_do.text.surrogates import replace_surrogates

__all__ = ["SaveArtifact", "limit_output", "limit_result", "truncate_text"]


SaveArtifact = Callable[[Iterable[bytes]], str | None]
"""Saves a complete result, given in pieces, and returns its path; None if it can't be saved."""


async def limit_result(value: Any, limit: int, keep: SaveArtifact | None) -> ToolOutput:
    """Limit a tool's result like `limit_output`, a large one in a worker thread."""
    if is_large(value):
        return await run_in_worker(limit_output, value, limit, keep)
    return limit_output(value, limit, keep)


def limit_output(value: Any, limit: int, keep: SaveArtifact | None = None) -> ToolOutput:
    """Limit a tool's result to a number of bytes.

    Example:
        >>> limit_output("a" * 1000, 30).size
        1000
    """
    if value is None or isinstance(value, bool | int):
        value = to_json_data(value)
        return ToolOutput(value, value)
    if isinstance(value, str) and len(value) * 4 <= limit:
        value = replace_surrogates(value)
        return ToolOutput(value, value)
    if isinstance(value, ToolReturn):
        returned = cast("ToolReturn[Any]", value)
        inner = limit_output(returned.return_value, limit, keep)
        return ToolOutput(replace(returned, return_value=inner.for_model), inner.for_events, inner.size)
    if is_multi_modal_content(value):
        return ToolOutput(value, f"[{getattr(value, 'media_type', None) or type(value).__name__}]")
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if any(is_multi_modal_content(item) for item in items):
            parts = [limit_output(item, limit // len(items), keep) for item in items]
            sizes = [part.size for part in parts if part.size is not None]
            return ToolOutput(
                [part.for_model for part in parts], [part.for_events for part in parts], sum(sizes) if sizes else None
            )
    if is_large(cast("object", value)):
        size = sum(map(len, pieces := _pieces(value)))
        if size <= limit:
            shown = large_json_data(cast("object", value), strict=True)
            return ToolOutput(shown, shown, size)
        text = _head_and_tail(pieces, limit, keep(pieces) if keep is not None else None)
        return ToolOutput(text, text, size)
    shown = to_json_data(value, strict=True)
    if shown is None:  # NaN becomes null, which the model should see as such
        return ToolOutput("null", None)
    raw = (shown if isinstance(shown, str) else output_text(shown)).encode("utf-8", "replace")
    if len(raw) <= limit:
        return ToolOutput(shown, shown, len(raw))
    text = _head_and_tail([raw], limit, keep([raw]) if keep is not None else None)
    return ToolOutput(text, text, len(raw))


def _pieces(value: Any) -> list[bytes]:
    """A large result as it would be saved, in pieces: text as it is, anything else as JSON."""
    parts = text_parts(value) if isinstance(value, str) else json_parts(value, strict=True)
    return [part.encode("utf-8", "replace") for part in parts]


def truncate_text(text: str, limit: int) -> str:
    """Truncate a failure's text if it is too long.

    Example:
        >>> truncate_text("short", 100)
        'short'
    """
    text = replace_surrogates(text)
    if len(text) * 4 <= limit:
        return text
    raw = text.encode()
    return text if len(raw) <= limit else _head_and_tail([raw], limit)


def _head_and_tail(pieces: Sequence[bytes], limit: int, kept: str | None = None) -> str:
    """Return the head (two thirds of the space) and the tail (one third), cut between characters.

    The notice between them says what was left out; it counts towards the limit if a third of that is enough for it.
    """
    where = f"all of it is in the file {kept}" if kept is not None else "ask for a smaller part"
    size = sum(map(len, pieces))

    def note(cut: int) -> str:
        return f"\n[... {cut} of {size} bytes left out; {where} ...]\n"

    room = max(limit - len(note(size).encode()), limit * 2 // 3)
    head = _head(pieces, room * 2 // 3).decode("utf-8", "ignore")
    tail = _tail(pieces, room // 3).decode("utf-8", "ignore")
    return f"{head}{note(size - len(head.encode()) - len(tail.encode()))}{tail}"


def _head(pieces: Iterable[bytes], length: int) -> bytes:
    head = b""
    for piece in pieces:
        if len(head) >= length:
            break
        head += piece[: length - len(head)]
    return head


def _tail(pieces: Sequence[bytes], length: int) -> bytes:
    tail = b""
    for piece in reversed(pieces):
        missing = length - len(tail)
        if missing <= 0:
            break
        tail = piece[max(len(piece) - missing, 0) :] + tail
    return tail
