"""Builds PydanticAI agents from declarations and the registry, once per project.

A built agent holds no state of a run. The model is chosen at each call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from pydantic_ai import Agent, Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.errors import LlmDoError, RunError, UsageError
from llm_do.models.pool import CONNECTION_SETTINGS
from llm_do.project.agent_spec import SKILLS, AgentSpec, ToolsetRef, agent_fault, give_skills, skills_of, takes_deps
from llm_do.project.faults import build_error
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.gates import DYNAMIC_MARK, GatedToolset
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin
from llm_do.project.tools.tool_schemas import fixed_tools, is_included
from llm_do.runtime.agents.admitted_capability import take_capabilities
from llm_do.runtime.agents.agent_parts import (
    instructions_of,
    output_check,
    output_type,
    server_side_tool,
    skill_instructions,
)
from llm_do.runtime.agents.agent_skills import find_agent_skills
from llm_do.runtime.agents.pipeline import AdoptingPipeline, Pipeline
from llm_do.runtime.call.callable_tool import agent_tool, flow_tool
from llm_do.runtime.call.own_deps import gets_call_context, origin_of, tool_in_call, toolset_in_call
from llm_do.runtime.context.built_agent import BuiltAgent, parts_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.hooks import Hooks
from llm_do.runtime.context.resources import ServerToolset
from llm_do.runtime.tools.handoffs import transfer_tools
from llm_do.runtime.tools.published_toolsets import named_toolset
from llm_do.runtime.tools.stamped_tools import (
    ListedTools,
    SelectedToolset,
    StampedToolset,
    add_prefix,
    make_tool,
    stamped_tool,
)
from llm_do.runtime.tools.toolbox import FixedTool, Toolbox, check_tool_name, function_tool, name_clash
from llm_do.runtime.tools.toolset_factories import per_call_toolset
from llm_do.runtime.tools.traits import BuiltinContext, traits_of
from llm_do.text.words import did_you_mean
from llm_do.tools import ToolOptions, options_of

if TYPE_CHECKING:
    from llm_do.machines.tool_gate import ToolGate
    from llm_do.project.project import Project
    from llm_do.project.registry import Registry
    from llm_do.project.skill import Skill

__all__ = ["AgentBuilder", "builder_of"]

UNLIMITED = 1_000_000
"""Retries of a tool call: failing calls must never exhaust PydanticAI's limit, since the runtime has its own."""

SLICE = 10
"""Functions whose schemas are made before the event loop gets its turn."""

_builders: WeakKeyDictionary[Project, AgentBuilder] = WeakKeyDictionary()
_builders_lock = threading.Lock()


def builder_of(project: Project) -> AgentBuilder:
    """Return the builder that all runtimes of a project share, so that agents are built once per project."""
    with _builders_lock:
        builder = _builders.get(project)
        if builder is None:
            builder = _builders[project] = AgentBuilder(project, project.registry)
        return builder


