"""`Toolkit`: a toolset whose tools share a context, with a state machine that says which of them are available.

A toolkit is a template: its state in a run is kept by `llm_do.runtime.toolcall.gatekeeper`, and no other run sees it.
In a PydanticAI agent outside a runtime, `llm_do.toolkits.standalone` does what the runtime does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, Unpack, cast, overload

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import ToolkitError
from llm_do.machines.context import Context
from llm_do.machines.frozen_values import Value
from llm_do.machines.machine import Machine
from llm_do.machines.value_sources import Filter
from llm_do.project.gates import GatedToolset
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.toolbox import FixedTool, function_tool
from llm_do.toolkits.run_states import state_in_run
from llm_do.toolkits.standalone import StandaloneGates
from llm_do.toolkits.toolkit_tools import ToolkitTools
from llm_do.tools import Tool, ToolArguments, check_tool_options, options_of

__all__ = ["Toolkit"]

F = TypeVar("F", bound=Callable[..., Any])


class Toolkit(AbstractToolset[Any], GatedToolset):
    """A toolset with state. Define it in a module and list it in agents: every run has its own context and states.

    Args:
        name: Its name; by default, that of the variable under which a module exports it.
        context: What the context holds when a run begins.
        validation_enabled: Whether writes are checked by `context.schema`; a `Context` that validates always is.
        gate: `hide` hides tools that aren't available from the model; `refuse` shows them and refuses their calls, so
            that the tools a model is sent never change and its provider's cache stays valid.

    Example:
        >>> desk = Toolkit("desk", context={"projects": ["alpha"]})
        >>> @desk.tool(enables_states=["in"])
        ... def login(user: str):
        ...     return f"hello {user}", {"user": user}
        >>> @desk.tool(required_states=["in"])
        ... def close(ctx):
        ...     return f"closed by {ctx.state.get('user')}"
        >>> desk.is_tool_available("login"), desk.get_availability_reason("close")
        (True, "it needs the state 'in', which login unlocks")
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        context: Mapping[str, Value] | Context | None = None,
        validation_enabled: bool = False,
        gate: Literal["hide", "refuse"] = "hide",
    ) -> None:
        if gate not in ("hide", "refuse"):
            raise ToolkitError(f"a toolkit's gate is 'hide' or 'refuse', not {gate!r}", hint="leave it out for `hide`")
        self.name = name
        self.gate: Literal["hide", "refuse"] = gate
        first = context.copy() if isinstance(context, Context) else Context(initial_data=context)
        if validation_enabled:
            first = first.validating()
        self._has(Machine(context=first))

    def _has(self, machine: Machine, template: Toolkit | None = None) -> None:
        self.machine = machine
        self.gated = self._tools = ToolkitTools(self, machine, template and template._tools)
        self._standalone = StandaloneGates(machine)

    # -- declaring tools

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolArguments]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Unpack[ToolArguments]) -> F | Callable[[F], F]:
        """Add a function: `@toolkit.tool`, `@toolkit.tool()` or `@toolkit.tool(required_states=[...], ...)`.

        Args:
            function: The function, when used without parentheses. A parameter named `ctx` is passed the context.
            options: What `llm_do.tool` takes: its name, the states it needs and unlocks, and so on. The rest is taken
                from the function's own `@tool`, if it has one.

        Returns:
            The function, unchanged, or a decorator.
        """

        def add(marked: F) -> F:
            check_tool_options(options)
            merged = replace(options_of(marked), **options)
            self._tools.add(merged.name or getattr(marked, "__name__", ""), marked, merged)
            return marked

        return add if function is None else add(function)

    def add_tool(self, name: str, function: Callable[..., Any] | Tool, description: str = "") -> None:
        """Add a function that was marked with `@tool(...)`, or any other, under a name.

        Args:
            name: The tool's name.
            function: The function, or a tool object.
            description: What the model reads; by default, the function's own description.

        Raises:
            ToolkitError: The name is taken or not valid.
        """
        options = options_of(function)
        self._tools.add(name, function, replace(options, description=description or options.description))

    def register_filter(self, name: str, function: Filter) -> None:
        """Add a filter that `DynamicFiltered` may name.

        Args:
            name: Its name; one of the built-in ones is replaced.
            function: Takes a list of values and returns those to choose from.
        """
        self.machine.add_filter(name, function)

    # -- its state

    @property
    def context(self) -> Context:
        """In a run that has this toolkit, the run's context; elsewhere the one that runs begin with."""
        found = state_in_run(self.machine)
        return self.machine.context if found is None else found.context

    @property
    def unlocked_states(self) -> frozenset[str]:
        """In a run that has this toolkit, the run's states; elsewhere those that runs begin with."""
        found = state_in_run(self.machine)
        return self.machine.unlocked if found is None else found.unlocked_states

    @unlocked_states.setter
    def unlocked_states(self, states: Iterable[str]) -> None:
        if state_in_run(self.machine) is not None:
            raise ToolkitError("only tools change the states of a run", hint="Use enables_states.")
        self.machine.unlocked = frozenset(states)

    def copy(self, name: str | None = None) -> Toolkit:
        """An independent toolkit with the same tools and the current state, in a time that doesn't depend on its size.

        Args:
            name: Its name; by default, this one's.
        """
        made = copy.copy(self)
        made.name = name or self.name
        machine = Machine(self.machine.gates, self.context.copy(), self.unlocked_states, self.machine.filters)
        made._has(machine, self)
        return made

    # -- what is available

    def is_tool_available(self, name: str) -> bool:
        """Whether a tool can be called now.

        Raises:
            KeyError: The toolkit has no such tool.
        """
        return self.get_availability_reason(name) is None

    def get_availability_reason(self, name: str) -> str | None:
        """Why a tool can't be called now, None when it can.

        Raises:
            KeyError: The toolkit has no such tool.
        """
        return self._tools.reason(name)

    def generate_schemas(self) -> list[dict[str, Any]]:
        """The tools that are available now, in OpenAI's format, dynamic types filled in.

        Raises:
            ToolkitError: A tool names an unknown filter, or no schema can be made for it.
        """
        self._tools.check()
        return [self._tools.openai_schema(name) for name in self._tools.functions if self.is_tool_available(name)]

    # -- as a toolset

    @property
    def id(self) -> str | None:
        """Its name."""
        return self.name

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Itself in a runtime, which keeps its state; else a copy."""
        return self if isinstance(ctx.deps, CallContext) else self.copy()

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """All its tools in a runtime, which hides them itself; else those that are available."""
        tools = {tool.name: function_tool(tool, self) for tool in self._tools.tools()}
        return {**tools} if isinstance(ctx.deps, CallContext) else self._standalone.shown(tools)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a tool that the runtime has gated; outside a runtime, gate it here."""
        fixed = cast("FixedTool", tool)
        if isinstance(ctx.deps, CallContext):
            return await fixed.call(tool_args, ctx)
        return await self._standalone.call(fixed, tool_args, ctx)
