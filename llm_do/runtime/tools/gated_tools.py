"""Gated tools as the runtime sees them: what a gate can do, and the state and the toolset it belongs to.

What gates mean (contexts, state machines, dynamic types) is `llm_do.toolkits`; when they are asked is
`llm_do.runtime.toolcall.gatekeeper`. Nothing here knows either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic_ai.toolsets import AbstractToolset

from llm_do._frozen import frozen

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai import ToolDefinition

    from llm_do.machines.context import Context
    from llm_do.project.gates import Gate

__all__ = ["GateState", "GatedTools", "GatedToolset", "Outcome", "ToolGate", "ToolTransaction"]


class GateState(Protocol):
    """A machine's state at one moment: a value that never changes."""

    @property
    def context(self) -> Context:
        """What its tools share; for reading only."""
        ...

    @property
    def unlocked_states(self) -> frozenset[str]:
        """The states that are unlocked."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data."""
        ...


@frozen
class Outcome:
    """What a successful call comes to.

    Args:
        result: What the model is told.
        state: The machine's state from now on.
        updates: What of its context changed.
    """

    result: Any
    state: GateState
    updates: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ToolTransaction(AbstractContextManager["ToolTransaction", None], ABC):
    """One call of a gated tool while it runs: inside, the tool's code finds the machine's context."""

    @abstractmethod
    def settle(self, value: Any) -> Outcome:
        """Find out what the call comes to; nothing has changed yet."""


class ToolGate(ABC):
    """One tool's place in a machine. The machine's state isn't in it, so that any number of calls may share it.

    Args:
        key: What the machine is called in its agent.
        machine: The machine.
        hides: Whether the tool is hidden while it isn't available.
    """

    def __init__(self, key: str, machine: object, *, hides: bool) -> None:
        self.key = key
        self.machine = machine
        self.hides = hides

    @abstractmethod
    def begin(self, saved: GateState | None) -> GateState:
        """The machine's state when a call begins: the saved one, else its first one."""

    @abstractmethod
    def closed(self, state: GateState) -> str | None:
        """Why the tool is not available, None when it is."""

    @abstractmethod
    def shown(self, state: GateState, definition: ToolDefinition) -> ToolDefinition:
        """The tool as a model sees it in this state."""

    @abstractmethod
    def fault(self, state: GateState, written: object) -> str | None:
        """What is wrong with arguments in this state, None when nothing is."""

    @abstractmethod
    def attempt(self, state: GateState, frame: object) -> ToolTransaction:
        """A call that is about to run."""


class GatedTools(ABC):
    """What the linker and the runtime take from a gated toolset, and its users don't."""

    @property
    @abstractmethod
    def gates(self) -> Mapping[str, Gate]:
        """Every tool with its gate."""

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, object]:
        """Every tool with the function or object that it was made of."""

    @abstractmethod
    def check(self) -> None:
        """See that every tool can be used; a `ToolkitError` says why one can't."""

    @abstractmethod
    def tools(
        self, name: str, key: str, prefix: str | None, *, hides: bool | None = None
    ) -> Sequence[PydanticTool[Any]]:
        """Its tools, each with its gate in its traits; none is prepared anew for each step."""


Gated = TypeVar("Gated", bound=GatedTools)


class GatedToolset(AbstractToolset[Any], Generic[Gated]):
    """A toolset whose tools are gated by a machine of their own."""

    gated: Gated
