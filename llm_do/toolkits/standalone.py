"""A toolkit in a PydanticAI agent of one's own: it gates its tools itself, which in a run of ours the runtime does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import ToolError
from llm_do.runtime.tools.toolbox import FixedTool
from llm_do.runtime.tools.traits import TRAITS_KEY
from llm_do.toolkits.machine.machine_gate import Machine, MachineGate
from llm_do.toolkits.machine.toolkit_state import ToolkitState

__all__ = ["StandaloneMachine", "StandaloneOrder"]


class StandaloneMachine(Machine, Protocol):
    """A machine that keeps its state itself."""

    def become(self, state: ToolkitState) -> None:
        """Take over a state."""
        ...


class StandaloneOrder:
    """Lets calls to one machine through one after the other, and none after one that failed in the same step.

    Args:
        machine: The machine.
    """

    def __init__(self, machine: StandaloneMachine) -> None:
        self._machine = machine
        self._lock = asyncio.Lock()
        self._stopped: tuple[int, str] | None = None

    def shown(self, tools: Mapping[str, FixedTool]) -> dict[str, ToolsetTool[Any]]:
        """The tools as a model sees them now: those that are available, or all where none are hidden."""
        shown: dict[str, ToolsetTool[Any]] = {}
        state = self._machine.snapshot()
        for name, tool in tools.items():
            gate = _gate(tool)
            if not self._machine.hides or gate.closed(state) is None:
                shown[name] = replace(tool, tool_def=gate.shown(state, tool.tool_def))
        return shown

    async def call(self, tool: FixedTool, tool_args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Run a tool when its turn has come."""
        gate = _gate(tool)
        async with self._lock:
            if self._stopped is not None and self._stopped[0] == ctx.run_step:
                raise ToolFailed(f"not run: {self._stopped[1]} before it failed")
            try:
                return await self._transition(gate, tool, tool_args, ctx)
            except BaseException:
                self._stopped = (ctx.run_step, gate.name)
                raise

    async def _transition(
        self, gate: MachineGate, tool: FixedTool, tool_args: dict[str, Any], ctx: RunContext[Any]
    ) -> Any:
        """Gate a call, run it, and take over what it changed."""
        state = self._machine.snapshot()
        if (fault := gate.closed(state) or gate.fault(state, tool_args)) is not None:
            raise ToolFailed(f"{gate.name} is not available: {fault}")
        try:
            with gate.attempt(state, None) as attempt:
                settled = attempt.settle(await tool.call(tool_args, ctx))
        except ToolError as error:
            raise ToolFailed(error.message) from error
        self._machine.become(cast("ToolkitState", settled.state))
        return settled.result


def _gate(tool: FixedTool) -> MachineGate:
    return cast("dict[str, Any]", tool.tool_def.metadata)[TRAITS_KEY].gate
