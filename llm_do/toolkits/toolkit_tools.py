"""`ToolkitTools`: a toolkit's tools with their gates, as agents and the linker get them. Not part of the public API."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from llm_do.errors import ToolkitError
from llm_do.machines.dynamic_schema import DynamicSchema
from llm_do.machines.machine import Machine, ToolkitState
from llm_do.machines.tool_gate import ToolGate
from llm_do.project.gates import Gate, GatedTools, gate_of
from llm_do.project.registry import NAME_PATTERN
from llm_do.project.tools.declared_facts import FACTS_KEY, function_facts
from llm_do.runtime.tools.stamped_tools import stamped_tool
from llm_do.runtime.tools.traits import TRAITS_KEY, ToolTraits
from llm_do.toolkits.run_states import state_in_run
from llm_do.toolkits.tool_functions import toolkit_tool

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool

    from llm_do.toolkits.toolkit import Toolkit
    from llm_do.tools import Tool, ToolOptions

__all__ = ["ToolkitTools"]

_NAME = re.compile(NAME_PATTERN)


class ToolkitTools(GatedTools):
    """What a toolkit is to runs and to the linker.

    Args:
        owner: The toolkit.
        machine: Its machine.
        template: The tools of the toolkit that this one is a copy of.
    """

    def __init__(self, owner: Toolkit, machine: Machine, template: ToolkitTools | None = None) -> None:
        self.machine = machine
        self._owner = owner
        self._items: dict[str, tuple[Callable[..., Any] | Tool, ToolOptions]] = {}
        self._made: dict[str, tuple[PydanticTool[Any], DynamicSchema]] = {}
        if template is not None:
            self._items, self._made = dict(template._items), dict(template._made)

    def add(self, name: str, item: Callable[..., Any] | Tool, options: ToolOptions) -> None:
        """Add a tool."""
        if not _NAME.match(name) or name.endswith("\n"):
            hint = "Use a letter or _, then up to 63 letters, digits, _ and -."
            raise ToolkitError(f"{name!r} can't be the name of a tool", hint=hint)
        if name in self._items:
            raise ToolkitError(f"the toolkit has a tool {name!r} already", hint="name one of them with `name=`")
        self._items[name] = (item, options)
        self.machine.gates[name] = gate_of(options)

    @property
    def gates(self) -> dict[str, Gate]:
        """Every tool with its gate."""
        return self.machine.gates

    @property
    def unlocked(self) -> frozenset[str]:
        """The states that are unlocked when a run begins."""
        return self.machine.unlocked

    @property
    def functions(self) -> dict[str, Callable[..., Any] | Tool]:
        """Every tool with the function or object that it was made of."""
        return {name: item for name, (item, _) in self._items.items()}

    def reason(self, name: str) -> str | None:
        """Why a tool can't be called now, None when it can."""
        return self._gate(name).reason(self._now())

    def openai_schema(self, name: str) -> dict[str, Any]:
        """A tool in OpenAI's format as it is now."""
        tool, dynamic = self._tool(name)
        resolved = self._gate(name).resolve(self._now())
        schema = dynamic.static if resolved is None else resolved.schema
        function = {"name": name, "description": tool.description or "", "parameters": schema}
        return {"type": "function", "function": function}

    def check(self) -> None:
        """Raise `ToolkitError` if a schema can't be made, or a filter doesn't exist."""
        filters = self.machine.filters
        for name in self._items:
            for missing in sorted(self._tool(name)[1].filter_names - filters.keys()):
                raise ToolkitError(
                    f"the tool {name!r} names the filter {missing!r}, which doesn't exist",
                    hint=f"There are {', '.join(filters)}; add others with register_filter().",
                )

    def tools(
        self, name: str | None = None, prefix: str | None = None, *, hides: bool | None = None
    ) -> list[PydanticTool[Any]]:
        """Its tools for an agent, each with its gate."""
        self.check()
        own = name or self._owner.name or "toolkit"
        hidden = self._owner.gate == "hide" if hides is None else hides
        before = f"{prefix}_" if prefix else ""
        return [self._gated(own, self._gate(each, prefix or own, before, hides=hidden)) for each in self._items]

    def _gated(self, toolset: str, gate: ToolGate) -> PydanticTool[Any]:
        """A tool with its gate in its traits."""
        _, options = self._items[gate.name]
        made: PydanticTool[Any] = copy.copy(self._tool(gate.name)[0])
        made.metadata = {"approval": options.approval, FACTS_KEY: function_facts(options)}
        made = stamped_tool(toolset, self._owner, made)
        traits: ToolTraits = cast("dict[str, Any]", made.metadata)[TRAITS_KEY]
        facts = replace(traits.facts, kind="toolkit")
        made.metadata = replace(traits, facts=facts, timeout=options.timeout, gate=gate).metadata()
        if gate.dynamic is not None:
            made.function_schema = replace(made.function_schema, json_schema=gate.dynamic.static)
        return made

    def _gate(self, name: str, key: str = "", prefix: str = "", *, hides: bool = True) -> ToolGate:
        """A tool's gate, as an agent has it that calls the machine `key`."""
        tool, dynamic = self._tool(name)
        return ToolGate(
            self.machine,
            name,
            self.machine.gates[name],
            key,
            prefix,
            hides,
            dynamic if dynamic.places else None,
            cast("Any", tool.function_schema.validator),
            pairs=True,
        )

    def _tool(self, name: str) -> tuple[PydanticTool[Any], DynamicSchema]:
        made = self._made.get(name)
        if made is None:
            tool = toolkit_tool(name, *self._items[name])
            made = self._made[name] = tool, DynamicSchema(tool.function_schema.json_schema)
        return made

    def _now(self) -> ToolkitState:
        found = state_in_run(self.machine)
        if found is None or isinstance(found, ToolkitState):
            return found or self.machine.snapshot()
        return ToolkitState(found.context.sealed(), found.unlocked_states)
