"""What pydantic found, in words: which code, which place, what was expected, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from llm_do._frozen import frozen
from llm_do.diagnostics.codes import diagnostic
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.source import AmbiguousScalar, KeyPath, Node, format_key_path
from llm_do.formats.validation.fields import CLASS_PATTERN, FUNCTION_PATTERN, NAME_PATTERN, TEXT_PATTERN
from llm_do.formats.validation.keys import is_required, known_keys
from llm_do.text.words import closest_match

__all__ = ["Fault", "explain_ambiguous_scalar", "explain_error", "explain_unknown_key"]

_EXPECTED: dict[str, str] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
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
        loc: The path of what has to go so that the rest is valid.
        diagnostic: What is said of it.
    """

    loc: KeyPath
    diagnostic: Diagnostic


def explain_error(model: type[BaseModel], root: Node, error: ValidationError) -> list[Fault]:
    """Put a validation error into words."""
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
        if not any(closest_match(given, [key]) for given in unknown.get(holder, ())):
            faults[(*holder, key), ""] = Fault(holder, _missing(root, holder, key))
    return list(faults.values())


def _resolve(root: Node, loc: Sequence[str | int]) -> KeyPath:
    """The path in the tree that a pydantic location means; parts that name a choice of a union are left out."""
    node = root
    path: list[str | int] = []
    for part in loc:
        below = node.at((part,))
        if below is not None:
            node = below
            path.append(part)
    return tuple(path)


def explain_unknown_key(root: Node, loc: KeyPath, known: Sequence[str]) -> Diagnostic:
    """Say that a key is unknown, and which one was meant."""
    inside = f" in `{format_key_path(loc[:-1])}`" if loc[:-1] else ""
    message = f"unknown key `{_short(str(loc[-1]))}`{inside}"
    near = closest_match(str(loc[-1]), known)
    hint = f"did you mean `{near}`?" if near else f"the keys here are {', '.join(known)}" if known else "leave it out"
    return diagnostic("LD120", message, root.key_place(loc), hint)


def _missing(root: Node, holder: KeyPath, key: str) -> Diagnostic:
    inside = f" in `{format_key_path(holder)}`" if holder else ""
    place = root.key_place(holder) if holder else _point(root)
    return diagnostic("LD121", f"the key `{key}` is missing{inside}", place, f"add `{key}`")


def _point(node: Node) -> Location:
    return node.source.place(node.start, min(node.start + 1, node.end))


def _value(
    model: type[BaseModel], root: Node, kind: str, loc: Sequence[str | int], ctx: Mapping[str, Any], text: str
) -> Fault:
    """Put one error about a value or a key's spelling into words."""
    if loc and loc[-1] == "[key]":
        path = _resolve(root, loc[:-1])
        place, shown = root.key_place(path), f"the name `{_short(str(path[-1] if path else ''))}`"
        node = None
    else:
        path = _resolve(root, loc)
        node = root.at(path)
        place, shown = root.place_of(path), f"`{format_key_path(path)}`" if path else "the file"
    words = _Words(shown, node, ctx, _instead(model, root, path))
    code, message, hint = words.say(kind, text)
    if kind in ("union_tag_invalid", "union_tag_not_found") and node is not None:
        name = str(ctx.get("discriminator", "")).strip("'")
        place = root.place_of((*path, name)) if name in node.entries else root.key_place(path)
    elif not path:
        place = _point(root)
    return Fault(path, diagnostic(code, message, place, hint))


def _instead(model: type[BaseModel], root: Node, path: KeyPath) -> str | None:
    """What to do with a value that isn't there besides giving one, None when there has to be one."""
    if not path:
        return None
    if isinstance(path[-1], int):
        return "take it out of the list"
    return None if is_required(model, root, path) else "leave the key out"


