"""The bounds of a run as people read them: its worst case, the limits that decide about it, the maxima it exceeds.

The worst case itself is calculated in `worst_case`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.linker.proofs.call_graph import CallGraph
from llm_do.linker.proofs.totals import Number, Total, Unbounded
from llm_do.linker.proofs.worst_case import BUDGET, Limits, worst_case
from llm_do.project.project import Project

if TYPE_CHECKING:
    from llm_do.project.project import Bounds

__all__ = ["WORDS", "bounds_data", "exceeded", "number_text"]

WORDS: Mapping[str, str] = {"requests": "model requests", "tool_calls": "tool calls", "cost_usd": "US dollars"}
"""What is bounded, as people call it."""

QUANTITIES = tuple(WORDS)

_MOST_TRIED = 8
"""The most agents whose own limits are tried."""


@frozen
class Limit:
    """A limit that decides about the worst case.

    Args:
        name: Its key, such as `runtime.max_steps` or `writer: max_steps`.
        value: What it is now.
        change: Changes the settings or the declarations to another value.
        smaller: The value that is tried.
    """

    name: str
    value: int
    smaller: int
    change: Callable[[Limits, int], Limits]


def limits_of(project: Project, graph: CallGraph) -> Iterator[Limit]:
    """Yield the limits that may tighten the worst case, each with a smaller value to try."""
    settings = project.settings
    reached = [node for node in graph.reachable(graph.entry) if node.kind == "agent"]

    def setting(name: str) -> Callable[[Limits, int], Limits]:
        return lambda limits, value: replace(limits, settings=replace(limits.settings, **{name: value}))

    for name, smaller in (
        ("max_calls_per_response", 8),
        ("max_depth", settings.max_depth - 1),
        ("max_steps", settings.max_steps // 2),
        ("max_retries", 0),
    ):
        value: int = getattr(settings, name)
        if 0 <= smaller < value and (smaller or name == "max_retries"):
            yield Limit(f"runtime.{name}", value, smaller, setting(name))
    for node in reached[:_MOST_TRIED]:
        spec = graph.spec(node)
        if spec is not None and spec.max_steps is not None and spec.max_steps > 1:
            name = node.name
            yield Limit(
                f"{name}: max_steps",
                spec.max_steps,
                spec.max_steps // 2,
                lambda limits, value, name=name: replace(limits, max_steps={**limits.max_steps, name: value}),
            )
    for node in graph.reachable(graph.entry):
        flow = graph.flow(node)
        if flow is not None and flow.mode == "handoff" and flow.max_handoffs > 1:
            name = flow.name
            yield Limit(
                f"flows.{name}.max_handoffs",
                flow.max_handoffs,
                flow.max_handoffs // 2,
                lambda limits, value, name=name: replace(limits, max_handoffs={**limits.max_handoffs, name: value}),
            )


def tightest(project: Project, graph: CallGraph, worst: Total) -> list[tuple[Limit, Total]]:
    """Return the limits whose smaller values lower the worst case, the one that lowers it most first."""
    found: list[tuple[float, Limit, Total]] = []
    start = Limits(project.settings)
    for limit in limits_of(project, graph):
        after = worst_case(project, graph, limit.change(start, limit.smaller))
        ratio = _ratio(worst, after)
        if ratio > 1:
            found.append((ratio, limit, after))
    return [(limit, after) for _, limit, after in sorted(found, key=lambda each: -each[0])]


def _ratio(before: Total, after: Total) -> float:
    """Return how many times smaller the requests are, or the tool calls where requests stay the same."""
    for one, two in ((before.requests, after.requests), (before.tool_calls, after.tool_calls)):
        if not isinstance(one, Unbounded) and not isinstance(two, Unbounded) and one > two:
            try:
                return inf if not two else one / two
            except OverflowError:
                return inf
    return 1.0


def exceeded(project: Project, bounds: Bounds) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield each maximum that the worst case exceeds: its key, the maximum, the worst case, and advice."""
    graph = CallGraph(project)
    worst = worst_case(project, graph)
    best = tightest(project, graph, worst)
    for name in QUANTITIES:
        limit: float | None = getattr(bounds, name)
        value: Number = getattr(worst, name)
        if limit is None or (not isinstance(value, Unbounded) and value <= limit):
            continue
        advice = f"set `runtime.budget.{name}` to {limit:g}" if name != "cost_usd" else None
        if isinstance(value, Unbounded):
            advice = value.remedy if name == "cost_usd" else advice
            yield name, number_text(limit, name), f"any number of ({value.reason})", advice
            continue
        if best and advice is not None:
            advice += f", or lower {best[0][0].name}, which is {best[0][0].value}"
        elif best:
            advice = f"lower {best[0][0].name}, which is {best[0][0].value}, or runtime.budget.requests"
        yield name, number_text(limit, name), number_text(value, name), advice


def number_text(value: float, name: str) -> str:
    """Write a number for people: dollars with cents, large numbers as powers of ten.

    Example:
        >>> number_text(1280, "requests"), number_text(2.5e14, "tool_calls"), number_text(0.5, "cost_usd")
        ('1,280', '2.5e14', '$0.50')
    """
    sign = "$" if name == "cost_usd" else ""
    if isinstance(value, float) and not isfinite(value):
        return "too much to count"
    if value >= 10**9:
        digits = str(int(value))
        return f"{sign}{digits[0]}.{digits[1]}e{len(digits) - 1}"
    return f"{sign}{value:,.2f}" if name == "cost_usd" else f"{value:,.0f}"


def bounds_data(project: Project) -> dict[str, Any]:
    """Return the worst case of a project as JSON data."""
    graph = CallGraph(project)
    worst = worst_case(project, graph)
    limits = tightest(project, graph, worst)
    return {
        "entry": project.entry.name,
        "worst_case": {name: _as_data(getattr(worst, name)) for name in QUANTITIES},
        "maximum": {name: getattr(project.bounds, name) for name in QUANTITIES},
        "tighten": [
            {
                "limit": limit.name,
                "now": limit.value,
                "try": limit.smaller,
                "worst_case": {name: _as_data(getattr(after, name)) for name in QUANTITIES},
            }
            for limit, after in limits[:3]
        ],
        "budget": {name: getattr(project.settings.budget, name) for name in QUANTITIES},
    }


def _as_data(value: Number) -> dict[str, Any]:
    if isinstance(value, Unbounded):
        return {"most": None, "reason": value.reason, "place": value.place or None, "remedy": value.remedy or None}
    if isinstance(value, float) and not isfinite(value):
        return {"most": None, "reason": "it is too much to count", "place": None, "remedy": BUDGET}
    return {"most": value, "reason": None, "place": None, "remedy": None}