class AgentBuilder:
    """Builds the agents of one registry, each at its first use.

    Args:
        project: The project.
        registry: The names that agents refer to.
    """

    def __init__(self, project: Project, registry: Registry) -> None:
        # Not the project itself: it is the weak key of the builders and must stay collectable.
        self.registry = registry
        self._settings = project.model_settings
        self._hooks = project.hooks
        self._root = project.root
        self._python_files = project.python_files
        self._skills = project.skills
        self._capability_types = project.capability_types
        self._project = weakref.ref(project)
        self._tools: dict[tuple[int, str | None], tuple[Any, PydanticTool[Any]]] = {}
        self._built: dict[AgentSpec, BuiltAgent] = {}
        self._builtins: dict[str, AbstractToolset[Any]] = {}
        self._lock = threading.RLock()

    def build(self, spec: AgentSpec) -> BuiltAgent:
        """Return the built agent of a declaration, rebuilt if the declaration has changed."""
        known = self._built.get(spec)
        if known is None or not known.is_current():
            with self._lock:
                known = self._built.get(spec)
                if known is None or not known.is_current():
                    known = self._built[spec] = self._build_or_explain(spec)
        return known

    async def prepare(self, spec: AgentSpec) -> None:
        """Make the tools of an agent that has many, a few at a time, so that building it holds nothing up."""
        if len(spec.tools) <= SLICE or spec in self._built:
            return
        for number, item in enumerate(spec.tools, 1):
            try:
                if self._callable_tool(item) is None:
                    self._tool(spec, item)
            except Exception:  # noqa: BLE001 (building the agent raises it, with all that explains it)
                return
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _build_or_explain(self, spec: AgentSpec) -> BuiltAgent:
        fault = agent_fault(spec)
        if fault is not None:
            raise UsageError(f"agent {spec.name!r}: {fault}", hint="correct the AgentSpec")
        if sys.flags.optimize > 1:
            raise UsageError(
                "this Python has no docstrings (-OO, or PYTHONOPTIMIZE=2), from which models learn what tools do",
                hint="Leave the option out, or unset the variable.",
            )
        try:
            return self._build(spec)
        except LlmDoError:
            raise
        except Exception as error:
            raise build_error(spec.name, error, self._root) from error

    def tool(self, item: Any, name: str | None = None) -> PydanticTool[Any]:
        """Return the tool of a function or a tool object, built once."""
        key = (id(item), name)
        with self._lock:
            if key not in self._tools:
                self._tools[key] = item, make_tool(item, name)
            return self._tools[key][1]

    def toolset(self, name: str) -> AbstractToolset[Any] | None:
        """Return the toolset of a name, as an agent without options would have it; None if there is none."""
        found = self.registry.get(name)
        item = found.value if found is not None and found.kind == "toolset" else find_builtin(name)
        if isinstance(item, BuiltinToolset):
            return self._builtin(item, ToolsetRef(name))
        return None if item is None else self._instance(name, item)

    def adopt(self, spec: AgentSpec, agent: Agent[Any, Any], deps: tuple[object] | None = None) -> None:
        """Use an agent that the project's own code has built for a declaration; its tool calls take the same steps.

        `deps` holds what its tools get as `ctx.deps`; None passes the `CallContext`, as to any other agent.
        """
        self._built[spec] = BuiltAgent(spec, agent, Hooks(), (), {}, (AdoptingPipeline(),), deps=deps)

    def _build(self, spec: AgentSpec) -> BuiltAgent:
        give_skills(spec, find_agent_skills(spec, self._skills, self._root))
        admitted = take_capabilities(spec, self._capability_types)
        built_from = parts_of(spec)
        toolbox, names, machines, listed = self._toolbox(spec)
        declared = self._declared(spec, toolbox)
        machines = {**machines, **{gate.key: gate for gate in declared.values()}}
        settings = {**self._settings, **(spec.model_settings or {})}
        if spec.temperature is not None:
            settings["temperature"] = spec.temperature
        if spec.max_tokens is not None:
            settings["max_tokens"] = spec.max_tokens
        sent: Any = {key: value for key, value in settings.items() if key not in CONNECTION_SETTINGS}
        capabilities = [Pipeline(toolbox), *admitted, *map(server_side_tool, spec.server_side_tools)]
        agent: Agent[Any, Any] = Agent(
            None,
            name=spec.name,
            deps_type=CallContext,
            output_type=output_type(spec),
            instructions=[part for part in (instructions_of(spec), skill_instructions(spec, toolbox.fixed)) if part],
            toolsets=[toolbox],
            model_settings=sent or None,
            retries={"tools": UNLIMITED, "output": 1 if spec.retries is None else spec.retries},
            capabilities=capabilities,
        )
        if (check := output_check(spec)) is not None:
            agent.output_validator(check)
        return BuiltAgent(
            spec,
            agent,
            Hooks((*self._hooks, *spec.hooks), self._root),
            names,
            settings,
            machines=tuple(machines.values()),
            declared=declared,
            tools=(*(tool.tool_def for tool in toolbox.fixed.values()), *listed.tools),
            conditional=frozenset(listed.conditional),
            open=tuple(listed.open),
            built_from=built_from,
        )

    def _callable_tool(self, item: Any) -> FixedTool | None:
        """Return the tool of an agent or a flow in an agent's `tools`; None for anything else."""
        found = self.registry.get(item) if isinstance(item, str) else None
        value = found.value if found is not None else item
        if isinstance(value, AgentSpec):
            return _agent_tool(value)
        if isinstance(value, FlowSpec):
            return flow_tool(found or Registered(value.name, "flow", value), self.registry)
        return None

    def _tool(self, spec: AgentSpec, item: Any) -> Any:
        if not isinstance(item, str):
            return self.tool(item)
        found = self.registry.get(item)
        if found is None or found.kind != "tool":
            raise self._unknown(spec, "tool", item)
        return self.tool(found.value, item)

    def _declared(self, spec: AgentSpec, toolbox: Toolbox) -> Mapping[str, ToolGate]:
        """Return the gates that the agent itself declares, by the tool names its model sees."""
        functions: dict[str, ToolOptions] = {}
        for item in spec.tools:
            options = options_of(self.registry[item].value if isinstance(item, str) else item)
            if options.gated and self._callable_tool(item) is None:
                functions[self._tool(spec, item).name] = options
        dynamic = any(DYNAMIC_MARK in repr(tool.tool_def.parameters_json_schema) for tool in toolbox.fixed.values())
        if not (spec.states or functions or dynamic):
            return {}
        # Imported here: most agents have no gates, and machines import jsonschema.
        from llm_do.runtime.agents.declared_gates import declared_gates

        return declared_gates(spec, toolbox.fixed, functions, complete=not toolbox.live)

    def _toolbox(self, spec: AgentSpec) -> tuple[Toolbox, tuple[str, ...], dict[str, ToolGate], ListedTools]:
        """Return all tools of an agent as one toolset, the names of its toolsets, a gate of each of its state machines,
        and what is known of the tools that are listed at every step.
        """
        functions: FunctionToolset[Any] = FunctionToolset(id="tools")
        fixed: dict[str, FixedTool] = {}
        live: list[AbstractToolset[Any]] = []
        instructing: list[AbstractToolset[Any]] = []
        names: list[str] = []
        machines: dict[str, ToolGate] = {}
        listed = ListedTools()

        own = takes_deps(spec)

        def add(tool: FixedTool, *, ours: bool = False) -> None:
            tool, name = tool_in_call(tool, always=ours) if own else tool, tool.tool_def.name
            if name in fixed:
                raise name_clash(spec.name, name, fixed[name].toolset, tool.toolset)
            check_tool_name(spec.name, name, tool.toolset)
            fixed[name] = tool

        for item in spec.tools:
            called = self._callable_tool(item)
            add(called if called is not None else function_tool(self._tool(spec, item), functions))
        for item in spec.toolsets:
            ref, toolset = self._toolset(spec, item)
            made_of = origin_of(item, toolset, self.registry, spec.name)
            names.append(ref.name)
            if isinstance(toolset, FixedTool):
                if is_included(ref.name, ref.include, ref.exclude):
                    add(_renamed(toolset, ref.prefix))
                continue
            tools = self._gated(spec, ref, toolset, machines) or fixed_tools(toolset)
            if tools is None:
                if isinstance(toolset, ServerToolset):
                    toolset = toolset.with_prefix(ref.prefix)
                    ref = replace(ref, prefix=toolset.prefix)
                    listed.add_remembered(toolset.listed_definitions(), ref)
                listed.add(toolset, ref)
                toolset = toolset_in_call(toolset, made_of) if own else toolset
                live.append(_selected(StampedToolset(toolset, ref.name), ref))
                continue
            instructing.append(toolset)
            for tool in tools:
                if is_included(tool.name, ref.include, ref.exclude):
                    fixed_tool = _renamed(function_tool(stamped_tool(ref.name, toolset, tool), toolset), ref.prefix)
                    add(fixed_tool, ours=gets_call_context(made_of))
        for transfer in transfer_tools(spec, self.registry):
            add(transfer, ours=True)
        return Toolbox(spec.name, fixed, live, instructing), tuple(names), machines, listed

    def _gated(
        self, spec: AgentSpec, ref: ToolsetRef, toolset: AbstractToolset[Any], machines: dict[str, ToolGate]
    ) -> list[PydanticTool[Any]]:
        """Return the tools of a toolkit; empty for other toolsets."""
        if not isinstance(toolset, GatedToolset):
            return []
        key = ref.prefix or ref.name
        hides = None if spec.gate is None else spec.gate == "hide"
        tools = list(toolset.gated.tools(ref.name, ref.prefix, hides=hides))
        if key in machines or key == spec.name:
            raise RunError(
                f"agent {spec.name!r} has two state machines called {key!r}",
                hint="Give one of the toolkits another `prefix:`.",
                agent_path=spec.name,
            )
        for tool in tools:
            traits = traits_of(tool.metadata)
            if traits is not None and traits.gate is not None:
                machines[key] = traits.gate
        return tools

    def _toolset(self, spec: AgentSpec, item: Any) -> tuple[ToolsetRef, AbstractToolset[Any] | FixedTool]:
        """Resolve one line of an agent's `toolsets` to its reference (name, prefix, globs) and its toolset or tool."""
        if isinstance(item, str):
            item = ToolsetRef(item)
        if isinstance(item, ToolsetRef):
            return item, self._named(spec, item) if item.value is None else self._instance(item.name, item.value)
        if isinstance(item, AgentSpec):
            return ToolsetRef(item.name), _agent_tool(item)
        if isinstance(item, FlowSpec):
            return ToolsetRef(item.name), flow_tool(Registered(item.name, "flow", item), self.registry)
        name = (
            getattr(item, "name", None) or getattr(item, "id", None) or getattr(item, "__name__", type(item).__name__)
        )
        return ToolsetRef(str(name)), self._instance(str(name), item)

    def _named(self, spec: AgentSpec, ref: ToolsetRef) -> AbstractToolset[Any] | FixedTool:
        found = self.registry.get(ref.name)
        if found is not None and found.kind == "agent":
            return _agent_tool(found.value)
        if found is not None and found.kind == "flow":
            return flow_tool(found, self.registry)
        if found is not None and found.kind == "tool":
            return FunctionToolset([self.tool(found.value, ref.name)])
        item = named_toolset(ref.name, self.registry, spec.name)
        if item is None:
            raise self._unknown(spec, "toolset", ref.name)
        if not isinstance(item, BuiltinToolset):
            return self._instance(ref.name, item)
        return self._builtin(item, ref, skills_of(spec) if item.kind == SKILLS else ())

    def _builtin(self, item: BuiltinToolset, ref: ToolsetRef, skills: Sequence[Skill] = ()) -> AbstractToolset[Any]:
        options = {**item.config, **ref.options}
        folders = [str(skill.path) for skill in skills]
        key = f"{ref.name} {sorted((name, repr(value)) for name, value in options.items())} {folders}"
        if key not in self._builtins:
            project = self._project()
            assert project is not None, "whoever builds its agents holds it"
            from llm_do.formats.toolset_config import parse_options
            from llm_do.runtime.tools.watched_projects import watch_of

            watch, cwd = watch_of(project), Path.cwd()
            ctx = BuiltinContext(ref.name, self._root, cwd, self._python_files, watch, project.sandbox, skills)
            factory = item.load()
            made = factory(ctx, parse_options(ref.name, options)) if item.config else factory(ctx)
            if isinstance(made, ServerToolset):
                made.listed = item.listed
            self._builtins[key] = self._instance(ref.name, made)
        return self._builtins[key]

    def _instance(self, name: str, item: Any) -> AbstractToolset[Any]:
        """Return a toolset of any origin: a factory is called once per agent call, an instance is shared."""
        if isinstance(item, AbstractToolset):
            return cast("AbstractToolset[Any]", item)
        return per_call_toolset(name, item, self._root)

    def _unknown(self, spec: AgentSpec, what: str, name: str) -> RunError:
        return RunError(
            f"agent {spec.name!r} lists the {what} {name!r}, which doesn't exist",
            hint=did_you_mean(name, self.registry) or "Register it before the run.",
            agent_path=spec.name,
            file=spec.place.file if spec.place else None,
            line=spec.place.line if spec.place else None,
        )


def _agent_tool(spec: AgentSpec) -> FixedTool:
    """Return an agent as a tool in a toolset of its own."""
    return agent_tool(spec, FunctionToolset(id=spec.name))


def _renamed(tool: FixedTool, prefix: str | None) -> FixedTool:
    return replace(tool, tool_def=add_prefix(tool.tool_def, prefix)) if prefix else tool


def _selected(toolset: AbstractToolset[Any], ref: ToolsetRef) -> AbstractToolset[Any]:
    if ref.include or ref.exclude:
        toolset = SelectedToolset(toolset, ref.include, ref.exclude)
    return toolset.prefixed(ref.prefix) if ref.prefix else toolset
