"""`ToolGate`: one tool's part in a machine: it checks calls, shows the tool as it is now, settles what calls change.

When gates are asked, and in which order calls pass them, is decided in `llm_do.runtime.toolcall.gatekeeper`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from llm_do.errors import LlmDoError, ToolError
from llm_do.machines.dynamic_schema import DynamicSchema, Resolved
from llm_do.machines.dynamic_types import CHECKS
from llm_do.machines.machine import Machine, ToolkitState
from llm_do.machines.value_sources import Sources
from llm_do.project.tools.argument_schemas import validation_text
from llm_do.text.words import truncate_end
from llm_do.tools import Update

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition
    from pydantic_core import SchemaValidator

    from llm_do.machines.context import Context
    from llm_do.project.gates import Gate

__all__ = ["OPEN_TRANSACTIONS", "ToolGate", "Transaction"]


@dataclass(slots=True, eq=False)
class Transaction:
    """One call of a gated tool while it runs, and what it changes once it has succeeded.

    Args:
        gate: The tool's gate.
        frame: The frame of the agent's call; None outside a Runtime.
        before: The machine's state at its beginning.
        context: A copy of the context, which the tool may change.
        after: The machine's state once the call is settled; the same as `before` until then.
        updates: What the call changes in the context.
    """

    gate: ToolGate
    frame: object
    before: ToolkitState
    context: Context
    after: ToolkitState
    updates: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def unlocked_states(self) -> frozenset[str]:
        """The states at its beginning."""
        return self.before.unlocked_states


OPEN_TRANSACTIONS: ContextVar[tuple[Transaction, ...]] = ContextVar("llm_do_open_transactions", default=())
"""The gated calls that run in this task or worker thread, innermost last."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolGate:
    """A tool's gate in a machine. The machine's state isn't in it, so any number of calls may share it.

    Args:
        machine: The machine.
        name: The tool's own name.
        rule: When it is available, and what its success changes.
        key: What the machine is called in its agent.
        prefix: What stands before its name on the wire.
        hides: Whether the tool is hidden while it isn't available.
        dynamic: Its dynamic schema, where it has one.
        validator: Validates its arguments, for the dynamic types among them.
        pairs: Whether `(result, dict)` is a result and updates; else only `Update` is.
    """

    machine: Machine
    name: str
    rule: Gate
    key: str = ""
    prefix: str = ""
    hides: bool = True
    dynamic: DynamicSchema | None = None
    validator: SchemaValidator | None = None
    pairs: bool = False

    def reason(self, state: ToolkitState) -> str | None:
        """Why the tool is not available, None when it is."""
        reason = self.rule.reason(state.unlocked_states, state.context.has)
        if reason is None:
            resolved = self.resolve(state)
            return resolved.reason if resolved is not None else None
        missing = next((each for each in self.rule.requires if each not in state.unlocked_states), None)
        ways = self.machine.enablers(missing) if missing is not None else []
        return f"{reason}, which {' or '.join(self.prefix + way for way in ways)} unlocks" if ways else reason

    def check(self, state: ToolkitState, tool_name: str, args: object) -> str | None:
        """Why a call can't be made in this state, None when it can; a model's arguments may be JSON text."""
        if (reason := self.reason(state)) is not None:
            return f"{tool_name} is not available now: {reason}"
        resolved = self.resolve(state)
        if resolved is None or self.validator is None:
            return None
        token = CHECKS.set(resolved.checks)
        try:
            if isinstance(args, str):
                self.validator.validate_json(args or "{}")
            else:
                self.validator.validate_python({} if args is None else args)
        except ValidationError as error:
            return validation_text(tool_name, error)
        finally:
            CHECKS.reset(token)
        return None

    def shown(self, state: ToolkitState, definition: ToolDefinition) -> ToolDefinition | None:
        """The tool as a model sees it in this state, None when it is hidden."""
        if self.hides and self.reason(state) is not None:
            return None
        resolved = self.resolve(state)
        # A tool that isn't hidden though it has no schema now is shown with the static one.
        if resolved is None or resolved.reason is not None:
            return definition
        return replace(definition, parameters_json_schema=resolved.schema)

    def resolve(self, state: ToolkitState) -> Resolved | None:
        """The tool's schema in this state, built once for it; None where it isn't dynamic."""
        if self.dynamic is None:
            return None
        known = state.resolved.get(self.name)
        if known is None:
            known = self.dynamic.resolve(Sources(state.context, self.machine.filters))
            state.resolved[self.name] = known
        return known

    @contextmanager
    def transaction(self, state: ToolkitState, frame: object) -> Generator[Transaction]:
        """Open a transaction for a call: the tool's code finds its context while it runs."""
        opened = Transaction(self, frame, state, state.context.copy(), state)
        token = OPEN_TRANSACTIONS.set((*OPEN_TRANSACTIONS.get(), opened))
        try:
            yield opened
        finally:
            OPEN_TRANSACTIONS.reset(token)

    def settle(self, transaction: Transaction, value: Any) -> Any:
        """Split what the tool returned into result and updates, and work out the state after it; gives the result.

        Nothing is changed yet, so that the caller can change all machines that the call concerns, or none.
        """
        before, context = transaction.before, transaction.context
        result, updates = _result_and_updates(value, pairs=self.pairs)
        try:
            context.update(updates)
        except LlmDoError as error:
            shown = truncate_end(repr(result), 200, end="…")
            raise ToolError(
                f"it ran and returned {shown}, but its updates of the context were refused, so nothing was changed: "
                f"{error.message}"
            ) from error
        states = self.rule.after(before.unlocked_states)
        if not context.same(before.context):
            transaction.after, transaction.updates = ToolkitState(context.sealed(), states), context.changes()
        elif states != before.unlocked_states:
            transaction.after = ToolkitState(before.context, states, before.resolved)
        return result


def _result_and_updates(value: Any, *, pairs: bool) -> tuple[Any, dict[str, Any]]:
    """Result and updates of what a tool returned."""
    if isinstance(value, Update):
        if value.failure is not None:
            raise ToolError(value.failure)
        return value.result, value.updates
    if pairs and isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        if len(items) == 2 and isinstance(items[1], dict):
            result, updates = _result_and_updates(items[0], pairs=False)
            return result, {**updates, **cast("dict[str, Any]", items[1])}
    return cast("object", value), {}
