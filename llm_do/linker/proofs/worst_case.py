"""`worst_case`: what one run of a project may take at most, calculated along the graph of calls (`call_graph`).

It is never too low: whatever the models answer, a run stays within it. What can't be bounded says why, and what would
be a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.linker.proofs.call_graph import ANYTHING, CallGraph, Edge, Node
from llm_do.linker.proofs.totals import Number, Total, Unbounded, at_most, larger, plus, times
from llm_do.models.aliases import resolve_aliases
from llm_do.models.providers.known_prices import worst_price
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.project import Budget, Project, RuntimeSettings

__all__ = ["BUDGET", "Limits", "worst_case"]

MAX_HANDOFFS = 10
"""The most handoffs in one call of an agent outside a handoff flow."""

MAX_TASKS = 50
"""The most tasks of a plan."""

_DEEPEST = 100
"""The deepest calls that are followed."""

BUDGET = "set runtime.budget.requests and runtime.budget.tool_calls"
_DOLLARS = "set runtime.budget.cost_usd and name a model with a known price"
_TOKENS = "use a model whose price is known"


@frozen
class Limits:
    """The limits to compute with: the project's, or others."""

    settings: RuntimeSettings
    max_steps: Mapping[str, int] = field(default_factory=dict[str, int])
    max_handoffs: Mapping[str, int] = field(default_factory=dict[str, int])


def worst_case(project: Project, graph: CallGraph | None = None, limits: Limits | None = None) -> Total:
    """Return the worst case of one run of a project's entry."""
    graph = graph or CallGraph(project)
    limits = limits or Limits(project.settings)
    found = _Worst(project, graph, limits).entry()
    return _capped(found, limits.settings.budget, _Worst(project, graph, limits))


def _capped(found: Total, budget: Budget, worst: _Worst) -> Total:
    """Return a worst case within the run's budget."""
    requests = at_most(found.requests, budget.requests)
    tool_calls = at_most(found.tool_calls, budget.tool_calls)
    dearest = worst.dearest_request()
    if budget.descendants is not None and not isinstance(roots := worst.root_calls(), Unbounded):
        own = worst.largest_call()
        requests = at_most(requests, times(own.requests, roots + budget.descendants))
        tool_calls = at_most(tool_calls, times(own.tool_calls, roots + budget.descendants))
    cost: Number = 0.0 if dearest == 0 else found.cost_usd
    if not isinstance(requests, Unbounded):
        cost = at_most(cost, times(dearest, int(requests)))
    if budget.cost_usd is not None and not isinstance(dearest, Unbounded):
        # What requests with files or a provider's tools cost isn't known before; those in flight may exceed the budget.
        in_flight = at_most(found.width, requests)
        over = times(dearest, int(in_flight)) if not isinstance(in_flight, Unbounded) else in_flight
        cost = at_most(cost, plus(budget.cost_usd, over))
    return replace(found, requests=requests, tool_calls=tool_calls, cost_usd=cost)


@dataclass
class _Worst:
    """Computes worst cases of calls by depth."""

    project: Project
    graph: CallGraph
    limits: Limits
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
                self._known[key] = Total.unbounded(Unbounded("code may call any name, any number of times", "", BUDGET))
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
                width = larger(own[each].width, after.width)
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
                why = Unbounded(f"{node} {edge.how} any name", where, BUDGET)
                return Total.unbounded(why)
            if edge.tool is None:  # a provider of instructions, once a request at most
                own += self.of(edge.target, depth).times(self.steps(node))
                continue
            # A tool's code calls as its agent does.
            below = below.larger(self.of(edge.target, depth if edge.target.kind == "function" else depth + 1))
        total = own + below.times(calls)
        at_once = times(below.width, min(self.limits.settings.max_calls_per_response, calls))
        return replace(total, width=larger(1, at_once))

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
        costs = times(cost, requests + summaries)
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
            return Total.unbounded(Unbounded(f"{node} calls names that only its code knows", where, BUDGET))
        if calls.repeated is not None:
            where = f"{calls.repeated.file}:{calls.repeated.line}"
            return Total.unbounded(Unbounded(f"{node} calls in a loop, or more than once", where, BUDGET))
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


def _place(spec: AgentSpec | None) -> str:
    return f"{spec.place.file}:{spec.place.line}" if spec is not None and spec.place is not None else "project.json"
