"""A toolkit in a PydanticAI agent outside a runtime: it asks its gates itself, as the runtime would."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import ToolError
from llm_do.machines.machine import Machine
from llm_do.machines.tool_gate import ToolGate
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import TRAITS_KEY

__all__ = ["StandaloneGates"]


class StandaloneGates:
    """Runs calls to one machine one after the other, and none after one that failed in the same step.

    Args:
        machine: The machine; it keeps the state itself.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = asyncio.Lock()
        self._stopped: tuple[int, str] | None = None

    def shown(self, tools: Mapping[str, FixedTool]) -> dict[str, ToolsetTool[Any]]:
        """The tools as a model sees them now: those that are available, or all where none are hidden."""
        state = self._machine.snapshot()
        definitions = {name: _gate(tool).shown(state, tool.tool_def) for name, tool in tools.items()}
        return {
            name: replace(tools[name], tool_def=definition)
            for name, definition in definitions.items()
            if definition is not None
        }

    async def call(self, tool: FixedTool, tool_args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Run a tool when its turn has come."""
        gate = _gate(tool)
        async with self._lock:
            if self._stopped is not None and self._stopped[0] == ctx.run_step:
                raise ToolFailed(f"not run: {self._stopped[1]}, called before it in the same response, did not succeed")
            try:
                return await self._transition(gate, tool, tool_args, ctx)
            except BaseException:
                self._stopped = (ctx.run_step, gate.name)
                raise

    async def _transition(
        self, gate: ToolGate, tool: FixedTool, tool_args: dict[str, Any], ctx: RunContext[Any]
    ) -> Any:
        """Check a call, run it, and make what it changed the machine's state."""
        machine = self._machine
        state = machine.snapshot()
        if (reason := gate.check(state, gate.name, tool_args)) is not None:
            raise ToolFailed(reason)
        try:
            with gate.transaction(state, None) as transaction:
                result = gate.settle(transaction, await tool.call(tool_args, ctx))
        except ToolError as error:
            raise ToolFailed(error.message) from error
        after = transaction.after
        machine.context, machine.unlocked = machine.context.with_data(after.context.data), after.unlocked_states
        return result


def _gate(tool: FixedTool) -> ToolGate:
    return cast("dict[str, Any]", tool.tool_def.metadata)[TRAITS_KEY].gate
