"""Checks of tools: each tool on its own, the tools of one agent together, and what providers refuse.

`llm_do.linker.analysis.inventory` lists the tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from llm_do.diagnostics.codes import tools as problems
from llm_do.diagnostics.diagnostic import Location
from llm_do.errors import LlmDoError
from llm_do.linker.analysis.inventory import AgentTools, Inventory, KnownTool, Origin
from llm_do.linker.analysis.names import Names
from llm_do.linker.checks.provider_limits import MAX_TOOLS, find_refusals, provider_families
from llm_do.linker.python.exports import display_name
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.registry import NAME_PATTERN, Registered
from llm_do.project.tools.argument_schemas import find_unusable_part
from llm_do.project.tools.tool_schemas import MadeTool, describe_approval, schema_properties
from llm_do.tools import approval_fault

__all__ = ["check_functions", "check_limits", "check_tool_names", "short_reason", "tools_given_by_code"]

PlaceOf: TypeAlias = "Callable[..., Location]"
"""Returns the location of an entry in an agent's lists, or of a key path inside it."""

_NAME = re.compile(NAME_PATTERN)


def short_reason(error: Exception, public: Callable[[str], str]) -> str:
    """Return the first sentence of an error, without pydantic's advice to its own users.

    Example:
        >>> short_reason(ValueError("Unknown type.\\n\\nFor further information visit https://example.org"), str)
        'unknown type'
    """
    text = str(error).strip().partition("\n\n")[0]
    text = " ".join(line.strip() for line in text.splitlines() if "For further information" not in line)
    text = public(re.sub(r" ?Set `arbitrary_types_allowed=True`.*", "", text).rstrip(" ."))
    return f"{text[:1].lower() if text[1:2].islower() else text[:1]}{text[1:240]}" or type(error).__name__


def tools_given_by_code(
    agents: Iterable[tuple[AgentSpec, Location | None]], known: Iterable[Registered]
) -> list[Registered]:
    """Return the functions and tool objects that code passes to agents, each once, as messages name them."""
    seen = {id(item.value) for item in known}
    found: list[Registered] = []
    for spec, place in agents:
        for item in spec.tools:
            if not isinstance(item, str) and id(item) not in seen:
                seen.add(id(item))
                found.append(Registered(display_name(item), "tool", item, place))
    return found


def check_functions(
    inventory: Inventory,
    items: Iterable[Registered],
    passed: Iterable[Registered],
    names: Names,
    public: Callable[[str], str],
) -> None:
    """Check that functions and tool objects make valid tools with the arguments that they declare."""
    for item in items:
        _check_function(inventory.build_tool(item.value, item.name), item, names, public)
    for item in passed:
        _check_function(inventory.build_tool(item.value), item, names, public)


def _check_function(made: MadeTool | Exception, item: Registered, names: Names, public: Callable[[str], str]) -> None:
    place = item.place or Location("")
    unknown = approval_fault(describe_approval(item.value))
    if unknown is not None:
        names.report(problems.unknown_approval(f"`{item.name}`", unknown), place)
        return
    if isinstance(made, Exception):
        hint = None
        if isinstance(made, LlmDoError) and made.hint is not None:
            hint = made.hint[:1].lower() + made.hint[1:].rstrip(".")
        wants_context, reason = "CallContext" in str(made), short_reason(made, public)
        names.report(problems.not_a_tool(item.name, reason, hint, wants_context=wants_context), place)
        return
    schema = made.tool.tool_def.parameters_json_schema
    fault = find_unusable_part(schema) if made.unchecked else None
    if fault is not None:
        names.report(problems.invalid_parameters(item.name, fault), place)
        return
    known = schema_properties(schema) or {}
    _check_facts(f"`{item.name}`", replace(made.facts, arguments=tuple(known)), names, place)


def _check_facts(tool: str, facts: ToolFacts, names: Names, place: Location) -> None:
    """Check that a tool has the arguments that its facts name."""
    known = facts.arguments
    for argument in facts.named_arguments if known is not None else ():
        if known is not None and argument not in known:
            primary = argument in facts.primary_arguments
            names.report(problems.unknown_declared(tool, argument, known, primary=primary), place)


