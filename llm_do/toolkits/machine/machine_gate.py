"""`MachineGate`: one tool's gate in a machine, and what a call of it comes to.

When gates are asked, and in which order calls pass them, is the runtime's business
(`llm_do.runtime.toolcall.gatekeeper`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, cast

from pydantic import ValidationError
from pydantic_core import SchemaValidator

from llm_do.errors import LlmDoError, ToolError
from llm_do.machines.dynamic_schema import DynamicSchema, Resolved
from llm_do.machines.dynamic_types import CHECKS
from llm_do.machines.value_sources import Filter, Sources
from llm_do.project.argument_schemas import validation_text
from llm_do.project.gates import Gate
from llm_do.runtime.tools.gated_tools import GateState, Outcome, ToolGate, ToolTransaction
from llm_do.toolkits.machine.toolkit_state import OPEN_TRANSACTIONS, OpenTransaction, ToolkitState
from llm_do.tools import Update

if TYPE_CHECKING:
    from contextvars import Token

    from pydantic_ai import ToolDefinition

__all__ = ["Machine", "MachineAttempt", "MachineGate", "availability", "resolved_schema"]


class Machine(Protocol):
    """What several gates have in common: a toolkit, or an agent's own `states:`."""

    @property
    def hides(self) -> bool:
        """Whether tools that aren't available are hidden."""
        ...

    @property
    def filters(self) -> Mapping[str, Filter]:
        """The filters that dynamic types may name."""
        ...

    def snapshot(self) -> ToolkitState:
        """The state every run begins with."""
        ...

    def enablers(self, state: str) -> list[str]:
        """The tools that unlock a state."""
        ...


def availability(
    machine: Machine, name: str, rule: Gate, dynamic: DynamicSchema | None, state: ToolkitState, prefix: str = ""
) -> str | None:
    """Why a tool is not available, None when it is."""
    reason = rule.closed(state.unlocked_states, state.context.has)
    if reason is not None:
        missing = next((each for each in rule.requires if each not in state.unlocked_states), None)
        ways = machine.enablers(missing) if missing is not None else []
        return f"{reason}, which {' or '.join(prefix + way for way in ways)} unlocks" if ways else reason
    return resolved_schema(machine, name, dynamic, state).reason if dynamic is not None else None


def resolved_schema(machine: Machine, name: str, dynamic: DynamicSchema, state: ToolkitState) -> Resolved:
    """A tool's schema in a state, built once for it."""
    known = state.resolved.get(name)
    if known is None:
        known = state.resolved[name] = dynamic.resolve(Sources(state.context, machine.filters))
    return known


