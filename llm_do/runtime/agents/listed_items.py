"""Resolves what agents list to tools and toolsets, each made once.

`llm_do.runtime.agents.agent_builder` makes agents of them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.errors import RunError
from llm_do.project.agent_spec import SKILLS, AgentSpec, ToolsetRef, skills_of
from llm_do.project.faults import building
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin
from llm_do.runtime.call.callable_tool import agent_tool, flow_tool
from llm_do.runtime.context.resources import ServerToolset
from llm_do.runtime.tools.published_toolsets import named_toolset
from llm_do.runtime.tools.stamped_tools import make_tool
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.toolset_factories import per_call_toolset
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.project.registry import Registry
    from llm_do.project.skill import Skill

__all__ = ["ListedItems", "item_name"]


class ListedItems:
    """The tools and toolsets of one registry, and those that agents list as objects.

    Args:
        project: The project.
        registry: The names that agents refer to.
    """

    def __init__(self, project: Project, registry: Registry) -> None:
        self.registry = registry
        # Not the project itself: it is the weak key of the builders and must stay collectable.
        self._project = weakref.ref(project)
        self._root = project.root
        self._python_files = project.python_files
        self._tools: dict[tuple[int, str | None], tuple[Any, PydanticTool[Any]]] = {}
        self._builtins: dict[str, AbstractToolset[Any]] = {}
        self._lock = threading.RLock()

    def tool(self, item: Any, name: str | None = None) -> PydanticTool[Any]:
        """Return the tool of a function or a tool object, built once.

        Raises:
            EntryError: It can't be built.
        """
        with building(None, self._root, f"the tool {name or item_name(item)!r}", function_of(item)):
            return self._made(item, name)

    def _made(self, item: Any, name: str | None = None) -> PydanticTool[Any]:
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

    def callable_tool(self, item: Any) -> FixedTool | None:
        """Return the tool of an agent or a flow in an agent's `tools`; None for anything else."""
        found = self.registry.get(item) if isinstance(item, str) else None
        value = found.value if found is not None else item
        if isinstance(value, AgentSpec):
            return _agent_tool(value)
        if isinstance(value, FlowSpec):
            return flow_tool(found or Registered(value.name, "flow", value), self.registry)
        return None

    def tool_of(self, spec: AgentSpec, item: Any) -> PydanticTool[Any]:
        """Return the tool of one line of an agent's `tools` that is no agent and no flow.

        Raises:
            LlmDoError: There is none of that name, or it can't be built.
        """
        name = item if isinstance(item, str) else None
        if name is not None:
            found = self.registry.get(name)
            if found is None or found.kind != "tool":
                raise self._unknown(spec, "tool", name)
            item = found.value
        with building(spec.name, self._root, f"the tool {name or item_name(item)!r}", function_of(item)):
            return self._made(item, name)

    def toolset_of(self, spec: AgentSpec, item: Any) -> tuple[ToolsetRef, AbstractToolset[Any] | FixedTool]:
        """Resolve one line of an agent's `toolsets` to its reference (name, prefix, globs) and its toolset or tool."""
        if isinstance(item, str):
            item = ToolsetRef(item)
        if isinstance(item, ToolsetRef):
            return item, self._named(spec, item) if item.value is None else self._instance(item.name, item.value)
        if isinstance(item, AgentSpec):
            return ToolsetRef(item.name), _agent_tool(item)
        if isinstance(item, FlowSpec):
            return ToolsetRef(item.name), flow_tool(Registered(item.name, "flow", item), self.registry)
        name = item_name(item)
        return ToolsetRef(name), self._instance(name, item)

    def _named(self, spec: AgentSpec, ref: ToolsetRef) -> AbstractToolset[Any] | FixedTool:
        found = self.registry.get(ref.name)
        if found is not None and found.kind == "agent":
            return _agent_tool(found.value)
        if found is not None and found.kind == "flow":
            return flow_tool(found, self.registry)
        if found is not None and found.kind == "tool":
            return FunctionToolset([self.tool_of(spec, ref.name)])
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
            hint=did_you_mean(name, self.registry)
            or "List the item itself, or register it before the run: `Runtime.register_agents`.",
            agent_path=spec.name,
            file=spec.place.file if spec.place else None,
            line=spec.place.line if spec.place else None,
        )


def item_name(item: Any) -> str:
    """The name of something that an agent lists: its own, or that of its function or class."""
    if isinstance(item, str):
        return item
    return str(
        getattr(item, "name", None) or getattr(item, "id", None) or getattr(item, "__name__", type(item).__name__)
    )


def function_of(item: Any) -> object:
    """The function behind a tool object, or the function itself."""
    return getattr(item, "function", item)


def _agent_tool(spec: AgentSpec) -> FixedTool:
    """Return an agent as a tool in a toolset of its own."""
    return agent_tool(spec, FunctionToolset(id=spec.name))
