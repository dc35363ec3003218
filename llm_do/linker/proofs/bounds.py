"""The worst case of one run: how many model requests, tool calls and US dollars it may take, and which limit decides.

Bounds follow the graph of calls (`call_graph`), with the limits of the manifest and of agents. What can't be bounded
says why, and where a limit would help. They are never too low: whatever the models answer, a run stays within them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.linker.proofs.call_graph import ANYTHING, CallGraph, Edge, Node
from llm_do.models.aliases import resolve_aliases
from llm_do.models.providers.known_prices import worst_price
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.project import Budget, Project, RuntimeSettings

if TYPE_CHECKING:
    from llm_do.project.project import Bounds

__all__ = ["WORDS", "Limit", "Total", "Unbounded", "bounds_data", "exceeded", "worst_case"]

MAX_HANDOFFS = 10
"""The most handoffs in one call of an agent outside a handoff flow."""

MAX_TASKS = 50
"""The most tasks of a plan."""

WORDS: Mapping[str, str] = {"requests": "model requests", "tool_calls": "tool calls", "cost_usd": "US dollars"}
"""What is bounded, as people call it."""

QUANTITIES = tuple(WORDS)

_DEEPEST = 100
"""The deepest calls that are followed."""

_MOST_TRIED = 8
"""The most agents whose own limits are tried."""


@frozen
class Unbounded:
    """Why there is no bound, and what would be one."""

    reason: str
    place: str = ""
    remedy: str = ""


@frozen
class Total:
    """A worst case: numbers, or why there is none.

    Args:
        requests: Model requests, retries included.
        tool_calls: Tool calls that run.
        cost_usd: US dollars.
        width: Model requests that may be in flight at once.
        calls: Calls of agents.
    """

    requests: int | Unbounded = 0
    tool_calls: int | Unbounded = 0
    cost_usd: float | Unbounded = 0.0
    width: int | Unbounded = 0
    calls: int | Unbounded = 0

    def __add__(self, other: Total) -> Total:
        """Return the worst case of both, one after the other or side by side."""
        return Total(*(_plus(one, two) for one, two in _pairs(self, other)))  # pyright: ignore[reportArgumentType]

    def times(self, count: int) -> Total:
        """Return the worst case of doing it `count` times."""
        return Total(*(_times(one, count) for one in _values(self)))  # pyright: ignore[reportArgumentType]

    def larger(self, other: Total) -> Total:
        """Return the larger of each number."""
        return Total(*(_larger(one, two) for one, two in _pairs(self, other)))  # pyright: ignore[reportArgumentType]

    @classmethod
    def unbounded(cls, why: Unbounded) -> Total:
        """Return a worst case without any bound."""
        return cls(why, why, why, why, why)


_Number = int | float | Unbounded


def _values(total: Total) -> tuple[_Number, ...]:
    return (total.requests, total.tool_calls, total.cost_usd, total.width, total.calls)


def _pairs(one: Total, two: Total) -> Iterator[tuple[_Number, _Number]]:
    return zip(_values(one), _values(two), strict=True)


def _plus(one: _Number, two: _Number) -> _Number:
    return one if isinstance(one, Unbounded) else two if isinstance(two, Unbounded) else one + two


def _times(one: _Number, count: int) -> _Number:
    if not count:
        return 0
    try:
        return one if isinstance(one, Unbounded) else one * count
    except OverflowError:
        return inf


def _larger(one: _Number, two: _Number) -> _Number:
    return one if isinstance(one, Unbounded) else two if isinstance(two, Unbounded) else max(one, two)


def _at_most(one: _Number, limit: _Number | None) -> _Number:
    if limit is None or isinstance(limit, Unbounded):
        return one
    return limit if isinstance(one, Unbounded) else min(one, limit)


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
    change: Callable[[_Limits, int], _Limits]


@frozen
class _Limits:
    """The limits to compute with: the project's, or others."""

    settings: RuntimeSettings
    max_steps: Mapping[str, int] = field(default_factory=dict[str, int])
    max_handoffs: Mapping[str, int] = field(default_factory=dict[str, int])