def check_tool_names(tools: AgentTools, names: Names, place_of: PlaceOf) -> None:
    """Check that the names of an agent's tools are unique, and that every glob matches a tool."""
    shown: dict[str, KnownTool] = {}
    misnamed: dict[Origin, list[str]] = {}
    clashes: dict[tuple[Origin, Origin], list[str]] = {}
    for tool in tools.tools:
        if tool.toolset is not None:
            _check_declared(tool, names, place_of)
        first = shown.setdefault(tool.name, tool)
        if first is not tool and (first.conditional or tool.conditional):
            continue
        if first is not tool:
            clashes.setdefault((first.origin, tool.origin), []).append(tool.name)
        elif not _NAME.match(tool.name):
            misnamed.setdefault(tool.origin, []).append(tool.name)
    for origin, wrong in misnamed.items():
        names.report(problems.invalid_tool_names(wrong, origin), place_of(origin))
    for (first, second), both in clashes.items():
        _clash(first, second, both, names, place_of)
    seen: dict[tuple[str, str | None], Origin] = {}
    for origin in tools.open:
        if origin.ref is None or origin.ref.include or origin.ref.exclude:
            continue
        first = seen.setdefault((origin.name, origin.ref.prefix), origin)
        if first is not origin:
            _clash(first, origin, (), names, place_of)
    for miss in tools.misses:
        place = place_of(miss.origin, miss.key, miss.index)
        names.report(problems.unmatched_filter(miss.key, miss.glob, miss.origin, miss.known), place)


def _check_declared(tool: KnownTool, names: Names, place_of: PlaceOf) -> None:
    """Check the declarations about a toolset's tool."""
    home = names.taken.get(tool.origin.name)
    place = home.place if home is not None and home.place is not None else place_of(tool.origin)
    shown = f"`{tool.tool}` of {tool.origin}"
    if tool.fault is not None:
        names.report(problems.unknown_approval(shown, tool.fault), place)
    _check_facts(shown, tool.facts, names, place)


def _clash(first: Origin, second: Origin, both: Sequence[str], names: Names, place_of: PlaceOf) -> None:
    place, other = place_of(second), place_of(first)
    prefixes = [origin.ref.prefix or None if origin.ref is not None else None for origin in (first, second)]
    if first.name == second.name and prefixes[0] == prefixes[1]:
        names.report(problems.listed_twice(second.name, other), place)
        return
    prefixable = next((origin.name for origin in (second, first) if origin.ref is not None), None)
    names.report(problems.same_tool_names(first, other, second, both, prefixable), place)


def check_limits(
    agents: Iterable[tuple[AgentSpec, AgentTools, Location]],
    default: object,
    names: Names,
) -> None:
    """Warn about tools that the providers of the agents' models refuse, or any provider if no model is fixed."""
    reported: set[tuple[str, str]] = set()
    for spec, tools, place in agents:
        providers = provider_families(_names(spec.model or default, names))
        count = sum(not tool.conditional for tool in tools.tools)
        if count > MAX_TOOLS and (providers is None or "OpenAI" in providers):
            names.report(problems.too_many_tools(spec.name, count, MAX_TOOLS), place)
        for tool in tools.tools:
            if tool.schema is None or tool.schema.get("type", "object") != "object":
                continue
            for found in find_refusals(tool.schema, tool.description):
                by = [name for name in found.by if providers is None or name in providers]
                if by and (tool.tool, found.what) not in reported:
                    reported.add((tool.tool, found.what))
                    home = names.taken.get(tool.origin.name)
                    where = home.place if home is not None and home.place is not None else place
                    names.report(problems.refused_tool(tool.tool, found.what, by, found.hint), where)


def _names(model: object, names: Names) -> list[str]:
    """The names of models, with what aliases of one step stand for; an alias of aliases may be any provider's."""
    many = cast("Sequence[object]", model) if isinstance(model, list | tuple) else [model]
    return [target for name in many if isinstance(name, str) for target in names.aliases.get(name, (name,))]
