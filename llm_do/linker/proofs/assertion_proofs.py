"""Prove assertions about a project: no chain of calls does what they forbid, or here is the shortest that does.

A proof follows the graph of calls (`call_graph`) from the entry, and from whatever else can be started; along a chain
policy decides about each call of a model (`chain_policy`). A chain that only may exist refutes nothing, and keeps the
assertion from being proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.linker.proofs.call_graph import ANYTHING, CallGraph, Edge, Node
from llm_do.linker.proofs.chain_policy import ChainPolicy, Place
from llm_do.policy.assertions import Never, Term
from llm_do.policy.values import CALLS, Effect

__all__ = ["Outcome", "Proof", "Prover", "Step", "is_called"]

Outcome = Literal["holds", "broken", "unproved"]


@frozen
class Step:
    """One step of a chain of calls.

    Args:
        who: Who acts.
        how: What it does, such as `calls`.
        what: What it does it to.
        note: What policy says about it, or where the code is.
    """

    who: str
    how: str
    what: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.who} {self.how} {self.what}" + (f" ({self.note})" if self.note else "")


@frozen
class Proof:
    """What is known about an assertion.

    Args:
        text: The assertion.
        outcome: Whether it holds, is broken, or can't be proved.
        chain: The shortest chain of calls that breaks it, or may break it.
        reason: Why it can't be proved.
        idle: Whether it holds only since nothing that it forbids exists where it begins.
    """

    text: str
    outcome: Outcome
    chain: Sequence[Step] = ()
    reason: str = ""
    idle: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        chain = [{"who": each.who, "how": each.how, "what": each.what, "note": each.note} for each in self.chain]
        return {"assert": self.text, "outcome": self.outcome, "chain": chain, "reason": self.reason or None}


@dataclass(slots=True)
class _Chain:
    """A chain of calls that is being followed.

    `passed` is the number of the assertion's terms that it has passed, `why` the reason for which it only may exist.
    """

    place: Place
    above: _Chain | None = None
    steps: tuple[Step, ...] = ()
    passed: int = 0
    why: str = ""

    def all_steps(self) -> tuple[Step, ...]:
        """Return the steps from the beginning."""
        found: list[Step] = []
        chain: _Chain | None = self
        while chain is not None:
            found[:0] = chain.steps
            chain = chain.above
        return tuple(found)


class Prover:
    """Proves the assertions of one project; what it finds out about calls is shared by all of them."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.policy = ChainPolicy(graph)

    def prove(self, assertion: Never) -> Proof:
        """Prove that no chain of calls does what the assertion forbids."""
        search = _Search(self, assertion, sure=True)
        if (proof := search.run()) is not None:
            return proof
        if not search.doubtful:
            return Proof(assertion.text, "holds", idle=not search.concerned)
        wider = _Search(self, assertion, sure=False)
        if (proof := wider.run()) is not None:
            return proof
        return Proof(assertion.text, "holds", idle=not search.concerned and not wider.concerned)

    @cached_property
    def starts(self) -> tuple[Node, ...]:
        """What a run can begin with: the entry, then whatever no call of the entry leads to."""
        graph = self.graph
        reached = graph.reachable(graph.entry)
        others = [node for node in graph.named if node not in reached and node.kind != "function"]
        called = {edge.target for node in others for edge in graph.edges(node) if edge.target != node}
        return (graph.entry, *sorted(others, key=lambda node: node in called))

    def places(self) -> Iterator[tuple[Place, tuple[Step, ...], str]]:
        """Yield every place that a chain of calls can lead to, with the shortest chain and why it only may exist."""
        everywhere = _Search(self, None, sure=False)
        for chain in everywhere.chains():
            yield chain.place, chain.all_steps(), chain.why