def worst_case(project: Project, graph: CallGraph | None = None, limits: _Limits | None = None) -> Total:
    """Return the worst case of one run of a project's entry."""
    graph = graph or CallGraph(project)
    limits = limits or _Limits(project.settings)
    found = _Worst(project, graph, limits).entry()
    return _capped(found, limits.settings.budget, _Worst(project, graph, limits))


def _capped(found: Total, budget: Budget, worst: _Worst) -> Total:
    """Return a worst case within the run's budget."""
    requests = _at_most(found.requests, budget.requests)
    tool_calls = _at_most(found.tool_calls, budget.tool_calls)
    dearest = worst.dearest_request()
    if budget.descendants is not None and not isinstance(roots := worst.root_calls(), Unbounded):
        own = worst.largest_call()
        requests = _at_most(requests, _times(own.requests, roots + budget.descendants))
        tool_calls = _at_most(tool_calls, _times(own.tool_calls, roots + budget.descendants))
    cost: _Number = 0.0 if dearest == 0 else found.cost_usd
    if not isinstance(requests, Unbounded):
        cost = _at_most(cost, _times(dearest, int(requests)))
    if budget.cost_usd is not None and not isinstance(dearest, Unbounded):
        # What requests with files or a provider's tools cost isn't known before; those in flight may exceed the budget.
        in_flight = _at_most(found.width, requests)
        over = _times(dearest, int(in_flight)) if not isinstance(in_flight, Unbounded) else in_flight
        cost = _at_most(cost, _plus(budget.cost_usd, over))
    return replace(found, requests=requests, tool_calls=tool_calls, cost_usd=cost)


