"""List the tools that an agent's model sees, as far as they are known without running anything.

Factories, MCP servers and toolsets with code of their own list their tools only at run time; an inventory names them.
`llm_do.linker.checks.tool_checks` checks the tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do.formats.server_listings import model_names
from llm_do.linker.analysis.code_calls import context_parameter
from llm_do.linker.python.exports import display_name
from llm_do.linker.python.python_files import run_user_code
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Effect, ToolKind
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.gates import GatedToolset
from llm_do.project.inputs import PromptInput, attaching_arguments
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin, known_tools, memory_scopes
from llm_do.project.tools.declared_facts import facts_fault, toolset_facts
from llm_do.project.tools.tool_schemas import (
    MadeTool,
    describe_approval,
    is_included,
    make_schema,
    schema_properties,
    static_approval,
)
from llm_do.project.tools.toolset_wrappers import ShownTool, find_shown_tools
from llm_do.text.globs import parse_glob
from llm_do.tools import approval_fault

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool

__all__ = ["AgentTools", "Inventory", "KnownTool", "Miss", "Origin"]


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The entry of an agent's `tools` or `toolsets` that a tool comes from; `index` counts from 0.

    `ref` is the reference to a toolset, None for a tool.
    """

    name: str
    ref: ToolsetRef | None
    index: int

    def __str__(self) -> str:
        return f"the toolset `{self.name}`" if self.ref is not None else f"the tool `{self.name}`"


@frozen
class KnownTool:
    """A tool as an agent's model sees it.

    `name` is its name on the wire, prefix included, and `tool` its own. `approval` is the effect its author declares
    for all arguments, `fault` the error in that declaration. A `conditional` tool is offered or hidden at run time.
    `schema` and `description` are None if they aren't known before a run. `code` is the project's function behind it,
    or the object that it is made of; None if there is none, or it isn't known.
    """

    name: str
    tool: str
    origin: Origin
    facts: ToolFacts = ToolFacts()
    toolset: str | None = None
    approval: Effect | None = None
    conditional: bool = False
    fault: str | None = None
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    description: str | None = field(default=None, repr=False)
    code: object = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> ToolKind:
        """What implements the tool."""
        return self.facts.kind


@frozen
class Miss:
    """A glob of `include` or `exclude` that matches none of a toolset's tools, whose names are in `known`."""

    origin: Origin
    key: str
    index: int
    glob: str
    known: Sequence[str]


@frozen
class AgentTools:
    """The tools of one agent: the known ones in listed order, duplicate names included.

    `open` lists the toolsets whose tools are known only at run time, `misses` the globs that match no tool.
    """

    tools: Sequence[KnownTool]
    open: Sequence[Origin] = ()
    misses: Sequence[Miss] = ()


