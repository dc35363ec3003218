"""Strict validation of a node tree against a pydantic model: a value and diagnostics come out.

The models are in `llm_do.formats.manifest`, `llm_do.formats.agent_file` and their parts;
`llm_do.formats.validation.explanations` explains single faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes.shape import LD121, exclusive_keys
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import AmbiguousScalar, KeyPath, Node, NodeResult, format_key_path
from llm_do.formats.validation.explanations import Fault, explain_ambiguous_scalar, explain_error, explain_unknown_key
from llm_do.text.words import closest_match

__all__ = ["Parsed", "find_misspelled_keys", "parse_result", "report_exclusive_keys", "validate"]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_ATTEMPTS = 8


@frozen
class Parsed(Generic[T]):
    """The result of parsing one file.

    Args:
        value: What it declares, None when nothing is usable. Faulty parts are left out, so that the rest can be checked
            too; so look at `ok`, not only at this.
        node: The tree of the manifest or of the frontmatter, for the locations of what `value` refers to.
        diagnostics: Everything that is wrong with it, sorted by location.
        body: An agent's instructions, line ends as LF.
        body_start: Offset of the body in the file's text, -1 when there is none.
    """

    value: T | None
    node: Node | None
    diagnostics: tuple[Diagnostic, ...] = ()
    body: str = ""
    body_start: int = -1

    @property
    def ok(self) -> bool:
        """Whether there is a value and nothing is wrong with it."""
        return self.value is not None and not any(item.severity == "error" for item in self.diagnostics)


def validate(
    model: type[M], result: NodeResult, salvage: Mapping[str, object] | None = None
) -> tuple[M | None, list[Diagnostic]]:
    """Validate a tree; of a faulty one, keep the parts that are valid."""
    node = result.node
    found = list(result.diagnostics)
    if node is None:
        return None, found
    data = node.data()
    if not result.ambiguous:
        try:
            return model.model_validate(data), found
        except ValidationError as error:
            first = error
    else:
        first = None
    faults = _faults(model, node, data, first)
    taken = {(item.line, item.column) for item in found}
    found += [item for fault in faults if ((item := fault.diagnostic).line, item.column) not in taken]
    if node.kind != "mapping":
        return None, found
    return _salvage(model, cast("dict[str, object]", data), faults, salvage or {}), found


def _faults(model: type[M], node: Node, data: object, error: ValidationError | None) -> list[Fault]:
    if error is None:
        try:
            model.model_validate(data)
        except ValidationError as caught:
            error = caught
    faults = explain_error(model, node, error) if error is not None else []
    known = {fault.loc for fault in faults if fault.diagnostic.code != LD121.id}
    for loc, part in node.walk():
        if isinstance(part.scalar, AmbiguousScalar) and not any(loc[:depth] in known for depth in range(len(loc) + 1)):
            faults.append(explain_ambiguous_scalar(loc, part, part.scalar))
    return faults


def _salvage(
    model: type[M], data: dict[str, object], faults: Sequence[Fault], defaults: Mapping[str, object]
) -> M | None:
    """Remove faulty parts until the rest is valid; faults that appear only then are consequences and not reported."""
    _prune(data, (fault.loc for fault in faults))
    for key, value in defaults.items():
        data.setdefault(key, value)
    for _ in range(_ATTEMPTS):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            locs = {fault["loc"][:-1] if fault["type"] == "missing" else fault["loc"] for fault in error.errors()}
        if () in locs:
            return None
        _prune(data, locs)
    return None


def _prune(data: object, locs: Iterable[Sequence[str | int]]) -> None:
    """Remove the values at some paths, inner values before outer ones, the last of a list first."""
    paths = {_path(data, loc) for loc in locs} - {()}
    for *above, last in sorted(paths, key=lambda path: (len(path), [_index(part) for part in path]), reverse=True):
        holder: Any = data
        for part in above:
            holder = holder[part]
        del holder[last]


def _path(data: object, loc: Sequence[str | int]) -> KeyPath:
    """The path of a value, without the parts that name a choice of a union."""
    path: list[str | int] = []
    here: Any = data
    for part in loc:
        if _has(here, part):
            path.append(part)
            here = here[part]
    return tuple(path)


def _has(holder: object, part: str | int) -> bool:
    if isinstance(holder, dict):
        return part in cast("dict[str | int, object]", holder)
    return isinstance(holder, list) and part in range(len(cast("list[object]", holder)))


def _index(part: str | int) -> int:
    return part if isinstance(part, int) else -1


def find_misspelled_keys(root: Node, loc: KeyPath, known: Sequence[str]) -> list[Diagnostic]:
    """Report keys of an open mapping that are almost one of its known keys."""
    holder = root.at(loc)
    if holder is None:
        return []
    others = [key for key in known if key not in holder.entries]
    return [
        explain_unknown_key(root, (*loc, key), others)
        for key in holder.entries
        if key not in known and closest_match(key, others, spelling_only=True)
    ]


def report_exclusive_keys(node: Node, first: str, second: str, hint: str, loc: KeyPath = ()) -> list[Diagnostic]:
    """Report two keys that exclude each other, at the later one."""
    holder = node.at(loc)
    if holder is None or first not in holder.entries or second not in holder.entries:
        return []
    later = max(first, second, key=lambda key: holder.keys[key])
    earlier = second if later == first else first
    return [exclusive_keys(format_key_path((*loc, later)), earlier, hint).at(holder.key_place((later,)))]


def parse_result(
    value: T | None, node: Node | None, found: Iterable[Diagnostic], body: str = "", start: int = -1
) -> Parsed[T]:
    """Make a result, with its diagnostics sorted by location and without duplicates."""
    unique = dict.fromkeys(found)
    ordered = sorted(unique, key=lambda item: (item.place.line, item.place.column, item.code, item.message))
    return Parsed(value, node, tuple(ordered), body, start)
