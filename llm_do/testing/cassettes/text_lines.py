"""Texts of several lines as lists of their lines, so that a cassette can be read and compared line by line."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["LinesError", "with_lines", "without_lines"]

_LINES = "lines"

_ESCAPED = re.compile(r"~*lines")
"""The only key of an object that could be mistaken for a text; a tilde in front says that it is none."""


DEEPEST = 200
"""The most levels of nesting: PydanticAI's messages can't hold more."""


class LinesError(ValueError):
    """What should be a list of lines isn't one, or is nested too deeply; `path` leads to it."""

    def __init__(self, path: tuple[str | int, ...], message: str = "`lines` has to be a list of texts") -> None:
        super().__init__(message)
        self.path = path


def with_lines(data: Any) -> Any:
    r"""Data whose texts of several lines are `{"lines": [...]}`.

    Example:
        >>> with_lines({"content": "one\ntwo"})
        {'content': {'lines': ['one', 'two']}}
        >>> without_lines(with_lines({"lines": ["a"]}))
        {'lines': ['a']}
    """
    if isinstance(data, str):
        return {_LINES: data.split("\n")} if "\n" in data else data
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data)
        escape = "~" if _is_escaped(items) else ""
        return {escape + name: with_lines(value) for name, value in items.items()}
    if isinstance(data, list | tuple):
        return [with_lines(each) for each in cast("list[Any]", data)]
    return data


def without_lines(data: Any, path: tuple[str | int, ...] = ()) -> Any:
    """The data that `with_lines` wrote.

    Raises:
        LinesError: Something in it is called `lines` and isn't a list of texts, or is nested too deeply.
    """
    if len(path) > DEEPEST:
        raise LinesError(path[:DEEPEST], f"lists and objects nest deeper than {DEEPEST}")
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data)
        if len(items) == 1 and _LINES in items:
            return _joined(items[_LINES], (*path, _LINES))
        cut = 1 if _is_escaped(items) else 0
        return {name[cut:]: without_lines(value, (*path, name)) for name, value in items.items()}
    if isinstance(data, list):
        return [without_lines(each, (*path, number)) for number, each in enumerate(cast("list[Any]", data))]
    return data


def _is_escaped(data: dict[str, Any]) -> bool:
    return len(data) == 1 and _ESCAPED.fullmatch(next(iter(data))) is not None


def _joined(lines: Any, path: tuple[str | int, ...]) -> str:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in cast("list[Any]", lines)):
        raise LinesError(path)
    return "\n".join(cast("list[str]", lines))
