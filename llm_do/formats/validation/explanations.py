"""From what pydantic found to diagnostics: which problem, where, what was expected, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import shape as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.codes.syntax import ambiguous_value, unquoted_text
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.pasted_servers import server_hint, written_servers
from llm_do.formats.syntax.source import AmbiguousScalar, KeyPath, Node, format_key_path
from llm_do.formats.validation.fields import CLASS_PATTERN, FUNCTION_PATTERN, NAME_PATTERN, TEXT_PATTERN
from llm_do.formats.validation.keys import is_required, known_keys
from llm_do.text.words import closest_match, truncate_end

__all__ = ["Fault", "explain_ambiguous_scalar", "explain_error", "explain_unknown_key"]

_EXPECTED: dict[str, str] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "flow_step": "an expression, or an object with `when`, `for_each` or `repeat`",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_or_object": "a list or an object",
    "list_type": "a list",
    "mapping_type": "an object",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "text",
    "text_or_list": "text or a list of texts",
    "text_or_object": "text or an object",
}
"""Pydantic's error types that mean a wrong type, and what was expected."""

_RANGES: dict[str, tuple[str, str]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


@frozen
class Fault:
    """One fault.

    Args:
        loc: The path of what has to be removed so that the rest is valid.
        diagnostic: Its diagnostic.
    """

    loc: KeyPath
    diagnostic: Diagnostic


def explain_error(model: type[BaseModel], root: Node, error: ValidationError) -> list[Fault]:
    """Turn a validation error into faults."""
    faults: dict[tuple[KeyPath, str], Fault] = {}
    missing: list[tuple[KeyPath, str]] = []
    unknown: dict[KeyPath, list[str]] = {}
    for item in error.errors(include_url=False, include_input=False):
        kind, loc = item["type"], item["loc"]
        if kind == "missing":
            missing.append((_resolve(root, loc[:-1]), str(loc[-1])))
        elif kind == "extra_forbidden":
            holder, key = _resolve(root, loc[:-1]), str(loc[-1])
            unknown.setdefault(holder, []).append(key)
            found = explain_unknown_key(root, (*holder, key), known_keys(model, root, holder))
            faults[(*holder, key), ""] = Fault((*holder, key), found)
        else:
            fault = _value(model, root, kind, loc, item.get("ctx") or {}, item["msg"])
            faults.setdefault((fault.loc, "key" if loc[-1:] == ("[key]",) else ""), fault)
    for holder, key in missing:
        if not any(closest_match(other, [key]) for other in unknown.get(holder, ())):
            faults[(*holder, key), ""] = Fault(holder, _missing(root, holder, key))
    return [_with_server_hint(root, path, fault) for (path, _), fault in faults.items()]


def _with_server_hint(root: Node, path: KeyPath, fault: Fault) -> Fault:
    block = written_servers(root, path)
    if block is not None:
        hint = "write the servers as they are below"
        return Fault(fault.loc, replace(fault.diagnostic, hint=hint, block=block))
    hint = server_hint(root, path)
    return fault if hint is None else Fault(fault.loc, replace(fault.diagnostic, hint=hint))


def _resolve(root: Node, loc: Sequence[str | int]) -> KeyPath:
    """The path in the tree of a pydantic location, without the parts that name a choice of a union."""
    node = root
    path: list[str | int] = []
    for part in loc:
        below = node.at((part,))
        if below is not None:
            node = below
            path.append(part)
    return tuple(path)


def explain_unknown_key(root: Node, loc: KeyPath, known: Sequence[str]) -> Diagnostic:
    """The diagnostic of an unknown key."""
    return problems.unknown_key(str(loc[-1]), format_key_path(loc[:-1]), known).at(root.key_place(loc))


def _missing(root: Node, holder: KeyPath, key: str) -> Diagnostic:
    place = root.key_place(holder) if holder else _point(root)
    return problems.missing_key(key, f"`{format_key_path(holder)}`" if holder else "").at(place)


def _point(node: Node) -> Location:
    return node.source.place(node.start, min(node.start + 1, node.end))


def _value(
    model: type[BaseModel], root: Node, kind: str, loc: Sequence[str | int], ctx: Mapping[str, Any], text: str
) -> Fault:
    """Explain one error about a value or a key's spelling."""
    if loc and loc[-1] == "[key]":
        path = _resolve(root, loc[:-1])
        place, shown = root.key_place(path), f"the name `{truncate_end(str(path[-1] if path else ''))}`"
        node = None
    else:
        path = _resolve(root, loc)
        node = root.at(path)
        place, shown = root.place_of(path), f"`{format_key_path(path)}`" if path else "the file"
    problem = _Explanation(shown, node, ctx, _alternative(model, root, path)).problem_of(kind, text)
    if kind in ("union_tag_invalid", "union_tag_not_found") and node is not None:
        name = str(ctx.get("discriminator", "")).strip("'")
        place = root.place_of((*path, name)) if name in node.entries else root.key_place(path)
    elif not path:
        place = _point(root)
    return Fault(path, problem.at(place))


def _alternative(model: type[BaseModel], root: Node, path: KeyPath) -> str | None:
    """What else can be done with a missing value than giving one, None when it is required."""
    if not path:
        return None
    if isinstance(path[-1], int):
        return "remove it from the list"
    return None if is_required(model, root, path) else "leave the key out"


@frozen
class _Explanation:
    """Finds the problem of one faulty value.

    Args:
        subject: What is wrong, as the subject of a sentence.
        node: The value, None for a key.
        ctx: Pydantic's context.
        alternative: What can be done about a missing value, except giving one.
    """

    subject: str
    node: Node | None
    ctx: Mapping[str, Any]
    alternative: str | None = None

    def problem_of(self, kind: str, text: str) -> Problem:
        """The problem that an error type means; `text` is pydantic's own, for types that have no sentence here."""
        if kind == "null" or (kind in _EXPECTED and self.is_null):
            return problems.no_value(self.subject, self.alternative)
        if kind in _EXPECTED:
            return self.wrong_type(_EXPECTED[kind])
        if kind in _RANGES:
            relation, key = _RANGES[kind]
            return problems.out_of_range(self.subject, relation, self.ctx[key], self.shown_value())
        explain: Mapping[str, Callable[[], Problem]] = {
            "literal_error": self.literal,
            "string_pattern_mismatch": self.pattern,
            "string_too_short": lambda: problems.empty_value(self.subject),
            "too_short": lambda: problems.empty_value(self.subject),
            "too_long": lambda: problems.several_keys(self.subject),
            "union_tag_invalid": self.tag,
            "union_tag_not_found": self.no_tag,
        }
        if kind in explain:
            return explain[kind]()
        return problems.invalid_value(self.subject, f"{text[:1].lower()}{text[1:]}")

    @property
    def is_null(self) -> bool:
        return self.node is not None and self.node.kind == "scalar" and self.node.scalar is None

    def shown_value(self) -> str:
        """The value, short enough for a sentence."""
        node = self.node
        if node is None:
            return "this"
        if node.kind != "scalar":
            return "an object" if node.kind == "mapping" else "a list"
        if isinstance(node.scalar, str) and not node.plain:
            return f"the text {json.dumps(truncate_end(node.scalar), ensure_ascii=False)}"
        return f"`{truncate_end(node.text)}`" if node.text else "nothing"

    def wrong_type(self, expected: str) -> Problem:
        node = self.node
        if expected.startswith("text") and node is not None and node.kind == "scalar" and node.plain:
            meaning = node.scalar.meaning if isinstance(node.scalar, AmbiguousScalar) else _meaning(node.scalar)
            return unquoted_text(self.subject, truncate_end(node.text), meaning)
        return problems.wrong_type(self.subject, expected, self.shown_value(), self.correction(expected))

    def correction(self, expected: str) -> str | None:
        """What to write so that the value has the expected type, where that is plain."""
        scalar = self.node.scalar if self.node is not None else None
        if isinstance(scalar, AmbiguousScalar):
            if scalar.meaning in ("true", "false"):
                return f"write `{scalar.meaning}`" if expected == "true or false" else None
            return "write it as a decimal number" if "number" in expected and "number" in scalar.meaning else None
        if isinstance(scalar, str):
            if expected == "true or false" and scalar.lower() in ("true", "false"):
                return f"write `{scalar.lower()}` without quotes"
            if "number" in expected and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", scalar):
                return "write it without quotes"
            written = (
                truncate_end(scalar)
                if self.node is not None and self.node.plain
                else json.dumps(truncate_end(scalar), ensure_ascii=False)
            )
            if self.subject == "`entry`" and expected == "an object":
                return f'write {{"{"function" if ".py:" in scalar else "agent"}": {written}}}'
            return f"write [{written}]" if expected == "a list" else None
        if isinstance(scalar, bool):
            return None
        if isinstance(scalar, int | float) and expected.startswith("text"):
            return f'write "{truncate_end(self.node.text)}"' if self.node is not None else None
        if isinstance(scalar, float) and expected == "a whole number" and scalar.is_integer():
            return f"write {int(scalar)}"
        return None

    def literal(self) -> Problem:
        allowed: list[str] = re.findall(r"'([^']*)'", str(self.ctx.get("expected", "")))
        return self.unknown_value(self.subject, allowed, self.node)

    def unknown_value(self, subject: str, allowed: Sequence[str], node: Node | None) -> Problem:
        shown = _Explanation(self.subject, node, self.ctx).shown_value()
        text = node.scalar if node is not None and isinstance(node.scalar, str) else None
        return problems.unknown_value(subject, allowed, shown, text)

    def tag(self) -> Problem:
        name = str(self.ctx.get("discriminator", "")).strip("'")
        allowed: list[str] = re.findall(r"'([^']*)'", str(self.ctx.get("expected_tags", "")))
        node = self.node.entries.get(name) if self.node is not None else None
        return self.unknown_value(f"`{name}` in {self.subject}", allowed, node or self.node)

    def no_tag(self) -> Problem:
        if self.node is not None and self.node.kind != "mapping":
            return problems.wrong_type(self.subject, "an object", self.shown_value())
        return problems.missing_key(str(self.ctx.get("discriminator", "")).strip("'"), self.subject)

    def pattern(self) -> Problem:
        pattern = str(self.ctx.get("pattern", ""))
        subject = self.subject if self.node is None else f"{self.subject} is {self.shown_value()}, which"
        if pattern == NAME_PATTERN:
            name = str(self.node.scalar) if self.node is not None else self.subject.split("`")[1]
            fixed = re.sub(r"[^A-Za-z0-9_-]+", "_", name.removesuffix(".agent")).strip("_-")[:64]
            return problems.malformed_name(subject, fixed if re.match(NAME_PATTERN, fixed) else None)
        if pattern in (CLASS_PATTERN, FUNCTION_PATTERN):
            return problems.malformed_reference(subject, to_class=pattern == CLASS_PATTERN)
        if pattern == TEXT_PATTERN:
            return problems.empty_or_nul(self.subject)
        return problems.malformed_prefix(subject)


def explain_ambiguous_scalar(loc: KeyPath, node: Node, scalar: AmbiguousScalar) -> Fault:
    """Report that YAML's versions disagree about a value that may be of any type."""
    problem = ambiguous_value(format_key_path(loc), truncate_end(scalar.text), scalar.meaning)
    return Fault(loc, problem.at(node.place))


def _meaning(value: object) -> str:
    if value is None:
        return "nothing (null)"
    return str(value).lower() if isinstance(value, bool) else "a number"
