"""`Toolkit`: a toolset whose tools share a context and are available as a small state machine says.

A toolkit is a template. In a run its state is a value in the call's frame (`llm_do.runtime.gating`), which begins as
the template's and which no other run sees. Outside of such runs `llm_do.toolkits.alone` does what the runtime does.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, Unpack, cast, overload

from pydantic_ai import RunContext
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import ToolkitError
from llm_do.project.gates import Gate
from llm_do.project.machines import gate_of
from llm_do.project.registry import NAME_PATTERN
from llm_do.runtime.context import CallContext
from llm_do.runtime.gates import GatedToolset
from llm_do.runtime.toolbox import FixedTool, function_tool
from llm_do.runtime.tools import stamped_tool
from llm_do.runtime.traits import TRAITS_KEY, ToolTraits
from llm_do.toolkits.alone import Alone
from llm_do.toolkits.context import Context
from llm_do.toolkits.frozen import Value
from llm_do.toolkits.functions import ToolkitTool, toolkit_tool
from llm_do.toolkits.gated import MachineGate, availability, resolved_schema
from llm_do.toolkits.schemas import DynamicSchema
from llm_do.toolkits.sources import BUILTIN_FILTERS, Filter
from llm_do.toolkits.state import ToolkitState, Work, state_in_run
from llm_do.tools import Tool, ToolArguments, ToolOptions, options_of

__all__ = ["Toolkit"]

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(NAME_PATTERN)


class Toolkit(GatedToolset):
    """A toolset with state. Name it in a module, list it in agents: every run has a context and states of its own.

    Args:
        name: Its name; None takes the variable's under which a module exports it.
        context: What the context holds when a run begins.
        validation_enabled: Whether writes are checked by `context.schema`.
        gate: `hide` doesn't show tools that aren't available; `refuse` shows them and refuses their calls, which
            leaves what the model is sent unchanged, so that a provider's cache of it stays valid.

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
            raise ToolkitError(f"a toolkit's gate is 'hide' or 'refuse', not {gate!r}")
        self.name = name
        self.gate: Literal["hide", "refuse"] = gate
        if isinstance(context, Context):
            self._context = context.copy()
        else:
            self._context = Context(validation_enabled, context)
        self._unlocked: frozenset[str] = frozenset()
        self._items: dict[str, tuple[Callable[..., Any] | Tool, ToolOptions]] = {}
        self._made: dict[str, tuple[ToolkitTool, DynamicSchema]] = {}
        self._filters: dict[str, Filter] = dict(BUILTIN_FILTERS)
        self._snapshot: ToolkitState | None = None
        self._alone = Alone(self)

    # -- declaring tools

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolArguments]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Unpack[ToolArguments]) -> F | Callable[[F], F]:
        """Add a function: `@toolkit.tool`, `@toolkit.tool()` or `@toolkit.tool(required_states=[...], ...)`.

        Args:
            function: The function, when used without parentheses. A parameter named `ctx` is given the context.
            options: What `llm_do.tool` takes: its name, the states it needs and unlocks, and so on.

        Returns:
            The function, or a decorator; it stays what it is.
        """
        said = ToolOptions(**options)

        def add(marked: F) -> F:
            self._add(said.name or marked.__name__, marked, said)
            return marked

        return add if function is None else add(function)

    def add_tool(self, name: str, function: Callable[..., Any] | Tool, description: str = "") -> None:
        """Add a function that was marked with `@tool(...)`, or any other, under a name.

        Args:
            name: The tool's name.
            function: The function, or a tool object.
            description: What the model reads; empty takes what the function says itself.

        Raises:
            ToolkitError: The name is taken, or is none.
        """
        options = options_of(function)
        self._add(name, function, replace(options, description=description or options.description))

    def register_filter(self, name: str, function: Filter) -> None:
        """Add a filter that `DynamicFiltered` may name.

        Args:
            name: Its name; one of the built-in ones is replaced.
            function: Takes a list of values and gives those to choose from.
        """
        self._filters[name] = function
        self._snapshot = None

    def _add(self, name: str, item: Callable[..., Any] | Tool, options: ToolOptions) -> None:
        if not _NAME.match(name) or name.endswith("\n"):
            hint = "Use a letter or _, then up to 63 letters, digits, _ and -."
            raise ToolkitError(f"{name!r} can't be the name of a tool", hint=hint)
        if name in self._items:
            raise ToolkitError(f"the toolkit has a tool {name!r} already")
        self._items[name] = (item, options)

    # -- its state

    @property
    def context(self) -> Context:
        """In a run that has this toolkit, the run's context; elsewhere the template's, which runs begin with."""
        found = state_in_run(self)
        return self._context if found is None else found.context

    @property
    def unlocked_states(self) -> frozenset[str]:
        """In a run that has this toolkit, the run's states; elsewhere those that runs begin with."""
        found = state_in_run(self)
        return self._unlocked if found is None else found.unlocked_states

    @unlocked_states.setter
    def unlocked_states(self, states: Iterable[str]) -> None:
        if state_in_run(self) is not None:
            raise ToolkitError("states of a run are changed by its tools only", hint="Use enables_states.")
        self._unlocked = frozenset(states)

    @property
    def filters(self) -> Mapping[str, Filter]:
        """The filters by name, the built-in ones included."""
        return self._filters

    @property
    def hides(self) -> bool:
        """Whether tools that aren't available are hidden."""
        return self.gate == "hide"

    @property
    def functions(self) -> dict[str, Callable[..., Any] | Tool]:
        """Every tool with the function or object that it was made of."""
        return {name: item for name, (item, _) in self._items.items()}

    @property
    def gates(self) -> dict[str, Gate]:
        """Every tool with its gate."""
        return {name: gate_of(options) for name, (_, options) in self._items.items()}

    def snapshot(self) -> ToolkitState:
        """The state every run begins with: the same value until the template is changed."""
        known = self._snapshot
        if known is None or known.unlocked_states != self._unlocked or not known.context.same(self._context):
            known = self._snapshot = ToolkitState(self._context.sealed(), self._unlocked)
        return known

    def become(self, state: ToolkitState) -> None:
        """Take over the state that a call outside of any run of ours has come to."""
        self._context, self._unlocked = self._context.with_data(state.context.data), state.unlocked_states

    def enablers(self, state: str) -> list[str]:
        """The tools that unlock a state."""
        return [name for name, (_, options) in self._items.items() if state in options.enables_states]

    def copy(self, name: str | None = None) -> Toolkit:
        """A toolkit of its own with the same tools and the state as it is here, in a time that doesn't depend on size.

        Args:
            name: Its name; None keeps this one's.
        """
        made = copy.copy(self)
        made.name = name or self.name
        made._context, made._unlocked = self.context.copy(), self.unlocked_states
        made._items, made._made, made._filters = dict(self._items), dict(self._made), dict(self._filters)
        made._snapshot, made._alone = None, Alone(made)
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
        _, options = self._items[name]
        return availability(self, name, gate_of(options), self._dynamic(name), self._now())

    def generate_schemas(self) -> list[dict[str, Any]]:
        """The tools that are available now, in OpenAI's format, dynamic types filled in.

        Raises:
            ToolkitError: A tool names an unknown filter, or no schema can be made of it.
        """
        self.check()
        state = self._now()
        shown: list[dict[str, Any]] = []
        for name in self._items:
            if self.is_tool_available(name):
                tool, dynamic = self._tool(name)
                schema = resolved_schema(self, name, dynamic, state).schema if dynamic.places else dynamic.static
                function = {"name": name, "description": tool.tool.description or "", "parameters": schema}
                shown.append({"type": "function", "function": function})
        return shown

    def check(self) -> None:
        """See that every tool's schema can be made and that its filters exist.

        Raises:
            ToolkitError: It can't, or one doesn't.
        """
        for name in self._items:
            for wanted in sorted(self._tool(name)[1].filter_names - self._filters.keys()):
                raise ToolkitError(
                    f"the tool {name!r} names the filter {wanted!r}, which doesn't exist",
                    hint=f"There are {', '.join(self._filters)}; add others with register_filter().",
                )

    def _now(self) -> ToolkitState:
        found = state_in_run(self)
        if isinstance(found, Work):
            return ToolkitState(found.context.sealed(), found.unlocked_states)
        return found or self.snapshot()

    def _tool(self, name: str) -> tuple[ToolkitTool, DynamicSchema]:
        made = self._made.get(name)
        if made is None:
            item, options = self._items[name]
            tool = toolkit_tool(name, item, options)
            made = self._made[name] = tool, DynamicSchema(tool.tool.function_schema.json_schema)
        return made

    def _dynamic(self, name: str) -> DynamicSchema | None:
        dynamic = self._tool(name)[1]
        return dynamic if dynamic.places else None

    # -- as a toolset

    @property
    def id(self) -> str | None:
        """Its name."""
        return self.name

    def gated_tools(
        self, name: str, key: str, prefix: str | None, *, hides: bool | None = None
    ) -> list[PydanticTool[Any]]:
        """Its tools for an agent, each with its gate.

        Args:
            name: The toolkit's registered name.
            key: What it is called in the agent's results.
            prefix: What stands before its tools' names.
            hides: Whether tools that aren't available are hidden; None is as the toolkit says.
        """
        self.check()
        hidden = self.hides if hides is None else hides
        return [self._gated(each, name, key, f"{prefix}_" if prefix else "", hidden) for each in self._items]

    def _gated(self, name: str, toolset: str, key: str, prefix: str, hides: bool) -> PydanticTool[Any]:
        tool, _ = self._tool(name)
        dynamic = self._dynamic(name)
        made: PydanticTool[Any] = copy.copy(tool.tool)
        made.metadata = {"approval": tool.options.approval, "primary": tool.options.primary}
        made = stamped_tool(toolset, self, made)
        gate = MachineGate(
            key,
            self,
            name,
            gate_of(tool.options),
            hides=hides,
            prefix=prefix,
            dynamic=dynamic,
            validator=cast("Any", made.function_schema.validator),
            pairs=True,
        )
        traits: ToolTraits = cast("dict[str, Any]", made.metadata)[TRAITS_KEY]
        made.metadata = {TRAITS_KEY: replace(traits, kind="toolkit", timeout=tool.options.timeout, gate=gate)}
        if dynamic is not None:
            made.function_schema = replace(made.function_schema, json_schema=dynamic.static)
        return made

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        """Itself in a run of ours, which keeps its state; else a copy."""
        return self if isinstance(ctx.deps, CallContext) else self.copy()

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """All its tools in a run of ours, which hides them itself; else those that are available."""
        key = self.name or "toolkit"
        tools = {tool.name: function_tool(tool, self) for tool in self.gated_tools(key, key, None)}
        return {**tools} if isinstance(ctx.deps, CallContext) else self._alone.shown(tools)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a tool that the runtime has gated; outside of a run of ours, gate it here."""
        fixed = cast("FixedTool", tool)
        if isinstance(ctx.deps, CallContext):
            return await fixed.call(tool_args, ctx)
        return await self._alone.call(fixed, tool_args, ctx)
