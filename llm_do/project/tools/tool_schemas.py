"""Creates tools with schemas from functions and tool objects, and finds the tools of toolsets without running them.

The linker uses it to report faulty tools before anything runs; the runtime creates its tools with the same functions
and adds what it needs (`llm_do.runtime.tools.stamped_tools`). PydanticAI generates the schemas, and is only imported
when one is needed.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do._warnings import suppress_warning
from llm_do.errors import ToolkitError, UsageError
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.gates import GatedToolset
from llm_do.project.tools.declared_facts import function_facts, metadata_facts
from llm_do.project.tools.partials import function_of
from llm_do.text.globs import matches_any
from llm_do.tools import NamedTool, Tool, ToolOptions, approval_fault, options_of

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset

    from llm_do.policy.values import Effect

__all__ = [
    "APPROVAL_KEY",
    "APPROVAL_WORDS",
    "UNCHECKED",
    "MadeTool",
    "add_examples",
    "approval_config",
    "describe_approval",
    "fixed_tools",
    "is_included",
    "make_schema",
    "schema_properties",
    "static_approval",
    "tool_of",
]

UNCHECKED = frozenset({"any", "dict[str,any]"})
"""Titles of validators that accept any JSON, so that the tool's JSON Schema has to be checked separately."""

APPROVAL_KEY = "__llm_do_approval__"
"""The attribute of a toolset in which `set_toolset_approval_config` stores its configuration."""

APPROVAL_WORDS = ("pre_approved", "approval_required", "blocked")
"""The keys of that configuration for one tool, each True or False."""


_SCHEMA_KEY = "__llm_do_schema__"
"""The attribute of a function in which its tool is kept, so that the linker and the runtime share one schema."""


@frozen
class MadeTool:
    """A tool with its schema.

    Args:
        tool: PydanticAI's tool; a copy that the caller may change.
        metadata: The metadata its author set.
        options: The options its author set, with `@tool` or otherwise.
        facts: Facts about the tool.
        unchecked: Whether its validator accepts anything, so that its JSON Schema has to be checked.
    """

    tool: PydanticTool[Any]
    metadata: Mapping[str, Any]
    options: ToolOptions
    facts: ToolFacts
    unchecked: bool


def make_schema(item: Callable[..., Any] | PydanticTool[Any] | Tool | NamedTool, name: str | None = None) -> MadeTool:
    """Create a PydanticAI tool from a function or a tool object.

    Example:
        >>> def add(a: int, b: int) -> int:
        ...     return a + b
        >>> sorted(make_schema(add).tool.tool_def.parameters_json_schema["properties"])
        ['a', 'b']
    """
    from pydantic_ai import Tool as PydanticTool

    metadata: dict[str, Any] = {}
    facts: ToolFacts | None = None
    unchecked = False
    if isinstance(item, PydanticTool):
        made: PydanticTool[Any] = copy.copy(cast("PydanticTool[Any]", item))
        metadata = dict(made.metadata or {})
        approval: Effect | None = metadata.get("approval")
        if approval is None and made.requires_approval:
            approval = "ask"
        options = ToolOptions(approval=approval, primary=metadata.get("primary"))
        facts = metadata_facts(metadata)
        # The runtime asks for approval inline; PydanticAI must not end the run to defer the call.
        made.requires_approval = False
        unchecked = made.function_schema.validator.title in UNCHECKED  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(item, Tool):
        options = options_of(item)
        own = cast("object", item.name)
        if name is None and not (isinstance(own, str) and own):
            # PydanticAI would call it `execute`.
            raise UsageError(
                f"the tool object {type(item).__name__} has no name",
                hint='Write `name = "..."` in its class, or export it under a key, as in TOOLS = {"name": ...}.',
            )
        made = PydanticTool.from_schema(item.execute, name or item.name, item.description, dict(item.parameters))
        unchecked = True
    else:
        options = options_of(item)
        function = function_of(item.function if isinstance(item, NamedTool) else item)
        made = tool_of(function, name=options.name or name, description=options.description)
        made.description = add_examples(made.description, options.examples)
    if name is not None:
        made.name = name
    return MadeTool(made, metadata, options, facts or function_facts(options), unchecked)


