"""Builds PydanticAI agents from declarations and the registry, once per project.

A built agent holds no state of a run. The model is chosen at each call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pydantic_ai import Agent, Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset

from llm_do.errors import UsageError
from llm_do.models.pool import CONNECTION_SETTINGS
from llm_do.project.agent_spec import AgentSpec, give_skills
from llm_do.project.faults import building
from llm_do.project.gates import DYNAMIC_MARK
from llm_do.runtime.agents.admitted_capability import take_capabilities
from llm_do.runtime.agents.agent_parts import (
    instructions_of,
    output_check,
    output_type,
    server_side_tool,
    skill_instructions,
)
from llm_do.runtime.agents.agent_skills import find_agent_skills
from llm_do.runtime.agents.collected_tools import CollectedTools
from llm_do.runtime.agents.listed_items import ListedItems
from llm_do.runtime.agents.pipeline import AdoptingPipeline, Pipeline
from llm_do.runtime.agents.spec_faults import check_spec
from llm_do.runtime.context.built_agent import BuiltAgent, parts_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.hooks import Hooks
from llm_do.runtime.tools.toolbox import Toolbox
from llm_do.tools import ToolOptions, options_of

if TYPE_CHECKING:
    from llm_do.machines.tool_gate import ToolGate
    from llm_do.project.project import Project
    from llm_do.project.registry import Registry

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
        self.registry = registry
        self._settings = project.model_settings
        self._hooks = project.hooks
        self._root = project.root
        self._items = ListedItems(project, registry)
        self._skills = project.skills
        self._capability_types = project.capability_types
        self._built: dict[AgentSpec, BuiltAgent] = {}
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
                if self._items.callable_tool(item) is None:
                    self._items.tool_of(spec, item)
            except Exception:  # noqa: BLE001 (building the agent raises it, with all that explains it)
                return
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _build_or_explain(self, spec: AgentSpec) -> BuiltAgent:
        check_spec(spec)
        if sys.flags.optimize > 1:
            raise UsageError(
                "this Python has no docstrings (-OO, or PYTHONOPTIMIZE=2), from which models learn what tools do",
                hint="Leave the option out, or unset the variable.",
            )
        with building(spec.name, self._root):
            return self._build(spec)

    def tool(self, item: Any, name: str | None = None) -> PydanticTool[Any]:
        """Return the tool of a function or a tool object, built once."""
        return self._items.tool(item, name)

    def toolset(self, name: str) -> AbstractToolset[Any] | None:
        """Return the toolset of a name, as an agent without options would have it; None if there is none."""
        return self._items.toolset(name)

    def adopt(self, spec: AgentSpec, agent: Agent[Any, Any], deps: tuple[object] | None = None) -> None:
        """Use an agent that the project's own code has built for a declaration; its tool calls take the same steps.

        `deps` holds what its tools get as `ctx.deps`; None passes the `CallContext`, as to any other agent.
        """
        self._built[spec] = BuiltAgent(spec, agent, Hooks(), (), {}, (AdoptingPipeline(),), deps=deps)

    def _build(self, spec: AgentSpec) -> BuiltAgent:
        give_skills(spec, find_agent_skills(spec, self._skills, self._root))
        admitted = take_capabilities(spec, self._capability_types)
        built_from = parts_of(spec)
        collected = CollectedTools(spec, self._items, self._root)
        toolbox, listed = collected.toolbox(), collected.listed
        declared = self._declared(spec, toolbox)
        machines = {**collected.machines, **{gate.key: gate for gate in declared.values()}}
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
            tuple(collected.names),
            settings,
            machines=tuple(machines.values()),
            declared=declared,
            tools=(*(tool.tool_def for tool in toolbox.fixed.values()), *listed.tools),
            conditional=frozenset(listed.conditional),
            open=tuple(listed.open),
            built_from=built_from,
        )

    def _declared(self, spec: AgentSpec, toolbox: Toolbox) -> Mapping[str, ToolGate]:
        """Return the gates that the agent itself declares, by the tool names its model sees."""
        functions: dict[str, ToolOptions] = {}
        for item in spec.tools:
            options = options_of(self.registry[item].value if isinstance(item, str) else item)
            if options.gated and self._items.callable_tool(item) is None:
                functions[self._items.tool_of(spec, item).name] = options
        dynamic = any(DYNAMIC_MARK in repr(tool.tool_def.parameters_json_schema) for tool in toolbox.fixed.values())
        if not (spec.states or functions or dynamic):
            return {}
        # Imported here: most agents have no gates, and machines import jsonschema.
        from llm_do.runtime.agents.declared_gates import declared_gates

        return declared_gates(spec, toolbox.fixed, functions, complete=not toolbox.live)