class MachineGate(ToolGate):
    """A tool's gate in a machine.

    Args:
        key: What the machine is called in its agent.
        machine: The machine.
        name: The tool's own name.
        rule: When it is available, and what its success changes.
        hides: Whether it is hidden while it isn't available; None is as the machine says.
        prefix: What stands before its name on the wire.
        dynamic: Its dynamic schema, where it has one.
        validator: Validates its arguments, for the dynamic types among them.
        pairs: Whether `(result, dict)` is a result and updates; else only `Update` is.
    """

    def __init__(
        self,
        key: str,
        machine: Machine,
        name: str,
        rule: Gate,
        *,
        hides: bool | None = None,
        prefix: str = "",
        dynamic: DynamicSchema | None = None,
        validator: SchemaValidator | None = None,
        pairs: bool = False,
    ) -> None:
        super().__init__(key, machine, hides=machine.hides if hides is None else hides)
        self.name = name
        self.rule = rule
        self.prefix = prefix
        self.dynamic = dynamic
        self.pairs = pairs
        self._machine = machine
        self._validator = validator

    def begin(self, saved: GateState | None) -> GateState:
        """The machine's first state, or the saved one under the machine's own schemas."""
        first = self._machine.snapshot()
        if not isinstance(saved, ToolkitState):
            return first
        return ToolkitState(first.context.with_data(saved.context.data).sealed(), saved.unlocked_states)

    def closed(self, state: GateState) -> str | None:
        """Why the tool is not available."""
        own = cast("ToolkitState", state)
        return availability(self._machine, self.name, self.rule, self.dynamic, own, self.prefix)

    def shown(self, state: GateState, definition: ToolDefinition) -> ToolDefinition:
        """The tool with its dynamic schema."""
        if self.dynamic is None:
            return definition
        found = resolved_schema(self._machine, self.name, self.dynamic, cast("ToolkitState", state))
        # A tool that isn't hidden though it has no schema now is shown with the static one.
        return definition if found.reason is not None else replace(definition, parameters_json_schema=found.schema)

    def fault(self, state: GateState, written: object) -> str | None:
        """What is wrong with the arguments in this context."""
        if self.dynamic is None or self._validator is None:
            return None
        found = resolved_schema(self._machine, self.name, self.dynamic, cast("ToolkitState", state))
        token = CHECKS.set(found.checks)
        try:
            if isinstance(written, str):
                self._validator.validate_json(written or "{}")
            else:
                self._validator.validate_python({} if written is None else written)
        except ValidationError as error:
            return validation_text(self.prefix + self.name, error)
        finally:
            CHECKS.reset(token)
        return None

    def attempt(self, state: GateState, frame: object) -> ToolTransaction:
        """A call of the tool."""
        return MachineAttempt(self._machine, self.rule, cast("ToolkitState", state), frame, pairs=self.pairs)


class MachineAttempt(ToolTransaction):
    """One call of a gated tool: the context it may change, and what becomes of it.

    Args:
        machine: Whose tool it is.
        rule: What its success changes.
        state: The machine's state at its beginning.
        frame: The frame of the agent's call; None outside a Runtime.
        pairs: Whether `(result, dict)` is a result and updates.
    """

    def __init__(self, machine: Machine, rule: Gate, state: ToolkitState, frame: object, *, pairs: bool) -> None:
        self._rule = rule
        self._state = state
        self._pairs = pairs
        self._work = OpenTransaction(machine, frame, state.context.copy(), state.unlocked_states)
        self._token: Token[tuple[OpenTransaction, ...]] | None = None

    def __enter__(self) -> MachineAttempt:
        self._token = OPEN_TRANSACTIONS.set((*OPEN_TRANSACTIONS.get(), self._work))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            OPEN_TRANSACTIONS.reset(self._token)

    def settle(self, value: Any) -> Outcome:
        """Take the tool's result and updates apart; apply the updates, then unlock and lock states."""
        before = self._state
        result, updates = _taken_apart(value, pairs=self._pairs)
        context = self._work.context
        try:
            context.update(updates)
        except LlmDoError as error:
            raise ToolError(
                f"it ran and returned {_short(result)}, but its updates of the context were refused, so nothing was "
                f"changed: {error.message}"
            ) from error
        states = self._rule.after(before.unlocked_states)
        if context.same(before.context):
            state = before if states == before.unlocked_states else _with_states(before, states)
            return Outcome(result, state)
        return Outcome(result, ToolkitState(context.sealed(), states), context.changes())


def _with_states(state: ToolkitState, states: frozenset[str]) -> ToolkitState:
    return ToolkitState(state.context, states, state.resolved)


def _taken_apart(value: Any, *, pairs: bool) -> tuple[Any, dict[str, Any]]:
    """Result and updates of what a tool returned."""
    if isinstance(value, Update):
        if value.failure is not None:
            raise ToolError(value.failure)
        return value.result, value.updates
    if pairs and isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        if len(items) == 2 and isinstance(items[1], dict):
            result, updates = _taken_apart(items[0], pairs=False)
            return result, {**updates, **cast("dict[str, Any]", items[1])}
    return cast("object", value), {}


def _short(result: object) -> str:
    text = repr(result)
    return text if len(text) <= 200 else f"{text[:199]}…"