def tool_of(
    function: Callable[..., Any], *, name: str | None, description: str | None, takes_ctx: bool | None = None
) -> PydanticTool[Any]:
    """Create the PydanticAI tool of a function; its schema is generated once, and kept on the function."""
    from pydantic_ai import Tool as PydanticTool

    # A copy of the attributes, such as that of `functools.wraps`, belongs to another function.
    key = (id(function), takes_ctx, getattr(function, "__name__", None), function.__doc__)
    kept: tuple[object, Any] | None = getattr(function, _SCHEMA_KEY, None)
    if kept is not None and kept[0] == key:
        # A copy without the function is kept: one with it would keep the function, and all that it reaches, for good.
        schema = replace(kept[1], function=function)
        return PydanticTool(function, takes_ctx=takes_ctx, name=name, description=description, function_schema=schema)
    # PydanticAI warns if it can't generate a return schema, such as for an iterator.
    suppress_warning("Could not generate return schema for", UserWarning)
    made: PydanticTool[Any] = PydanticTool(function, takes_ctx=takes_ctx, name=name, description=description)
    if isinstance(function, FunctionType):
        setattr(function, _SCHEMA_KEY, (key, replace(made.function_schema, function=cast("Any", None))))
    return made


def approval_config(toolset: AbstractToolset[Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the configuration set with `set_toolset_approval_config`; empty if there is none."""
    return getattr(toolset, APPROVAL_KEY, {})


def describe_approval(item: object) -> object:
    """Return the `approval` of a tool object or tool definition, which may be None or invalid."""
    if isinstance(item, Tool):
        return item.approval
    metadata: object = getattr(item, "metadata", None)
    return cast("Mapping[str, object]", metadata).get("approval") if isinstance(metadata, Mapping) else None


def static_approval(levels: Sequence[tuple[AbstractToolset[Any], str]], tool_def: ToolDefinition) -> Effect | None:
    """Return the approval that applies to a toolset's tool for all arguments, from its metadata or configuration."""
    config: dict[str, Any] = {}
    for owner, name in reversed(levels):
        own = approval_config(owner).get(name, {})
        config = {**own, "blocked": True} if config.get("blocked") else dict(own or config)
    approval = describe_approval(tool_def)
    if approval == "deny" or approval_fault(approval) is not None or config.get("blocked"):
        return "deny"
    if config.get("pre_approved"):
        return "allow"
    if config.get("approval_required"):
        return "ask"
    return cast("Effect | None", approval) or ("ask" if tool_def.kind == "unapproved" else None)


def add_examples(description: str | None, examples: Sequence[Mapping[str, Any]]) -> str | None:
    """Append example calls to a tool's description.

    Example:
        >>> add_examples("Add.", [{"a": 1, "b": 2}])
        'Add.\\n\\nExamples:\\n{"a": 1, "b": 2}'
    """
    if not examples:
        return description
    calls = "\n".join(json.dumps(dict(example), ensure_ascii=False) for example in examples)
    return f"{description or ''}\n\nExamples:\n{calls}".strip()


def fixed_tools(toolset: object) -> list[PydanticTool[Any]] | None:
    """Return the tools of a toolset that can't change during a run; None for one that can."""
    if "pydantic_ai" not in sys.modules:
        return None
    if isinstance(toolset, GatedToolset):
        try:
            return list(toolset.gated.tools())
        except ToolkitError:  # reported where the toolkit is checked
            return None
    from pydantic_ai.toolsets import FunctionToolset

    if not isinstance(toolset, FunctionToolset):
        return None
    kind, owner = FunctionToolset, cast("FunctionToolset[Any]", toolset)
    if owner.timeout is not None:
        return None
    same = ("get_tools", "call_tool", "for_run", "for_run_step", "__aenter__", "__aexit__")
    if any(getattr(type(owner), name) is not getattr(kind, name) for name in same):
        return None
    tools: list[PydanticTool[Any]] = list(owner.tools.values())
    return None if any(tool.prepare is not None or tool.defer_loading for tool in tools) else tools


def schema_properties(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters of a tool's JSON Schema; None if it has none.

    Example:
        >>> schema_properties({"$ref": "#/$defs/Node", "$defs": {"Node": {"properties": {"name": {"type": "string"}}}}})
        {'name': {'type': 'string'}}
    """
    root: Mapping[str, Any] = schema
    reference: object = root.get("$ref")
    if "properties" not in root and isinstance(reference, str):
        definitions = cast("Mapping[str, Mapping[str, Any]]", root.get("$defs") or {})
        root = definitions.get(reference.rpartition("/")[2], {})
    found: object = root.get("properties")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def is_included(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Check whether globs include a tool: one of `include` matches, if there are any, and none of `exclude`.

    Example:
        >>> is_included("search_issues", ["search_*"], []), is_included("search_code", [], ["*_code"])
        (True, False)
    """
    return (not include or matches_any(name, include)) and not matches_any(name, exclude)