class Inventory:
    """List the tools of agents, given every name of the project; each schema is built once."""

    def __init__(self, names: Mapping[str, Registered]) -> None:
        self._names = names
        self._made: dict[tuple[int, str | None], MadeTool | Exception] = {}

    def build_tool(self, item: Any, name: str | None = None) -> MadeTool | Exception:
        """Return the tool of a function or a tool object, or the exception that building it raised."""
        key = (id(item), name)
        if key not in self._made:
            try:
                with run_user_code():
                    self._made[key] = make_schema(item, name)
            except Exception as error:  # noqa: BLE001 - building a schema runs the project's code
                self._made[key] = error
        return self._made[key]

    def of(self, spec: AgentSpec) -> AgentTools:
        """Return the tools of an agent, ignoring unknown names."""
        tools: list[KnownTool] = []
        open_: list[Origin] = []
        misses: list[Miss] = []
        for index, item in enumerate(spec.tools):
            tools.extend(self._function(item, index))
        for index, item in enumerate(spec.toolsets):
            found = self._toolset(item, index)
            if isinstance(found, Origin):
                open_.append(found)
                tools.extend(self._listed(found))
            elif found:
                tools.extend(_select(found, misses))
        return AgentTools(tools, open_, misses)

    def _listed(self, origin: Origin) -> Iterator[KnownTool]:
        """Return the tools that a server had when it was last asked; in a run it may have others."""
        found, ref = self._names.get(origin.name), cast("ToolsetRef", origin.ref)
        if found is None or not isinstance(found.value, BuiltinToolset) or not found.value.listed:
            return
        config = {**found.value.config, **ref.options}
        prefix = next(each for each in (ref.prefix, config.get("prefix"), origin.name) if each is not None)
        listed = {tool.name: tool for tool in found.value.listed}
        for own, name in model_names((own for own in listed if _is_offered(own, config)), prefix):
            if not is_included(name, ref.include, ref.exclude):
                continue
            schema = listed[own].schema
            facts = ToolFacts("mcp", arguments=tuple(schema_properties(schema) or ()))
            description = listed[own].description
            wire = f"{prefix}_{name}" if prefix else name
            yield KnownTool(
                wire, own, origin, facts, ref.name, conditional=True, schema=schema, description=description
            )

    def _function(self, item: Any, index: int) -> Iterator[KnownTool]:
        if isinstance(item, str):
            found = self._names.get(item)
            if found is not None and found.kind in ("agent", "flow"):
                yield _of_call(found, ToolsetRef(item), Origin(item, None, index))
            if found is None or found.kind != "tool":
                return
            name, value = item, found.value
        elif isinstance(item, AgentSpec | FlowSpec):
            kind = "agent" if isinstance(item, AgentSpec) else "flow"
            yield _of_call(Registered(item.name, kind, item), ToolsetRef(item.name), Origin(item.name, None, index))
            return
        else:
            name, value = display_name(item), item
        made = self.build_tool(value, name if isinstance(item, str) else None)
        origin = Origin(name, None, index)
        if isinstance(made, Exception):
            yield KnownTool(name, name, origin)
        else:
            yield _of_tool(made.tool, made.tool.name, None, origin, made.facts, made.options.approval, code=value)

    def _toolset(self, item: Any, index: int) -> Origin | list[KnownTool]:
        if isinstance(item, AgentSpec | FlowSpec):
            kind, ref = "agent" if isinstance(item, AgentSpec) else "flow", ToolsetRef(item.name)
            return [_of_call(Registered(item.name, kind, item), ref, Origin(item.name, ref, index))]
        if not isinstance(item, str | ToolsetRef):
            name = str(getattr(item, "id", None) or getattr(item, "__name__", None) or type(item).__name__)
            return self._instance(item, Origin(name, ToolsetRef(name), index))
        ref = ToolsetRef(item) if isinstance(item, str) else item
        origin = Origin(ref.name, ref, index)
        if ref.value is not None:
            return self._instance(ref.value, origin)
        found = self._names.get(ref.name)
        if found is None:
            shipped = find_builtin(ref.name)
            return _of_builtin(shipped, origin) if shipped is not None else []
        if found.kind in ("agent", "flow"):
            return [_of_call(found, ref, origin)]
        if found.kind == "tool":
            made = self.build_tool(found.value, ref.name)
            if isinstance(made, Exception):
                return [KnownTool(_wire(ref, ref.name), ref.name, origin)]
            name = _wire(ref, made.tool.name)
            return [_of_tool(made.tool, name, None, origin, made.facts, made.options.approval, code=found.value)]
        if isinstance(found.value, BuiltinToolset):
            return _of_builtin(found.value, origin)
        return self._instance(found.value, origin)

    def _instance(self, toolset: Any, origin: Origin) -> Origin | list[KnownTool]:
        tools = find_shown_tools(toolset)
        return origin if tools is None else [_of_shown(shown, origin) for shown in tools]


def _is_offered(own: str, config: Mapping[str, Any]) -> bool:
    return is_included(own, config.get("include") or (), config.get("exclude") or ())


