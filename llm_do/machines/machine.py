"""`Machine`: gates over one context and one set of states; and `ToolkitState`, its state at one moment.

A machine is a template. Each run has its own state, which begins as the machine's and is kept by
`llm_do.runtime.toolcall.gatekeeper`. One tool's part in a machine is in `llm_do.machines.tool_gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_do.machines.context import Context
from llm_do.machines.dynamic_schema import Resolved
from llm_do.machines.value_sources import BUILTIN_FILTERS, Filter
from llm_do.project.gates import Gate
from llm_do.text.json_data import to_json_data

__all__ = ["Machine", "ToolkitState"]


@dataclass(frozen=True, slots=True, eq=False)
class ToolkitState:
    """A toolkit's context and unlocked states at one moment. It never changes: a run makes new ones.

    Args:
        context: The context, for reading only.
        unlocked_states: The states that are unlocked.

    Example:
        >>> state = ToolkitState.from_dict({"context": {"user": "ann"}, "unlocked_states": ["in"]})
        >>> state.context.get("user"), state.to_dict()["unlocked_states"]
        ('ann', ['in'])
    """

    context: Context
    unlocked_states: frozenset[str] = frozenset()
    resolved: dict[str, Resolved] = field(default_factory=dict[str, Resolved], repr=False)
    """Dynamic schemas by tool, each made when it is first needed: the context that they depend on doesn't change."""

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data."""
        return {"context": to_json_data(self.context.to_dict()), "unlocked_states": sorted(self.unlocked_states)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolkitState:
        """The state that `to_dict` wrote. It has no schemas: those are the toolkit's that continues from it."""
        context = Context(initial_data=data.get("context") or {})
        return cls(context.sealed(), frozenset(data.get("unlocked_states") or ()))


class Machine:
    """The gates of a toolkit, or those that an agent declares, which have an empty context to begin with.

    Args:
        gates: Tools and their gates.
        context: The context that runs begin with.
        unlocked: The states that are unlocked then.
        filters: The filters that dynamic types may name.
    """

    def __init__(
        self,
        gates: Mapping[str, Gate] | None = None,
        context: Context | None = None,
        unlocked: frozenset[str] = frozenset(),
        filters: Mapping[str, Filter] = BUILTIN_FILTERS,
    ) -> None:
        self.gates = dict(gates or {})
        self.context = Context() if context is None else context
        self.unlocked = unlocked
        self.filters = dict(filters)
        self._snapshot: ToolkitState | None = None

    def add_filter(self, name: str, function: Filter) -> None:
        """Add a filter, or replace one; schemas that were made without it are forgotten."""
        self.filters[name] = function
        self._snapshot = None

    def snapshot(self) -> ToolkitState:
        """The state every run begins with: the same value until the template is changed."""
        known = self._snapshot
        if known is None or known.unlocked_states != self.unlocked or not known.context.same(self.context):
            known = self._snapshot = ToolkitState(self.context.sealed(), self.unlocked)
        return known

    def resume(self, saved: ToolkitState | None) -> ToolkitState:
        """The state a run begins with: the saved one under this machine's own schemas, if there is one."""
        first = self.snapshot()
        if saved is None:
            return first
        return ToolkitState(first.context.with_data(saved.context.data).sealed(), saved.unlocked_states)

    def enablers(self, state: str) -> list[str]:
        """The tools that unlock a state."""
        return [name for name, gate in self.gates.items() if state in gate.enables]
