"""The gates of one agent's call: its machines, their states, and the order of the calls to each.

When gates are asked, and what a call changes, is `llm_do.runtime.toolcall.gatekeeper`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from llm_do.runtime.tools.call_order import Order

if TYPE_CHECKING:
    from llm_do.machines.machine import Machine, ToolkitState
    from llm_do.machines.tool_gate import ToolGate

__all__ = ["CallGates"]


class CallGates:
    """The machines of one agent's call: their states, and the order of the calls to each.

    Args:
        declared: The gates that the agent itself declares, by the tool's name on the wire.
        saved: States to begin with, by machine.
    """

    __slots__ = ("_machines", "_saved", "_serial", "declared", "order", "states")

    def __init__(
        self, declared: Mapping[str, ToolGate] | None = None, saved: Mapping[str, ToolkitState] | None = None
    ) -> None:
        self.declared: Mapping[str, ToolGate] = declared or {}
        self.order = Order()
        self.states: dict[str, ToolkitState] = {}
        self._saved: Mapping[str, ToolkitState] = saved or {}
        self._machines: dict[str, Machine] = {}
        self._serial: asyncio.Lock | None = None

    @property
    def serial(self) -> asyncio.Lock:
        """Held by the call from Python that changes a state."""
        if self._serial is None:
            self._serial = asyncio.Lock()
        return self._serial

    def gates(self, tool_name: str, own: ToolGate | None) -> tuple[ToolGate, ...]:
        """The gates that a call passes: its toolkit's, then the agent's."""
        return tuple(gate for gate in (own, self.declared.get(tool_name)) if gate is not None)

    def state(self, gate: ToolGate) -> ToolkitState:
        """The state of a gate's machine, which begins when it is first needed."""
        state = self.states.get(gate.key)
        if state is None:
            state = self.states[gate.key] = gate.machine.resume(self._saved.get(gate.key))
            self._machines[gate.key] = gate.machine
        return state

    def state_of(self, machine: Machine) -> ToolkitState | None:
        """The state of a machine, None where it isn't one of this call's."""
        return next((self.states[key] for key, known in self._machines.items() if known is machine), None)

    def result(self) -> dict[str, ToolkitState]:
        """Every machine's state; for those that weren't needed, the saved one."""
        return {**self._saved, **self.states}
