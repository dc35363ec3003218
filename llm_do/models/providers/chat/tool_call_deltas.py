"""The tool calls of a streamed chat answer: which call each of their pieces belongs to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["ToolCallDeltas", "arguments_text"]


def arguments_text(value: object) -> str:
    """Return a call's arguments as JSON text; servers also send them as an object, or null.

    Example:
        >>> arguments_text({"a": 1}), arguments_text(None), arguments_text('{"a"')
        ('{"a": 1}', '', '{"a"')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(slots=True)
class _Call:
    index: int
    id: str
    name: str
    arguments: list[str] = field(default_factory=list[str])

    def is_complete(self) -> bool:
        """Whether its arguments are an object already; they are parsed only where that is likely."""
        if not (self.arguments and self.arguments[-1].rstrip().endswith("}")):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False

    def is_continued_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece with the same number belongs to this call."""
        if not name or not self.arguments:
            return not (name and call_id and self.id and call_id != self.id)
        if call_id and self.id:
            return call_id == self.id
        if name != self.name:
            return False
        return not (arguments.lstrip().startswith("{") and self.is_complete())


class ToolCallDeltas:
    """Numbers the calls of one answer, whatever numbers, ids and names its server repeats or leaves out.

    A piece with a name and an id of its own begins a call, even if it has the number of another one. Without an id, a
    piece with a name does where the call of its number is complete. All other pieces continue a call.

    Example:
        >>> calls = ToolCallDeltas()
        >>> pieces = [{"index": 0, "id": each, "function": {"name": "add", "arguments": "{}"}} for each in "ab"]
        >>> [calls.mend(piece)["index"] for piece in pieces]
        [0, 1]
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._current: dict[int | None, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def mend(self, piece: dict[str, Any]) -> dict[str, Any]:
        """Return a piece with the number of its call, and with id and name only where they are new."""
        function: object = piece.get("function")
        source = cast("dict[str, Any]", function) if isinstance(function, dict) else piece
        name, call_id = _text(source.get("name")), _text(piece.get("id"))
        arguments = arguments_text(source.get("arguments"))
        number = piece.get("index")
        number = number if isinstance(number, int) else None
        call = self._current.get(number)
        if call is None and number is None and not name and self._calls:
            call = self._calls[-1]
        if call is None or not call.is_continued_by(call_id, name, arguments):
            call = _Call(len(self._calls), call_id, name)
            self._calls.append(call)
            begins = True
        else:
            begins = False
            name = _rest_of_name(call, name)
            call_id = "" if call.id else call_id
            call.name, call.id = call.name + name, call.id or call_id
        self._current[number] = call
        if arguments:
            call.arguments.append(arguments)
        return {
            **piece,
            "index": call.index,
            "id": call_id or None,
            "type": "function",
            "function": {"name": name if begins else name or None, "arguments": arguments or None},
        }


def _rest_of_name(call: _Call, name: str) -> str:
    """What a piece adds to the name of its call: nothing, if it repeats it."""
    if call.arguments or call.name.startswith(name):
        return ""
    return name.removeprefix(call.name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
