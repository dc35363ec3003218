"""`Gate`: the states a tool needs and changes, the analysis of gates, and the base class of gated toolsets.

These are only values: `llm_do.machines` enforces gates, and `llm_do.ui.reports.machine_diagrams` draws them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.tools import ToolOptions

if TYPE_CHECKING:
    from pydantic_ai import Tool as PydanticTool

__all__ = [
    "DYNAMIC_MARK",
    "Analysis",
    "DeadEnd",
    "Gate",
    "GatedTools",
    "GatedToolset",
    "analyse",
    "gate_of",
    "wire_name",
]

DYNAMIC_MARK = "x-llm-do-dynamic"
"""The key under which a type that depends on the context describes itself in a tool's JSON Schema."""

MOST_SITUATIONS = 20_000
"""The most sets of states that an analysis examines."""


@frozen
class Gate:
    """When one tool is available, and what its success changes.

    Args:
        requires: States that must be unlocked.
        forbids: States that must not be.
        needs: Keys of the context that must exist; dotted paths reach into values.
        enables: States that success unlocks.
        disables: States that success locks again, after `enables`.
        place: Where it is declared.

    Example:
        >>> gate = Gate(requires=("tested",), disables=("tested",))
        >>> gate.reason(frozenset(), lambda key: True)
        "it needs the state 'tested'"
        >>> sorted(gate.after(frozenset({"tested", "ready"})))
        ['ready']
    """

    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    enables: tuple[str, ...] = ()
    disables: tuple[str, ...] = ()
    place: Location | None = field(default=None, compare=False)

    @property
    def empty(self) -> bool:
        """Whether the tool neither needs nor changes anything."""
        return not any(self.to_dict().values())

    def to_dict(self) -> dict[str, list[str]]:
        """Convert the gate to JSON data, without its place."""
        return {
            "requires": list(self.requires),
            "forbids": list(self.forbids),
            "needs": list(self.needs),
            "enables": list(self.enables),
            "disables": list(self.disables),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Iterable[str]]) -> Gate:
        """Create a gate from the data that `to_dict` returns."""
        return cls(**{key: tuple(states) for key, states in data.items()})  # pyright: ignore[reportArgumentType]

    def opens(self, unlocked: Set[str]) -> bool:
        """Check whether the states allow the tool, regardless of the context."""
        return all(state in unlocked for state in self.requires) and not any(
            state in unlocked for state in self.forbids
        )

    def reason(self, unlocked: Set[str], has: Callable[[str], bool]) -> str | None:
        """Explain why the tool is not available; None if it is."""
        for state in self.requires:
            if state not in unlocked:
                return f"it needs the state {state!r}"
        for state in self.forbids:
            if state in unlocked:
                return f"it is not possible in the state {state!r}"
        for key in self.needs:
            if not has(key):
                return f"it needs {key!r} in the context"
        return None

    def after(self, unlocked: frozenset[str]) -> frozenset[str]:
        """Return the states that are unlocked after the tool has succeeded."""
        if not self.enables and not self.disables:
            return unlocked
        return (unlocked | frozenset(self.enables)) - frozenset(self.disables)


def gate_of(options: ToolOptions) -> Gate:
    """Create the gate that a tool's options describe."""
    return Gate(
        tuple(options.required_states),
        tuple(options.forbidden_states),
        tuple(options.required_context),
        tuple(options.enables_states),
        tuple(options.disables_states),
    )


def wire_name(name: str, tools: Mapping[str, tuple[str | None, str]]) -> str:
    """Translate `toolkit::tool` to the tool's name on the wire; other names stay as they are.

    Example:
        >>> wire_name("plane::select", {}), wire_name("plane::select", {"select": ("plane", "select")})
        ('plane_select', 'select')
    """
    toolkit, separator, tool = name.partition("::")
    if not separator:
        return name
    prefixed = f"{toolkit}_{tool}"
    if prefixed in tools:
        return prefixed
    return next((wire for wire, known in tools.items() if known == (toolkit, tool)), prefixed)


