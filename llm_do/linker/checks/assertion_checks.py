"""Link and check the manifest's assertions: read them, look up what they name, and prove them.

What they mean is in `llm_do.policy.assertions`; how they are proved in `llm_do.linker.proofs.assertion_proofs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from llm_do.diagnostics.codes import proofs as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.flow_expression import offset_in_json
from llm_do.linker.analysis.inventory import KnownTool
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.analysis.rule_subjects import unknown_caller
from llm_do.linker.proofs.assertion_proofs import Proof, Prover
from llm_do.linker.proofs.call_graph import CallGraph
from llm_do.linker.proofs.call_verdicts import names_tool
from llm_do.linker.proofs.state_proofs import known_states, machines_of, prove_order
from llm_do.policy.assertions import AssertionSyntaxError, Never, OnlyAfter, Term, parse_assertion
from llm_do.project.flow_spec import every_agent
from llm_do.project.project import DeclaredAssertion
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE

if TYPE_CHECKING:
    from llm_do.formats.syntax.source import Node
    from llm_do.linker.sources.project_files import ProjectFiles
    from llm_do.project.project import Project

__all__ = ["check_assertions", "link_assertions", "prove_assertions"]

_KEYS = ("permissions", "assert")


def link_assertions(files: ProjectFiles, names: Names) -> tuple[DeclaredAssertion, ...]:
    """Read the manifest's assertions and report those that can't be read."""
    if files.manifest is None or files.node is None:
        return ()
    found: list[DeclaredAssertion] = []
    for index, text in enumerate(files.manifest.permissions.assertions):
        node = files.node.at((*_KEYS, index))
        if node is None:
            continue

        def place(start: int, end: int, node: Node = node) -> Location:
            first, last = offset_in_json(node, start), offset_in_json(node, end)
            return node.source.place(first, max(last, first + 1))

        try:
            assertion = parse_assertion(text)
        except AssertionSyntaxError as error:
            names.report(problems.unreadable_assertion(error.message, error.hint), place(error.start, error.end))
            continue
        places = [place(term.start, term.end) for term in assertion.terms]
        if isinstance(assertion, OnlyAfter):
            places.append(place(assertion.state_start, assertion.state_start + len(assertion.state)))
        found.append(DeclaredAssertion(assertion, node.place, tuple(places)))
    return tuple(found)


def prove_assertions(project: Project) -> list[Proof]:
    """Return what is known about each of a project's assertions."""
    prover = Prover(CallGraph(project))
    return [_prove(prover, declared) for declared in project.assertions]


def _prove(prover: Prover, declared: DeclaredAssertion) -> Proof:
    assertion = declared.assertion
    return prover.prove(assertion) if isinstance(assertion, Never) else prove_order(prover, assertion)


def check_assertions(project: Project) -> list[Diagnostic]:
    """Find assertions that don't hold, that can't be proved, and that are about nothing."""
    if not project.assertions:
        return []
    prover = Prover(CallGraph(project))
    known = _Known(project, prover.graph)
    found: list[Diagnostic] = []
    before: list[DeclaredAssertion] = []
    for declared in project.assertions:
        text = declared.assertion.text
        faults = list(known.faults(declared))
        found += faults
        other = next((each.assertion.text for each in before if _contains(each, declared)), None)
        before.append(declared)
        if other is not None:
            found.append(problems.repeated_assertion(text, other).at(declared.place))
        elif not faults:
            proof = _prove(prover, declared)
            chain = [str(step) for step in proof.chain]
            if proof.outcome == "broken":
                ordered = isinstance(declared.assertion, OnlyAfter)
                asked = isinstance(declared.assertion, Never) and declared.assertion.unless_asked
                problem = problems.broken_assertion(text, chain, ordered=ordered, asked=asked)
                found.append(problem.at(declared.place))
            elif proof.outcome == "unproved":
                found.append(problems.unproved_assertion(text, proof.reason, chain).at(declared.place))
    return found


def _contains(one: DeclaredAssertion, other: DeclaredAssertion) -> bool:
    """Whether an assertion forbids all that another one does, as far as their words show."""
    first, second = one.assertion, other.assertion
    if isinstance(first, OnlyAfter):
        return isinstance(second, OnlyAfter) and (first.target.text, first.state) == (second.target.text, second.state)
    if [term.text for term in first.terms[-1:]] != [term.text for term in second.terms[-1:]]:
        return False
    if isinstance(second, OnlyAfter):
        return not first.sources and not first.unless_asked
    same = not first.sources or [term.text for term in first.sources] == [term.text for term in second.sources]
    return same and (second.unless_asked or not first.unless_asked)


@dataclass
class _Known:
    """The names that assertions may use."""

    project: Project
    graph: CallGraph

    @cached_property
    def tools(self) -> list[KnownTool]:
        """The tools of every agent, each kind once."""
        found: dict[tuple[object, ...], KnownTool] = {}
        for node in self.graph.named:
            for tool in self.graph.tools(node).tools:
                found.setdefault((tool.name, tool.tool, tool.toolset), tool)
        return list(found.values())

    @cached_property
    def names(self) -> list[str]:
        """Every name."""
        shipped = [tool for tools in (*BUILTINS.values(), *CONFIGURABLE.values()) if tools for tool in tools]
        own = [name for tool in self.tools for name in (tool.name, tool.tool, tool.toolset) if name]
        every = [*self.project.registry, self.project.entry.name, *own, *BUILTINS, *shipped]
        return list(dict.fromkeys(every))

    def faults(self, declared: DeclaredAssertion) -> Iterator[Diagnostic]:
        """Find names of an assertion that don't exist."""
        assertion = declared.assertion
        for term, place in zip(assertion.terms, declared.places, strict=False):
            yield from (problem.at(place) for problem in self._term_faults(term))
        if isinstance(assertion, OnlyAfter):
            states = self._states(assertion)
            if assertion.state not in states:
                yield problems.unknown_state(assertion.state, states).at(declared.places[-1])

    def _term_faults(self, term: Term) -> Iterator[problems.Problem]:
        pattern = term.pattern
        if pattern is None:
            return
        agents = [spec.name for spec, _ in every_agent(self.project.registry)]
        if (name := unknown_caller(pattern, self.project.registry)) is not None:
            yield problems.assertion_about_nothing(name, agents, agent=True)
        if pattern.action is not None:
            return
        named = [tool for tool in self.tools if names_tool(pattern, tool)]
        if not named and not any(pattern.tool.matches(name) for name in self.names) and not self._may_come(term):
            shown = pattern.tool.literal or term.text
            yield problems.assertion_about_nothing(shown, self.names)
        arguments = [name for tool in named for name in tool.facts.arguments or ()]
        if named and all(tool.facts.arguments is not None for tool in named):
            for name, _ in pattern.named:
                if name not in arguments:
                    yield problems.assertion_about_argument(name, named[0].name, dict.fromkeys(arguments))

    def _may_come(self, term: Term) -> bool:
        """Whether a tool that is only known in a run may be meant."""
        pattern = term.pattern
        origins = [origin for node in self.graph.named for origin in self.graph.tools(node).open]
        if pattern is None or not origins:
            return False
        literal = pattern.tool.literal
        known = [tool.name for tool in self.tools]
        return literal is None or may_be_listed(literal, known, origins, self.project.registry, own=True)

    def _states(self, assertion: OnlyAfter) -> Sequence[str]:
        """The states that gates know, and the tools that they are of."""
        states: dict[str, None] = {}
        for spec, _ in every_agent(self.project.registry):
            machines = machines_of(spec, self.project.registry, {})
            states |= dict.fromkeys(known_states(machines))
        return list(states)