class _Search:
    """Follows every chain of calls, the shortest first; with `sure`, only those that certainly exist."""

    def __init__(self, prover: Prover, assertion: Never | None, *, sure: bool) -> None:
        self.graph, self.policy, self.starts = prover.graph, prover.policy, prover.starts
        self.assertion = assertion
        self.sources = assertion.sources if assertion is not None else ()
        self.sure = sure
        self.concerned = False
        self.doubtful = False
        limit: tuple[Effect, ...] = ("allow", "ask")
        self.limit = ("allow",) if assertion is not None and assertion.unless_asked else limit
        self._waiting: list[_Chain] = []
        self._seen: set[tuple[object, ...]] = set()

    def run(self) -> Proof | None:
        """Return the proof that a chain breaks the assertion, or may; None if there is no such chain."""
        for chain in self.chains():
            if chain.passed == len(self.sources) and (proof := self._break(chain)) is not None:
                return proof
            for edge in self._edges(chain.place.node):
                if (proof := self._break_by(chain, edge)) is not None:
                    return proof
        return None

    def chains(self) -> Iterator[_Chain]:
        """Yield the chains to every place."""
        for start in self.starts:
            self._enter(_Chain(Place(start, (start.name,))))
        for chain in self._waiting:
            yield chain
            for edge in self._edges(chain.place.node):
                if (after := self._follow(chain, edge)) is not None:
                    self._enter(after)

    def _edges(self, node: Node) -> Iterator[Edge]:
        edges = self.graph.edges(node)
        if not self.sure or all(edge.target != ANYTHING for edge in edges):
            return iter(edges)
        self.doubtful = True
        return (edge for edge in edges if edge.target != ANYTHING)

    def _enter(self, chain: _Chain) -> None:
        """Add a chain to those to follow, and again for each further term that it passes where it is."""
        place = chain.place
        key = (place.node, self.policy.path_key(place.path), chain.passed)
        if key not in self._seen:
            self._seen.add(key)
            self._waiting.append(chain)
        if chain.passed < len(self.sources):
            steps = self._pass(self.sources[chain.passed], place)
            if steps is not None:
                self._enter(_Chain(place, chain, steps, chain.passed + 1, chain.why))

    def _pass(self, term: Term, place: Place) -> tuple[Step, ...] | None:
        """Return the steps with which a chain passes a term at a place, None if it doesn't."""
        node = place.node
        if node.kind == "generated" if term.generated else is_called(term, node):
            return ()
        if term.pattern is None or node.kind not in ("agent", "generated"):
            return None
        for tool in self.policy.available(node):
            if tool.kind in CALLS:
                continue  # what is called is a place of its own
            for verdict in self.policy.judge(term.pattern, tool, place):
                if verdict.possible != "deny":
                    return (Step(str(node), "calls", verdict.call, "and reads the result"),)
        if self.policy.hidden_toolset(place, term.pattern, ("allow", "ask")) is not None:
            self.doubtful = True
            if self.sure:
                return None
            return (Step(str(node), "may call", term.text, "a tool that is only known in a run"),)
        return None

    def _follow(self, chain: _Chain, edge: Edge) -> _Chain | None:
        """Return the chain with one more call, None if policy denies it."""
        place = chain.place
        if self.policy.passes(place, edge) == "deny":
            return None
        note = f"{edge.place.file}:{edge.place.line}" if edge.place is not None and edge.place.line else ""
        step = Step(str(place.node), edge.how, str(edge.target), note)
        why = chain.why
        if edge.target == ANYTHING and not why:
            why = f"the code of {place.node}" if place.node.kind == "function" else f"{place.node} {edge.how}"
            why += (f" ({note})" if note else "") + (
                " may call any name" if place.node.kind == "function" else " any name"
            )
        return _Chain(Place(edge.target, edge.path_after(place.path)), chain, (step,), chain.passed, why)

    def _break_by(self, chain: _Chain, edge: Edge) -> Proof | None:
        """Return the proof that an edge calls the agent, flow or function that must not be called."""
        assertion = self.assertion
        if assertion is None or chain.passed < len(self.sources) or not is_called(assertion.target, edge.target):
            return None
        after = self._follow(chain, edge)
        self.concerned = True
        if after is None or self.policy.passes(chain.place, edge) not in self.limit:
            return None
        return Proof(assertion.text, "unproved" if after.why else "broken", after.all_steps(), after.why)

    def _break(self, chain: _Chain) -> Proof | None:
        """Return the proof that a call of the node at the end of a chain breaks the assertion, or may."""
        assertion, place = self.assertion, chain.place
        pattern = assertion.target.pattern if assertion is not None else None
        if assertion is None or pattern is None or place.node.kind not in ("agent", "generated"):
            return None
        unsure: tuple[Step, str] | None = None
        function = self.graph.project.policy.function
        for tool in self.policy.available(place.node):
            if tool.kind in CALLS and not pattern.names_tool(tool.name):
                continue  # what is called is a place of its own
            for verdict in self.policy.judge(pattern, tool, place):
                self.concerned = True
                step = Step(str(place.node), "calls", verdict.call, verdict.decision.reason)
                certain = verdict.known in self.limit and not chain.why
                if certain and function is None:
                    return Proof(assertion.text, "broken", (*chain.all_steps(), step))
                if certain:
                    unsure = unsure or (step, f"only the policy function {function} could deny it")
                elif verdict.known in self.limit or verdict.possible in self.limit:
                    unsure = unsure or (replace(step, what=tool.name, note=""), chain.why or verdict.reason)
        self.doubtful |= unsure is not None or bool(self.graph.tools(place.node).open)
        return None if self.sure else self._unsure(chain, assertion, unsure)

    def _unsure(self, chain: _Chain, assertion: Never, found: tuple[Step, str] | None) -> Proof | None:
        """Return the proof that a chain may break the assertion."""
        place, pattern = chain.place, assertion.target.pattern
        if found is None and pattern is not None:
            origin = self.policy.hidden_toolset(place, pattern, self.limit)
            if origin is not None:
                step = Step(str(place.node), "has tools of", origin.name)
                found = (step, f"the tools of {origin.name} are only known in a run")
        if found is None:
            return None
        return Proof(assertion.text, "unproved", (*chain.all_steps(), found[0]), found[1])


def is_called(term: Term, node: Node) -> bool:
    """Whether a term names an agent, a flow or a function."""
    pattern = term.pattern
    if pattern is None or pattern.action is not None or pattern.primary is not None or pattern.named:
        return False
    if node.kind not in ("agent", "flow", "function") or pattern.agent is not None or pattern.agent_path is not None:
        return False
    return pattern.tool.matches(node.name)