@dataclass
class _Worst:
    """Computes worst cases of calls by depth."""

    project: Project
    graph: CallGraph
    limits: _Limits
    _known: dict[tuple[Node, int], Total] = field(default_factory=dict[tuple[Node, int], Total])
    _chains: dict[tuple[Node, int, int], Total] = field(default_factory=dict[tuple[Node, int, int], Total])
    _prices: dict[str, float | None] = field(default_factory=dict[str, "float | None"])

    def entry(self) -> Total:
        """Return the worst case of the entry."""
        entry = self.graph.entry
        return self.of(entry, 1 if entry.kind == "agent" else 0)

    def of(self, node: Node, depth: int) -> Total:
        """Return the worst case of one call at a depth; the entry agent is at 1."""
        if depth > self.limits.settings.max_depth:
            return Total()  # such a call fails
        if depth > _DEEPEST:
            why = Unbounded(f"calls may nest deeper than {_DEEPEST} levels", node.name, "lower runtime.max_depth")
            return Total.unbounded(why)
        key = (node, depth)
        if key not in self._known:
            if node.kind == "flow":
                self._known[key] = self._flow(node, depth)
            elif node.kind == "function":
                self._known[key] = self._code(node, depth)
            elif node.kind == "anything":
                self._known[key] = Total.unbounded(
                    Unbounded("code may call any name, any number of times", "", _BUDGET)
                )
            else:
                self._known[key] = self._chain(node, depth, self._handoffs(None))
        return self._known[key]

    def _handoffs(self, flow: FlowSpec | None) -> int:
        return self.limits.max_handoffs.get(flow.name, flow.max_handoffs) if flow is not None else MAX_HANDOFFS

    def _chain(self, node: Node, depth: int, handoffs: int) -> Total:
        """Return the worst case of an agent and of those it hands over to: the worst of all routes."""
        if (node, depth, handoffs) in self._chains:
            return self._chains[node, depth, handoffs]
        reached = {node: None}
        nodes = [node]
        for each in nodes:
            following = [edge.target for edge in self._handing_over(each) if edge.target not in reached]
            reached |= dict.fromkeys(following)
            nodes += dict.fromkeys(following)
        best = {each: self._agent(each, depth) for each in nodes}
        own = dict(best)
        for _ in range(handoffs if len(nodes) > 1 else 0):
            longer: dict[Node, Total] = {}
            for each in nodes:
                after = Total()
                for edge in self._handing_over(each):
                    after = after.larger(best[edge.target])
                width = _larger(own[each].width, after.width)
                longer[each] = replace(own[each] + after, width=width)  # pyright: ignore[reportArgumentType]
            best = longer
        self._chains |= {(each, depth, handoffs): total for each, total in best.items()}
        return best[node]

    def _handing_over(self, node: Node) -> Iterator[Edge]:
        return (edge for edge in self.graph.edges(node) if edge.moves)

    def _agent(self, node: Node, depth: int) -> Total:
        """Return the worst case of one agent's run, without those it hands over to."""
        own = self.own(node)
        calls = self.calls_per_run(node)
        below = Total()
        for edge in self.graph.edges(node):
            if edge.moves:
                continue
            if edge.target == ANYTHING:
                where = f"{edge.place.file}:{edge.place.line}" if edge.place is not None else node.name
                why = Unbounded(f"{node} {edge.how} any name", where, _BUDGET)
                return Total.unbounded(why)
            if edge.tool is None:  # a provider of instructions, once a request at most
                own += self.of(edge.target, depth).times(self.steps(node))
                continue
            # A tool's code calls as its agent does.
            below = below.larger(self.of(edge.target, depth if edge.target.kind == "function" else depth + 1))
        total = own + below.times(calls)
        at_once = _times(below.width, min(self.limits.settings.max_calls_per_response, calls))
        return replace(total, width=_larger(1, at_once))

    def steps(self, node: Node) -> int:
        """Return the most model requests of an agent's run, without retries."""
        spec = self.graph.spec(node)
        own = self.limits.max_steps.get(node.name, spec.max_steps if spec is not None else None)
        return own if own is not None else self.limits.settings.max_steps

    def calls_per_run(self, node: Node) -> int:
        """Return the most tool calls of an agent's run; none without tools."""
        found = self.graph.tools(node)
        if not found.tools and not found.open:
            return 0
        return self.steps(node) * self.limits.settings.max_calls_per_response

    def own(self, node: Node) -> Total:
        """Return what one run of an agent takes by itself."""
        spec, steps = self.graph.spec(node), self.steps(node)
        models = self._models(spec)
        requests = steps * (self.limits.settings.max_retries + 1) * len(models)
        summaries = steps if spec is not None and self._summarises(spec, node) else 0
        cost = self._cost(node, spec, models)
        costs = _times(cost, requests + summaries)
        return Total(requests + summaries, self.calls_per_run(node), costs, 1, 1)  # pyright: ignore[reportArgumentType]

    def _summarises(self, spec: AgentSpec, node: Node) -> bool:
        thread = self.project.threads.config.compaction if node == self.graph.entry else None
        settings = thread if thread is not None else spec.compaction
        return settings is not None and "summarization" in (settings.get("strategies") or ("summarization",))

    def _models(self, spec: AgentSpec | None) -> tuple[object, ...]:
        """Return the models that an agent's requests are tried with."""
        chosen = spec.model if spec is not None and spec.model is not None else self.project.model
        if isinstance(chosen, str | list | tuple):
            return self._resolved(chosen)
        return (chosen,)

    def _resolved(self, names: str | Sequence[str]) -> tuple[str, ...]:
        try:
            return resolve_aliases(names, self.project.model_aliases, self.project.root)
        except ModelUnavailableError:  # a cycle, which is reported where it is declared
            return (names,) if isinstance(names, str) else tuple(names)

    def _cost(self, node: Node, spec: AgentSpec | None, models: tuple[object, ...]) -> float | Unbounded:
        """Return what one request may cost at most."""
        summary = (spec.compaction or {}).get("summary_model") if spec is not None else None
        worst = 0.0
        for model in (*models, *(self._resolved(summary) if summary else ())):
            if model is None:
                return Unbounded(f"no model is named for {node}", _place(spec), "name one with `model`")
            if not isinstance(model, str):
                system = str(getattr(model, "system", ""))
                if system in ("test", "function", "script", "local"):
                    continue
                return Unbounded(f"the model of {node} is an object, whose price isn't known", _place(spec), _DOLLARS)
            price = self._price(model, self._max_tokens(spec))
            if price is None:
                return Unbounded(f"the price or the context window of {model} isn't known", _place(spec), _TOKENS)
            worst = max(worst, price)
        return worst

    def _price(self, model: str, max_tokens: int | None) -> float | None:
        key = f"{model} {max_tokens}"
        if key not in self._prices:
            self._prices[key] = worst_price(model, max_tokens)
        return self._prices[key]

    def _max_tokens(self, spec: AgentSpec | None) -> int | None:
        settings = {**self.project.model_settings, **((spec.model_settings or {}) if spec is not None else {})}
        found = spec.max_tokens if spec is not None and spec.max_tokens is not None else settings.get("max_tokens")
        return found if isinstance(found, int) else None

    def _flow(self, node: Node, depth: int) -> Total:
        flow = self.graph.flow(node)
        if flow is None:
            return Total()
        total = Total()
        edges = self.graph.edges(node)
        for number, edge in enumerate(edges):
            if flow.mode == "handoff":
                found = self._chain(edge.target, depth + 1, self._handoffs(flow))
                total = total.larger(found)
            else:
                found = self.of(edge.target, depth + 1)
                total += found.times(MAX_TASKS if flow.mode == "plan" and number == 1 else edge.times)
        return total

    def _code(self, node: Node, depth: int) -> Total:
        """Return the worst case of a function, by the calls in its source."""
        calls = self.graph.calls(node)
        if calls.unknown is not None:
            where = f"{calls.unknown.file}:{calls.unknown.line}" if calls.unknown.line else ""
            return Total.unbounded(Unbounded(f"{node} calls names that only its code knows", where, _BUDGET))
        if calls.repeated is not None:
            where = f"{calls.repeated.file}:{calls.repeated.line}"
            return Total.unbounded(Unbounded(f"{node} calls in a loop, or more than once", where, _BUDGET))
        total = Total()
        for edge in self.graph.edges(node):
            total += self.of(edge.target, depth + 1)
        return total

    def dearest_request(self) -> float | Unbounded:
        """Return what the dearest request of a run may cost."""
        worst: float | Unbounded = 0.0
        for node in self.graph.reachable(self.graph.entry):
            if node.kind in ("agent", "generated"):
                spec = self.graph.spec(node)
                cost = self._cost(node, spec, self._models(spec))
                if isinstance(cost, Unbounded):
                    return cost
                worst = max(worst, cost)
        return worst

    def largest_call(self) -> Total:
        """Return the largest run of one agent by itself."""
        found = Total()
        for node in self.graph.reachable(self.graph.entry):
            if node.kind in ("agent", "generated"):
                found = found.larger(self.own(node))
        return found

    def root_calls(self) -> int | Unbounded:
        """Return the calls that the entry makes itself, which aren't descendants of anything."""
        entry = self.graph.entry
        if entry.kind == "agent":
            return 1 + (MAX_HANDOFFS if any(True for _ in self._handing_over(entry)) else 0)
        flow = self.graph.flow(entry)
        if flow is not None:
            steps = sum(edge.times for edge in self.graph.edges(entry)) + (MAX_TASKS if flow.mode == "plan" else 0)
            return steps * (1 + max(MAX_HANDOFFS, self._handoffs(flow)))
        calls = self.graph.calls(entry)
        if calls.repeated is not None or calls.unknown is not None:
            return Unbounded("the entry calls in a loop")
        return len(calls.calls) * (1 + MAX_HANDOFFS)


_BUDGET = "set runtime.budget.requests and runtime.budget.tool_calls"
_DOLLARS = "set runtime.budget.cost_usd and name a model with a known price"
_TOKENS = "use a model whose price is known"


def _place(spec: AgentSpec | None) -> str:
    return f"{spec.place.file}:{spec.place.line}" if spec is not None and spec.place is not None else "project.json"


def limits_of(project: Project, graph: CallGraph) -> Iterator[Limit]:
    """Yield the limits that may tighten the worst case, each with a smaller value to try."""
    settings = project.settings
    reached = [node for node in graph.reachable(graph.entry) if node.kind == "agent"]

    def setting(name: str) -> Callable[[_Limits, int], _Limits]:
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
    start = _Limits(project.settings)
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
        value: _Number = getattr(worst, name)
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


def _as_data(value: _Number) -> dict[str, Any]:
    if isinstance(value, Unbounded):
        return {"most": None, "reason": value.reason, "place": value.place or None, "remedy": value.remedy or None}
    if isinstance(value, float) and not isfinite(value):
        return {"most": None, "reason": "it is too much to count", "place": None, "remedy": _BUDGET}
    return {"most": value, "reason": None, "place": None, "remedy": None}
