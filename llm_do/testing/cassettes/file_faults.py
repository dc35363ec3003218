"""What is wrong with a cassette's file, by line: of a file that a person, a merge or a full disk has changed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.text.words import did_you_mean

__all__ = ["Field", "FileFault", "Path", "checked_object", "checked_value", "json_of", "raise_fault"]

Path = tuple[str | int, ...]
"""The way from the root of a file to a value: keys and indexes."""

MOST = 10**15
"""The largest number that a recorder writes."""

Kind = Literal["text", "name", "count", "number", "flag", "list", "object", "any"]

_WORDS: Mapping[Kind, str] = {
    "text": "a text",
    "count": "a whole number",
    "number": "a number",
    "name": "a name",
    "flag": "true or false",
    "list": "a list",
    "object": "an object",
    "any": "a value",
}


@frozen
class Field:
    """What an object's key may hold.

    Args:
        kind: The kind of value.
        required: Whether the key has to be there.
        least: The smallest number.
    """

    kind: Kind
    required: bool = True
    least: int = 0


class FileFault(ValueError):  # noqa: N818 (found while reading, and reported as a UsageError that knows its line)
    """Something in a file that can't be used.

    Args:
        message: What is wrong.
        path: Where it is.
        hint: What to do about it; None if it can only be undone.
        at_key: Whether the key at the end of the path is meant, rather than its value.
    """

    def __init__(self, message: str, path: Path, hint: str | None = None, *, at_key: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint
        self.at_key = at_key


def raise_fault(fault: FileFault, text: str, file: str) -> NoReturn:
    """Raise the error of a fault, with the line that it is in."""
    node = parse_json(text, file).node
    place = None
    if node is not None:
        place = node.key_place(fault.path) if fault.at_key else node.place_of(fault.path)
    raise UsageError(
        f"{file} is damaged: {fault}{f' (line {place.line})' if place is not None else ''}",
        hint=fault.hint or "Undo what was changed in it by hand, or record it again.",
        file=file,
        line=place.line if place is not None else None,
    ) from fault


def json_of(text: str, file: str) -> object:
    """The data of a file's text.

    Raises:
        UsageError: It isn't JSON; the error says where.
    """
    conflict = re.search(r"^(<<<<<<<|=======|>>>>>>>)", text, re.MULTILINE)
    try:
        if conflict is not None:
            raise ValueError
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        if conflict is not None:
            line = text.count("\n", 0, conflict.start()) + 1
            raise UsageError(
                f"{file} has a merge conflict (line {line})",
                hint="Take one side of the conflict, or record the cassette again.",
                file=file,
                line=line,
            ) from error
        found = next(iter(parse_json(text, file).diagnostics), None)
        line = found.place.line if found is not None else 1
        raise UsageError(
            f"{file} is not JSON: {found.message if found is not None else error} (line {line})",
            hint=_sentence(found.hint if found is not None else None) or "Record it again.",
            file=file,
            line=line,
        ) from error


def _sentence(hint: str | None) -> str | None:
    return f"{hint[0].upper()}{hint[1:]}{'' if hint.endswith('?') else '.'}" if hint else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def checked_object(data: object, path: Path, fields: Mapping[str, Field], name: str) -> Mapping[str, Any]:
    """An object that has exactly these keys.

    Raises:
        FileFault: It hasn't.
    """
    found = cast("Mapping[str, Any]", checked_value(data, path, Field("object"), name))
    for key in found:
        if key not in fields:
            hint = did_you_mean(key, fields)
            raise FileFault(f"`{key}` isn't known here", (*path, key), _sentence(hint) or "Delete it.", at_key=True)
    for key, field in fields.items():
        if key in found:
            checked_value(found[key], (*path, key), field, key)
        elif field.required:
            raise FileFault(f"`{key}` is missing in {name}", path)
    return found


def checked_value(data: object, path: Path, field: Field, name: str) -> Any:
    """A value of a kind.

    Raises:
        FileFault: It is of another.
    """
    if not _is(data, field.kind):
        raise FileFault(f"`{name}` has to be {_WORDS[field.kind]}, not {_shown(data)}", path)
    if field.kind in ("count", "number"):
        number = cast("float", data)
        if not field.least <= number <= MOST:
            bound = f"at least {field.least}" if number < field.least else f"at most {MOST:,}"
            raise FileFault(f"`{name}` has to be {bound}, not {_shown(data)}", path)
    return data


def _is(data: object, kind: Kind) -> bool:
    match kind:
        case "text":
            return isinstance(data, str)
        case "name":
            return isinstance(data, str) and 0 < len(data) < 200 and data.isprintable()
        case "count":
            return isinstance(data, int) and not isinstance(data, bool)
        case "number":
            return isinstance(data, int | float) and not isinstance(data, bool) and not math.isnan(data)
        case "flag":
            return isinstance(data, bool)
        case "list":
            return isinstance(data, list)
        case "object":
            return isinstance(data, dict)
        case "any":
            return True


def _shown(data: object) -> str:
    try:
        text = json.dumps(data, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # a number of thousands of digits, or data of thousands of levels
        return "what it is"
    return text if len(text) <= 60 else f"{text[:57]}..."
