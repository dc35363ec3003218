"""Find tools that providers are known to refuse, so that a request that can't succeed is reported before it is made.

Each entry was observed in responses of a provider's service. Schemas that PydanticAI repairs (it inlines references and
drops keywords) aren't reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.project.tools.tool_schemas import schema_properties

__all__ = ["MAX_TOOLS", "Refusal", "find_refusals", "provider_families"]

MAX_TOOLS = 128
"""The most tools that OpenAI's services accept in one request."""

_DESCRIPTION = 1024
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "OpenAI": ("openai", "openai-chat", "openai-responses", "azure"),
    "Anthropic": ("anthropic",),
    "Google": ("google", "google-gla", "google-vertex", "google-cloud", "gemini"),
}
_NEVER = ("test", "script", "local")


@frozen
class Refusal:
    """A reason why providers refuse a tool: `what` ends a sentence about the tool, `by` names the providers."""

    what: str
    by: tuple[str, ...]
    hint: str


def provider_families(models: Iterable[str]) -> frozenset[str] | None:
    """Return the providers that models belong to, or None if it may be any.

    Example:
        >>> found = provider_families(["openai:gpt-5", "anthropic:claude-sonnet-4-5"])
        >>> sorted(found), provider_families(["corp:small"])
        (['Anthropic', 'OpenAI'], None)
    """
    found: set[str] = set()
    for model in models:
        prefix = model.partition(":")[0].lower()
        family = next((name for name, prefixes in _FAMILIES.items() if prefix in prefixes), None)
        if family is not None:
            found.add(family)
        elif prefix not in _NEVER:
            return None
    return frozenset(found) if found else None


def find_refusals(schema: Mapping[str, Any], description: str | None) -> Iterator[Refusal]:
    """Find the reasons why providers refuse a tool.

    Example:
        >>> [found.by for found in find_refusals({"type": "object", "anyOf": []}, None)]
        [('Anthropic', 'OpenAI')]
    """
    roots = [key for key in ("anyOf", "oneOf", "allOf") if key in schema]
    if roots:
        what = f"has `{roots[0]}` at the root of its parameters"
        yield Refusal(what, ("Anthropic", "OpenAI"), "put the choice into a parameter of its own")
    for name in schema_properties(schema) or {}:
        if not _PROPERTY.fullmatch(name):
            what = f"has a parameter `{name}`, whose name is not 1 to 64 of letters, digits, _, . and -"
            yield Refusal(what, ("Anthropic",), "rename it")
    cycle = _recursive(schema)
    if cycle is not None:
        what = f"has parameters that contain themselves (`{cycle}`)"
        yield Refusal(what, ("Google",), "flatten them, such as a list of items that name their parent")
    bare = _array_without_items(schema)
    if bare is not None:
        what = f"has the array `{bare}` without `items`"
        yield Refusal(what, ("OpenAI",), "say what it holds: `list[str]` instead of a tuple, or `items`")
    if description is not None and len(description) > _DESCRIPTION:
        what = f"has a description of {len(description):,} characters, more than {_DESCRIPTION:,}"
        yield Refusal(what, ("OpenAI",), "shorten its docstring, and say the rest in the agent's instructions")


def _recursive(schema: Mapping[str, Any]) -> str | None:
    """Return the name of a definition that refers to itself, directly or through others."""
    definitions: object = schema.get("$defs")
    if not isinstance(definitions, dict):
        return None
    names = cast("dict[str, object]", definitions)
    uses = {name: {ref for ref in _references(part) if ref in names} for name, part in names.items()}
    for name in names:
        seen: set[str] = set()
        waiting = list(uses[name])
        while waiting:
            other = waiting.pop()
            if other == name:
                return name
            if other not in seen:
                seen.add(other)
                waiting.extend(uses[other])
    return None


def _references(part: object) -> Iterator[str]:
    for key, value in _walk(part):
        if key == "$ref" and isinstance(value, str):
            yield value.rpartition("/")[2]


def _array_without_items(schema: Mapping[str, Any]) -> str | None:
    for key, value in _walk(schema):
        if isinstance(value, dict):
            part = cast("dict[str, object]", value)
            if part.get("type") == "array" and "items" not in part and not _is_repaired(part):
                return key
    return None


def _is_repaired(array: Mapping[str, object]) -> bool:
    """Whether PydanticAI turns a tuple into an array: it does if the tuple has a single part."""
    parts: object = array.get("prefixItems")
    return isinstance(parts, list) and len(cast("list[object]", parts)) == 1


def _walk(part: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value of a schema with its key, except values that are data."""
    yield key, part
    if isinstance(part, dict):
        for name, value in cast("dict[str, object]", part).items():
            if name not in ("default", "const", "enum", "examples"):
                yield from _walk(value, name)
    elif isinstance(part, list):
        for value in cast("list[object]", part):
            yield from _walk(value, key)
