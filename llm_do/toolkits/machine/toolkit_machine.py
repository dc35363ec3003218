"""`ToolkitMachine`: a toolkit's tools, their gates and the state that runs begin with. No part of the public API."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from llm_do.errors import ToolkitError
from llm_do.linker.checks.machine_checks import gate_of
from llm_do.machines.dynamic_schema import DynamicSchema
from llm_do.machines.value_sources import BUILTIN_FILTERS, Filter
from llm_do.project.registry import NAME_PATTERN
from llm_do.runtime.tools.gated_tools import GatedTools
from llm_do.runtime.tools.stamped_tools import stamped_tool
from llm_do.runtime.tools.traits import TRAITS_KEY, ToolTraits
from llm_do.toolkits.machine.machine_gate import MachineGate, availability, resolved_schema
from llm_do.toolkits.machine.toolkit_functions import ToolkitTool, toolkit_tool
from llm_do.toolkits.machine.toolkit_state import OpenTransaction, ToolkitState, state_in_run

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool

    from llm_do.machines.context import Context
    from llm_do.project.gates import Gate
    from llm_do.toolkits.toolkit import Toolkit
    from llm_do.tools import Tool, ToolOptions

__all__ = ["ToolkitMachine"]

_NAME = re.compile(NAME_PATTERN)


class ToolkitMachine(GatedTools):
    """What a toolkit is to runs and to the linker.

    Args:
        owner: The toolkit.
        context: The context that runs begin with.
    """

    def __init__(self, owner: Toolkit, context: Context) -> None:
        self.context = context
        self.unlocked: frozenset[str] = frozenset()
        self._owner = owner
        self._items: dict[str, tuple[Callable[..., Any] | Tool, ToolOptions]] = {}
        self._made: dict[str, tuple[ToolkitTool, DynamicSchema]] = {}
        self._filters: dict[str, Filter] = dict(BUILTIN_FILTERS)
        self._snapshot: ToolkitState | None = None

    def add(self, name: str, item: Callable[..., Any] | Tool, options: ToolOptions) -> None:
        """Add a tool."""
        if not _NAME.match(name) or name.endswith("\n"):
            hint = "Use a letter or _, then up to 63 letters, digits, _ and -."
            raise ToolkitError(f"{name!r} can't be the name of a tool", hint=hint)
        if name in self._items:
            raise ToolkitError(f"the toolkit has a tool {name!r} already")
        self._items[name] = (item, options)

    def add_filter(self, name: str, function: Filter) -> None:
        """Add a filter, or put it in the place of another."""
        self._filters[name] = function
        self._snapshot = None

    def copy(self, owner: Toolkit, context: Context, unlocked: frozenset[str]) -> ToolkitMachine:
        """A machine of its own with the same tools."""
        made = copy.copy(self)
        made.context, made.unlocked, made._owner = context, unlocked, owner
        made._items, made._made, made._filters = dict(self._items), dict(self._made), dict(self._filters)
        made._snapshot = None
        return made

    @property
    def hides(self) -> bool:
        """Whether tools that aren't available are hidden."""
        return self._owner.gate == "hide"

    @property
    def filters(self) -> Mapping[str, Filter]:
        """The filters by name, the built-in ones included."""
        return self._filters

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
        if known is None or known.unlocked_states != self.unlocked or not known.context.same(self.context):
            known = self._snapshot = ToolkitState(self.context.sealed(), self.unlocked)
        return known

    def become(self, state: ToolkitState) -> None:
        """Take over the state that a call outside of any run of ours has come to."""
        self.context, self.unlocked = self.context.with_data(state.context.data), state.unlocked_states

    def enablers(self, state: str) -> list[str]:
        """The tools that unlock a state."""
        return [name for name, (_, options) in self._items.items() if state in options.enables_states]

    def closed(self, name: str) -> str | None:
        """Why a tool can't be called now, None when it can."""
        _, options = self._items[name]
        return availability(self, name, gate_of(options), self._dynamic(name), self._now())

    def shown(self, name: str) -> dict[str, Any]:
        """A tool in OpenAI's format as it is now."""
        tool, dynamic = self._tool(name)
        schema = resolved_schema(self, name, dynamic, self._now()).schema if dynamic.places else dynamic.static
        function = {"name": name, "description": tool.tool.description or "", "parameters": schema}
        return {"type": "function", "function": function}

    def check(self) -> None:
        """See that every tool's schema can be made and that its filters exist."""
        for name in self._items:
            for wanted in sorted(self._tool(name)[1].filter_names - self._filters.keys()):
                raise ToolkitError(
                    f"the tool {name!r} names the filter {wanted!r}, which doesn't exist",
                    hint=f"There are {', '.join(self._filters)}; add others with register_filter().",
                )

    def tools(self, name: str, key: str, prefix: str | None, *, hides: bool | None = None) -> list[PydanticTool[Any]]:
        """Its tools for an agent, each with its gate."""
        self.check()
        hidden = self.hides if hides is None else hides
        return [self._gated(each, name, key, f"{prefix}_" if prefix else "", hidden) for each in self._items]

    def _gated(self, name: str, toolset: str, key: str, prefix: str, hides: bool) -> PydanticTool[Any]:
        tool, _ = self._tool(name)
        dynamic = self._dynamic(name)
        made: PydanticTool[Any] = copy.copy(tool.tool)
        made.metadata = {"approval": tool.options.approval, "primary": tool.options.primary}
        made = stamped_tool(toolset, self._owner, made)
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

    def _now(self) -> ToolkitState:
        found = state_in_run(self)
        if isinstance(found, OpenTransaction):
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
