"""Turns functions and toolsets of any origin into tools with traits, each built once.

Schemas are built in `llm_do.project.tools.tool_schemas`; nothing here runs a tool.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext, Tool as PydanticTool, ToolDefinition
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import EntryError, LlmDoError
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Decision, Effect, ToolCallInfo
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.faults import project_error
from llm_do.project.tools.declared_facts import facts_fault, toolset_facts
from llm_do.project.tools.tool_schemas import (
    APPROVAL_KEY,
    APPROVAL_WORDS,
    UNCHECKED,
    approval_config,
    describe_approval,
    is_included,
    make_schema,
    static_approval,
)
from llm_do.project.tools.toolset_wrappers import Level, ShownTool, find_shown_tools, wrapper_levels
from llm_do.runtime.tools.approval_requirement import defer_requirement, mark_approved, wrapper_requirement
from llm_do.runtime.tools.traits import TRAITS_KEY, Preview, ToolTraits, traits_of
from llm_do.text.canonical_json import digest
from llm_do.tools import Tool, approval_fault

__all__ = [
    "ListedTools",
    "SelectedToolset",
    "StampedToolset",
    "add_prefix",
    "approval_config",
    "is_included",
    "list_tools",
    "make_tool",
    "set_approval_config",
    "stamped_definition",
    "stamped_tool",
]


def make_tool(item: Callable[..., Any] | PydanticTool[Any] | Tool, name: str | None = None) -> PydanticTool[Any]:
    """Build the PydanticAI tool of a function or a tool object."""
    schema = make_schema(item, name)
    made, options = schema.tool, schema.options
    traits = ToolTraits(
        schema.facts,
        tool=made.name,
        approval=options.approval,
        timeout=options.timeout,
        unchecked=schema.unchecked,
        function=made.function_schema.function,
    )
    made.metadata = {**schema.metadata, TRAITS_KEY: traits}
    return made


def set_approval_config(toolset: AbstractToolset[Any], config: Mapping[str, Mapping[str, Any]]) -> None:
    """Set which tools of a toolset are pre-approved: `{"tool": {"pre_approved": True}}`.

    Args:
        toolset: The toolset.
        config: By tool name, `pre_approved`, `approval_required` or `blocked`, each True or False.

    Raises:
        ValueError: A key or value is invalid, and would neither deny nor ask.
    """
    for name, entry in config.items():
        for key, value in entry.items():
            if key not in APPROVAL_WORDS or not isinstance(value, bool):
                known = f"{', '.join(APPROVAL_WORDS[:-1])} or {APPROVAL_WORDS[-1]}"
                raise ValueError(
                    f"the approval config of {name!r} takes {known}, each True or False, not {key!r}: {value!r}"
                )
    object.__setattr__(toolset, APPROVAL_KEY, {name: dict(entry) for name, entry in config.items()})


_STRICT: Sequence[Effect] = ("allow", "ask", "deny")


@dataclass
class StampedToolset(WrapperToolset[Any]):
    """Gives each tool of a toolset the traits the runtime needs, unless it has its own."""

    name: str
    root: Path | None = None
    _stamped: dict[str, tuple[ToolDefinition, ToolsetTool[Any]]] = field(
        default_factory=dict[str, tuple[ToolDefinition, "ToolsetTool[Any]"]], init=False, repr=False, compare=False
    )

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the wrapped toolset's tools, with traits."""
        tools = await list_tools(self.name, self.wrapped, ctx, self.root)
        return {name: self._stamp(name, tool) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call one of the tools, with `tool_call_approved` set if it was approved."""
        return await super().call_tool(name, tool_args, mark_approved(ctx), tool)

    def _stamp(self, name: str, tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        known = self._stamped.get(name)
        if known is not None and known[0] is tool.tool_def:
            return replace(known[1], toolset=tool.toolset)
        through = wrapper_levels(self.wrapped, name, tool.toolset)
        definition = stamped_definition(self.name, through, tool.tool_def, tool.args_validator)
        validator = defer_requirement(tool.args_validator_func)
        stamped = replace(tool, tool_def=definition, args_validator_func=validator)
        self._stamped[name] = (tool.tool_def, stamped)
        return stamped


async def list_tools(
    name: str, toolset: AbstractToolset[Any], ctx: RunContext[Any], root: Path | None
) -> dict[str, ToolsetTool[Any]]:
    """Return a toolset's tools; an exception of its own code becomes an error that names it.

    Raises:
        EntryError: It can't list them.
    """
    try:
        return await toolset.get_tools(ctx)
    except (LlmDoError, UserError):
        raise
    except Exception as error:
        raise project_error(EntryError, f"the toolset {name!r} can't list its tools:", error, root) from error


def stamped_tool(toolset_name: str, owner: AbstractToolset[Any], tool: PydanticTool[Any]) -> PydanticTool[Any]:
    """Return a copy of `owner`'s function tool with traits, or the tool itself if it has its own."""
    if tool.metadata is not None and TRAITS_KEY in tool.metadata:
        return tool
    made: PydanticTool[Any] = copy.copy(tool)
    validator = tool.function_schema.validator
    traits = _traits_for(toolset_name, [(owner, tool.name)], tool.tool_def, validator)
    traits = replace(traits, function=tool.function_schema.function)
    made.requires_approval = False
    made.metadata = {**(tool.metadata or {}), TRAITS_KEY: traits}
    return made


def stamped_definition(
    toolset_name: str, through: Sequence[Level], definition: ToolDefinition, validator: object
) -> ToolDefinition:
    """Return a tool's definition with its traits."""
    traits = traits_of(definition.metadata)
    if traits is None:
        traits = _traits_for(toolset_name, through, definition, validator)
    requires = wrapper_requirement(through)
    if requires is not None:
        traits = replace(traits, requires=requires)
    kind = "function" if definition.kind == "unapproved" else definition.kind
    return replace(definition, kind=kind, metadata={**(definition.metadata or {}), TRAITS_KEY: traits})


def _traits_for(toolset_name: str, through: Sequence[Level], tool_def: ToolDefinition, validator: object) -> ToolTraits:
    fault = approval_fault(describe_approval(tool_def)) or facts_fault(through, tool_def)
    denied = Decision("deny", f"its metadata can't be read, {fault}") if fault is not None else None
    describe = _method(through, "get_approval_description")
    diff = _method(through, "diff")
    return ToolTraits(
        ToolFacts("toolset") if fault is not None else toolset_facts(through, tool_def),
        toolset=toolset_name,
        tool=through[0][1],
        approval=static_approval(through, tool_def),
        decide=_decision_function(through) if denied is None else lambda _: denied,
        describe=(lambda args: _text(describe(dict(args))) or "") if describe is not None else None,
        preview=(lambda args: _preview(diff(dict(args)))) if diff is not None else None,
        unchecked=getattr(validator, "title", None) in UNCHECKED,
    )


def _method(through: Sequence[Level], name: str) -> Callable[[dict[str, Any]], object] | None:
    """Return a method of the outermost toolset that has it, bound to the tool."""
    for toolset, tool in through:
        method: Any = getattr(toolset, name, None)
        if callable(method):
            return partial(method, tool)
    return None


def _decision_function(through: Sequence[Level]) -> Callable[[ToolCallInfo], Decision | None] | None:
    """Combine the toolsets' `needs_approval` methods, the strictest first; None if none has any."""
    asking = [ask for level in through if (ask := _method([level], "needs_approval")) is not None]
    if not asking:
        return None

    def decide(call: ToolCallInfo) -> Decision | None:
        decisions = [one for ask in asking if (one := _to_decision(ask(dict(call.args)))) is not None]
        return max(decisions, key=lambda one: (_STRICT.index(one.effect), one.person_only), default=None)

    return decide


def _preview(diff: object) -> Preview:
    text = _text(diff)
    return Preview(text, digest(text))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _to_decision(answer: object) -> Decision | None:
    """Convert the return value of `needs_approval`: a decision, an effect, or whether to ask."""
    if answer is None or isinstance(answer, Decision):
        return answer
    if answer in ("allow", "ask", "deny"):
        return Decision(answer)  # pyright: ignore[reportArgumentType]
    if inspect.iscoroutine(answer):
        answer.close()
    if isinstance(answer, str | Awaitable):
        raise TypeError(f"needs_approval must return allow, ask, deny, a bool or None, not {answer!r}")
    return Decision("ask" if answer else "allow")


def _listed_tool(toolset_name: str, shown: ShownTool) -> ToolDefinition:
    """Return a tool of a wrapped toolset as its model will see it."""
    validator = shown.tool.function_schema.validator
    return stamped_definition(toolset_name, shown.levels, shown.definition, validator)


def add_prefix(definition: ToolDefinition, prefix: str | None) -> ToolDefinition:
    """Return a tool definition with a prefix, or unchanged without one."""
    return replace(definition, name=f"{prefix}_{definition.name}") if prefix else definition


@dataclass
class ListedTools:
    """The tools known before a run of toolsets that are asked for their tools at every step.

    Args:
        tools: Their tools, as a model sees them.
        conditional: Names of the tools that a run may hide.
        open: Names of the toolsets whose tools are unknown.
    """

    tools: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    conditional: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])

    def add(self, toolset: AbstractToolset[Any], ref: ToolsetRef) -> None:
        """Add a toolset's tools, or its name if they are unknown."""
        known = find_shown_tools(toolset)
        if known is None:
            self.open.append(ref.name)
            return
        for shown in known:
            if not is_included(shown.definition.name, ref.include, ref.exclude):
                continue
            definition = add_prefix(_listed_tool(ref.name, shown), ref.prefix)
            self.tools.append(definition)
            if shown.conditional:
                self.conditional.append(definition.name)

    def add_remembered(self, definitions: Sequence[ToolDefinition], ref: ToolsetRef) -> None:
        """Add the tools that a server had when it was last asked."""
        for definition in definitions:
            if is_included(definition.name, ref.include, ref.exclude):
                shown = add_prefix(definition, ref.prefix)
                self.tools.append(shown)
                self.conditional.append(shown.name)


@dataclass
class SelectedToolset(WrapperToolset[Any]):
    """The tools of a toolset whose own names match the globs."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the wrapped toolset's tools that match."""
        return {name: tool for name, tool in (await self.wrapped.get_tools(ctx)).items() if self.includes(name)}

    def includes(self, name: str) -> bool:
        """Whether a tool with this name matches."""
        return is_included(name, self.include, self.exclude)
