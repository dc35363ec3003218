"""LD61x: assertions about permissions, and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import did_you_mean

LD610 = Code(
    "LD610",
    "Assertion can't be read",
    "error",
    "An assertion is `never X`, `never X -> Y`, `never Y from X` (each also with `unless asked`) or "
    "`X only after STATE`, where X and Y are names or patterns as in rules.",
    "write it as `never X -> Y` or `X only after STATE`",
    wrong='"permissions": {"assert": ["never main => write_file"]}',
    right='"permissions": {"assert": ["never main -> write_file"]}',
)


def unreadable_assertion(message: str, hint: str) -> Problem:
    """An assertion; its parser gives the reason."""
    return LD610.problem(f"the assertion can't be read: {message}", hint)


LD611 = Code(
    "LD611",
    "Assertion that doesn't hold",
    "error",
    "A chain of calls does what the assertion forbids. The message has the shortest one, with what policy says about "
    "its last call.",
    "deny one of its calls with a rule, take the tool away, or change the assertion",
    wrong='"permissions": {"assert": ["never delete_file"]}',
    right='"permissions": {"assert": ["never delete_file"]},\n  "approvals": {"deny": ["delete_file"]}',
)


def broken_assertion(text: str, chain: Sequence[str], *, ordered: bool, asked: bool) -> Problem:
    """An assertion and the chain that breaks it; `asked` for one that accepts calls a person is asked about."""
    hint = None
    if ordered:
        hint = "give the tool a gate under `states` that requires it, deny the tool, or change the assertion"
    elif asked:
        hint = "ask about the call or deny it with a rule, take the tool away, or change the assertion"
    return LD611.problem(f"`{text}` doesn't hold: {'; '.join(chain)}", hint)


LD612 = Code(
    "LD612",
    "Assertion that can't be proved",
    "warning",
    "Nothing certain breaks the assertion, but something that isn't known before a run may: the tools of a server, "
    "code that calls names it computes, commands, tools that declare nothing, a policy function. `--strict` makes it "
    "count as an error.",
    "deny the call with a rule, or make what is unknown known",
    wrong='"permissions": {"assert": ["never files.write(src/**)"]}',
    right='"permissions": {"assert": ["never files.write(src/**) unless asked"]}',
)


def unproved_assertion(text: str, reason: str, chain: Sequence[str]) -> Problem:
    """An assertion, why it can't be proved, and the chain that may break it."""
    return LD612.problem(f"`{text}` can't be proved, because {reason}: {'; '.join(chain)}")


LD613 = Code(
    "LD613",
    "Assertion that says nothing",
    "warning",
    "Another assertion says the same already, so a reader looks for a difference that isn't there.",
    "remove one of them",
    wrong='"permissions": {"assert": ["never shell", "never main -> shell"]}',
    right='"permissions": {"assert": ["never shell"]}',
)


def repeated_assertion(text: str, other: str) -> Problem:
    """An assertion that another one contains."""
    return LD613.problem(f"`{text}` says nothing more than `{other}`, which comes before it")


LD614 = Code(
    "LD614",
    "Assertion about an unknown name",
    "error",
    "No agent, flow, function, tool, toolset or state has the name, so the assertion would hold whatever the project "
    "does.",
    "correct the name, or remove the assertion",
    wrong='"never mian -> delet_file"',
    right='"never main -> delete_file"',
)


def assertion_about_nothing(name: str, known: Iterable[str], *, agent: bool = False) -> Problem:
    """A name, or a pattern, that nothing in the project has; with `agent`, that no agent has."""
    kind = "agent" if agent else "agent, flow, function, tool or toolset"
    return LD614.problem(f"no {kind} is called `{name}`", did_you_mean(name, known))


def assertion_about_argument(name: str, tool: str, known: Iterable[str]) -> Problem:
    """An argument that no tool of an assertion has."""
    names = list(known)
    hint = did_you_mean(name, names) or f"its arguments are {', '.join(names) or 'none'}"
    return LD614.problem(f"`{name}` is not an argument of `{tool}`", hint)


def unknown_state(state: str, known: Iterable[str]) -> Problem:
    """A state that no gate mentions, and no gated tool either."""
    names = list(known)
    hint = did_you_mean(state, names) or (
        f"the gates know {', '.join(names[:8])}" if names else "declare gates under `states` in an agent's file"
    )
    return LD614.problem(f"no gate knows the state `{state}`", hint)


LD615 = Code(
    "LD615",
    "Bound exceeded",
    "warning",
    "The worst case of a run exceeds the maximum under `bounds`. `--strict` makes it count as an error; `llm-do check "
    "--bounds` shows what the worst case is made of.",
    "lower the limit that the message names, or raise the maximum",
    wrong='"bounds": {"requests": 10}',
    right='"bounds": {"requests": 10},\n  "runtime": {"budget": {"requests": 10}}',
)


def bound_exceeded(what: str, limit: str, worst: str, advice: str | None) -> Problem:
    """A maximum, and the worst case that exceeds it."""
    return LD615.problem(f"a run may take {worst} {what}, more than the {limit} under `bounds`", advice)