class GatedTools(ABC):
    """The interface of a gated toolset that the linker and the runtime use."""

    @property
    @abstractmethod
    def gates(self) -> Mapping[str, Gate]:
        """The gate of each tool."""

    @property
    @abstractmethod
    def unlocked(self) -> frozenset[str]:
        """The states that are unlocked when a run begins."""

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, object]:
        """The function or object behind each tool."""

    @abstractmethod
    def check(self) -> None:
        """Raise `ToolkitError` if any tool is unusable."""

    @abstractmethod
    def tools(
        self, name: str | None = None, prefix: str | None = None, *, hides: bool | None = None
    ) -> Sequence[PydanticTool[Any]]:
        """Return the tools with their gates, for an agent that lists the toolset under this name and prefix."""


class GatedToolset(ABC):
    """Base class of toolsets with a machine, which makes toolkits recognizable without importing them."""

    gated: GatedTools


@frozen
class DeadEnd:
    """A situation in which no tool of the machine is available.

    Args:
        path: The tools that lead there, in order.
        unlocked: The states that are unlocked there.
    """

    path: tuple[str, ...]
    unlocked: frozenset[str]


@frozen
class Analysis:
    """The result of analysing a machine, assuming that the context has everything tools need.

    Args:
        unreached: States that tools need but nothing unlocks, each with the tools that need it.
        never: Tools that can never become available.
        dead_ends: Up to three dead ends, those with the shortest paths.
        complete: Whether every situation was examined; if not, `dead_ends` may be incomplete.
    """

    unreached: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    never: tuple[str, ...] = ()
    dead_ends: tuple[DeadEnd, ...] = ()
    complete: bool = True


def analyse(gates: Mapping[str, Gate], initial: Iterable[str] = ()) -> Analysis:
    """Find a machine's unreachable states and tools, and its dead ends.

    Example:
        >>> found = analyse({"push": Gate(requires=("tested",)), "test": Gate(enables=("testd",))})
        >>> dict(found.unreached), found.never
        ({'tested': ('push',)}, ('push',))
    """
    start = frozenset(initial)
    enabled = start.union(*(gate.enables for gate in gates.values()))
    missing: dict[str, tuple[str, ...]] = {}
    for name, gate in gates.items():
        for state in gate.requires:
            if state not in enabled:
                missing[state] = (*missing.get(state, ()), name)
    paths, complete = _situations(gates, start)
    if complete:
        never = tuple(name for name, gate in gates.items() if not any(gate.opens(unlocked) for unlocked in paths))
    else:
        reachable = _reachable(gates, start)
        never = tuple(name for name, gate in gates.items() if not reachable.issuperset(gate.requires))
    ends = [
        DeadEnd(path, unlocked)
        for unlocked, path in paths.items()
        if not any(gate.opens(unlocked) for gate in gates.values())
    ]
    return Analysis(missing, never, tuple(sorted(ends, key=lambda end: (len(end.path), end.path))[:3]), complete)


def _situations(gates: Mapping[str, Gate], start: frozenset[str]) -> tuple[dict[frozenset[str], tuple[str, ...]], bool]:
    """Find every reachable set of states with the shortest path to it, breadth first."""
    paths: dict[frozenset[str], tuple[str, ...]] = {start: ()}
    waiting = [start]
    for unlocked in waiting:
        for name, gate in gates.items():
            if not gate.opens(unlocked):
                continue
            after = gate.after(unlocked)
            if after in paths:
                continue
            if len(paths) >= MOST_SITUATIONS:
                return paths, False
            paths[after] = (*paths[unlocked], name)
            waiting.append(after)
    return paths, True


def _reachable(gates: Mapping[str, Gate], start: frozenset[str]) -> frozenset[str]:
    """Find the states reachable if nothing were forbidden or locked again: a superset of the reachable ones."""
    ever, before = start, None
    while ever != before:
        before = ever
        ever = ever.union(*(gate.enables for gate in gates.values() if before.issuperset(gate.requires)))
    return ever