def _select(tools: list[KnownTool], misses: list[Miss]) -> list[KnownTool]:
    """Return the tools of one entry that its globs select, and add the globs without a match to `misses`."""
    origin = tools[0].origin
    ref = cast("ToolsetRef", origin.ref)
    if not ref.include and not ref.exclude:
        return tools
    own = [tool.tool for tool in tools]
    for key, globs in (("include", ref.include), ("exclude", ref.exclude)):
        misses += [
            Miss(origin, key, index, glob, own)
            for index, glob in enumerate(globs)
            if not any(parse_glob(glob).matches(name) for name in own)
        ]
    return [tool for tool in tools if is_included(tool.tool, ref.include, ref.exclude)]


def _wire(ref: ToolsetRef, name: str) -> str:
    return f"{ref.prefix}_{name}" if ref.prefix else name


def _of_shown(shown: ShownTool, origin: Origin) -> KnownTool:
    """Return a tool of a toolset as the outermost wrapper shows it."""
    ref, definition = cast("ToolsetRef", origin.ref), shown.definition
    approval = static_approval(shown.levels, definition)
    facts = toolset_facts(shown.levels, definition)
    # PydanticAI's `approval_required` may require approval for any arguments, whatever the tool's own metadata says.
    if any(callable(getattr(toolset, "approval_required_func", None)) for toolset, _ in shown.levels):
        facts = replace(facts, default="ask", decides=True)
        approval = None if approval == "allow" else approval
    elif any(callable(getattr(toolset, "needs_approval", None)) for toolset, _ in shown.levels):
        facts = replace(facts, decides=True)
    owner = shown.levels[-1][0]
    code = owner.gated.functions.get(shown.tool.name) if isinstance(owner, GatedToolset) else shown.tool
    known = _of_tool(shown.tool, _wire(ref, definition.name), ref.name, origin, facts, approval, code=code)
    known = replace(
        known,
        tool=definition.name,
        conditional=shown.conditional,
        fault=approval_fault(describe_approval(definition)) or facts_fault(shown.levels, definition),
    )
    if not shown.prepared:
        return known
    return replace(known, facts=replace(known.facts, arguments=None), schema=None, description=None)


def _of_tool(
    tool: PydanticTool[Any],
    name: str,
    toolset: str | None,
    origin: Origin,
    facts: ToolFacts,
    approval: Effect | None,
    *,
    code: object,
) -> KnownTool:
    schema = tool.tool_def.parameters_json_schema
    properties = schema_properties(schema)
    known = tuple(properties) if properties is not None else () if schema.get("additionalProperties") is False else None
    facts = replace(facts, arguments=known)
    description = tool.tool_def.description
    if tool.takes_ctx and facts.kind == "function" and context_parameter(code) is None:
        code = tool  # PydanticAI knows by types that aren't written out that it takes a context
    return KnownTool(
        name, tool.name, origin, facts, toolset, approval, schema=schema, description=description, code=code
    )


def _of_call(found: Registered, ref: ToolsetRef, origin: Origin) -> KnownTool:
    """Return the tool of an agent or a flow."""
    if found.kind == "flow":
        return KnownTool(_wire(ref, found.name), found.name, origin, ToolFacts("flow"))
    spec: AgentSpec = found.value
    model = spec.input_model or PromptInput
    facts = ToolFacts("agent", arguments=tuple(model.model_fields), reads=attaching_arguments(model))
    return KnownTool(_wire(ref, spec.name), spec.name, origin, facts, description=spec.description)


def _of_builtin(toolset: BuiltinToolset, origin: Origin) -> Origin | list[KnownTool]:
    ref = cast("ToolsetRef", origin.ref)
    tools = known_tools(toolset, ref.options)
    if tools is None:
        return origin
    scopes = memory_scopes(toolset, ref.options)
    schema = {"properties": {"scope": {"enum": list(scopes)}}} if scopes is not None else None
    return [KnownTool(_wire(ref, name), name, origin, facts, ref.name, schema=schema) for name, facts in tools.items()]