@frozen
class _Words:
    """Finds the words for one faulty value.

    Args:
        shown: What is at fault, as the subject of a sentence.
        node: The value, None for a key.
        ctx: Pydantic's context.
        instead: What to do where there is no value, besides giving one.
    """

    shown: str
    node: Node | None
    ctx: Mapping[str, Any]
    instead: str | None = None

    def say(self, kind: str, text: str) -> tuple[str, str, str | None]:
        """Code, message and hint for an error type; `text` is pydantic's own, for what has no words here."""
        if kind == "null" or (
            kind in _EXPECTED and self.node is not None and self.node.scalar is None and self.nothing
        ):
            hint = f"give it one, or {self.instead}" if self.instead else "give it one"
            return "LD122", f"{self.shown} has no value", hint
        if kind in _EXPECTED:
            return self.wrong_type(kind)
        if kind in _RANGES:
            words, key = _RANGES[kind]
            return "LD124", f"{self.shown} must be {words} {self.ctx[key]:g}, not {self.given()}", None
        say: Mapping[str, Callable[[], tuple[str, str, str | None]]] = {
            "literal_error": self.literal,
            "string_pattern_mismatch": self.pattern,
            "string_too_short": lambda: ("LD124", f"{self.shown} must not be empty", None),
            "too_short": lambda: ("LD124", f"{self.shown} must not be empty", None),
            "too_long": lambda: ("LD124", f"{self.shown} must have one key only", "write each in an item of its own"),
            "union_tag_invalid": self.tag,
            "union_tag_not_found": self.no_tag,
        }
        if kind in say:
            return say[kind]()
        return "LD122", f"{self.shown}: {text[:1].lower()}{text[1:]}", None

    @property
    def nothing(self) -> bool:
        return self.node is not None and self.node.kind == "scalar"

    def given(self) -> str:
        """What was given, short enough for a sentence."""
        node = self.node
        if node is None:
            return "this"
        if node.kind != "scalar":
            return "an object" if node.kind == "mapping" else "a list"
        if isinstance(node.scalar, str) and not node.plain:
            return f"the text {json.dumps(_short(node.scalar), ensure_ascii=False)}"
        return f"`{_short(node.text)}`" if node.text else "nothing"

    def wrong_type(self, kind: str) -> tuple[str, str, str | None]:
        node = self.node
        expected = _EXPECTED[kind]
        if expected.startswith("text") and node is not None and node.kind == "scalar" and node.plain:
            meaning = node.scalar.meaning if isinstance(node.scalar, AmbiguousScalar) else _meaning(node.scalar)
            message = f"{self.shown} must be text, and YAML takes `{_short(node.text)}` for {meaning}"
            return "LD115", message, f'quote it: "{_short(node.text)}"'
        return "LD122", f"{self.shown} must be {expected}, not {self.given()}", self.conversion(expected)

    def conversion(self, expected: str) -> str | None:
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
                _short(scalar)
                if self.node is not None and self.node.plain
                else json.dumps(_short(scalar), ensure_ascii=False)
            )
            if self.shown == "`entry`" and expected == "an object":
                return f'write {{"{"function" if ".py:" in scalar else "agent"}": {written}}}'
            return f"write [{written}]" if expected == "a list" else None
        if isinstance(scalar, bool):
            return None
        if isinstance(scalar, int | float) and expected.startswith("text"):
            return f'write "{_short(self.node.text)}"' if self.node is not None else None
        if isinstance(scalar, float) and expected == "a whole number" and scalar.is_integer():
            return f"write {int(scalar)}"
        return None

    def literal(self) -> tuple[str, str, str | None]:
        allowed: list[str] = re.findall(r"'([^']*)'", str(self.ctx.get("expected", "")))
        return self.choice(f"{self.shown} must be", allowed)

    def choice(self, start: str, allowed: Sequence[str], node: Node | None = None) -> tuple[str, str, str | None]:
        node = node or self.node
        given = node.scalar if node is not None else None
        words = f"one of {', '.join(allowed)}" if len(allowed) > 1 else "".join(allowed)
        near = closest_match(given, allowed) if isinstance(given, str) else None
        shown = _Words(self.shown, node, self.ctx).given()
        return "LD123", f"{start} {words}, not {shown}", f"did you mean `{near}`?" if near else None

    def tag(self) -> tuple[str, str, str | None]:
        name = str(self.ctx.get("discriminator", "")).strip("'")
        allowed: list[str] = re.findall(r"'([^']*)'", str(self.ctx.get("expected_tags", "")))
        node = self.node.entries.get(name) if self.node is not None else None
        return self.choice(f"`{name}` in {self.shown} must be", allowed, node)

    def no_tag(self) -> tuple[str, str, str | None]:
        if self.node is not None and self.node.kind != "mapping":
            return "LD122", f"{self.shown} must be an object, not {self.given()}", None
        name = str(self.ctx.get("discriminator", "")).strip("'")
        return "LD121", f"the key `{name}` is missing in {self.shown}", f"add `{name}`"

    def pattern(self) -> tuple[str, str, str | None]:
        pattern = str(self.ctx.get("pattern", ""))
        subject = self.shown if self.node is None else f"{self.shown} is {self.given()}, which"
        if pattern == NAME_PATTERN:
            name = str(self.node.scalar) if self.node is not None else self.shown.split("`")[1]
            fixed = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:64]
            usable = re.match(NAME_PATTERN, fixed) is not None
            hint = "a name is a letter or _, then up to 63 letters, digits, _ and -"
            return "LD125", f"{subject} is not a name", f"{hint}; such as `{fixed}`" if usable else hint
        if pattern in (CLASS_PATTERN, FUNCTION_PATTERN):
            what = "a class: `path.py:Class` or `module.Class`" if pattern == CLASS_PATTERN else "`path.py:function`"
            return "LD126", f"{subject} refers to no Python code", f"write {what}"
        if pattern == TEXT_PATTERN:
            return "LD124", f"{self.shown} is empty or holds a NUL character", None
        return "LD125", f"{subject} can't be part of a tool's name", "letters, digits, _ and - only, 63 at most"


def explain_ambiguous_scalar(loc: KeyPath, node: Node, trap: AmbiguousScalar) -> Fault:
    """Say that YAML's versions disagree about a value that may be of any type."""
    path, text = format_key_path(loc), _short(trap.text)
    message = f"`{path}`: YAML's versions disagree about `{text}`: some take it for {trap.meaning}"
    hint = f'quote it: "{_short(trap.text)}"'
    if trap.meaning in ("true", "false", "null"):
        hint += f", or write `{trap.meaning}`"
    return Fault(loc, diagnostic("LD115", message, node.place, hint))


def _meaning(value: object) -> str:
    if value is None:
        return "nothing (null)"
    return str(value).lower() if isinstance(value, bool) else "a number"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
