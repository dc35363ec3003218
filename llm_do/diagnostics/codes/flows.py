"""LD5xx: flows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import closest_match

LD501 = Code(
    "LD501",
    "Malformed flow expression",
    "error",
    "An expression is names joined by `>>` (then) and `|` (beside). Where both meet, parentheses say which names "
    "belong together.",
    "write names joined by `>>` and `|`, such as `a >> (b | c)`",
    wrong='"flow": "draft >> facts | style"',
    right='"flow": "draft >> (facts | style)"',
)


def empty_expression() -> Problem:
    """An expression without a name."""
    return LD501.problem("the expression is empty", "name at least one step")


def empty_group() -> Problem:
    """Parentheses with nothing in them."""
    return LD501.problem("the group is empty", "name its members, or remove it")


def missing_step(before: str | None, after: str) -> Problem:
    """No name behind `before`; without it, none before `after`."""
    where = f"before `{after}`" if before is None else f"after `{before}`"
    return LD501.problem(f"a name is missing {where}")


def missing_operator(name: str) -> Problem:
    """Two steps with nothing between them."""
    return LD501.problem(
        f"an operator is missing before `{name}`", "write `>>` for a next step, `|` for a parallel one"
    )


def unknown_operator(word: str) -> Problem:
    """Something that is neither a name nor an operator."""
    if word == ">":
        return LD501.problem("`>` is not an operator", "write `>>`")
    hint = "write `>>` between steps and `|` between members of a group" if len(word) == 1 else None
    return LD501.problem(f"`{word}` is neither a name nor an operator", hint)


def mixed_operators(first: str, second: str) -> Problem:
    """Two operators without parentheses."""
    hint = "say which belong together: `a >> (b | c)` or `(a >> b) | c`"
    return LD501.problem(f"`{first}` and `{second}` meet without parentheses", hint)


def unopened_group() -> Problem:
    """A `)` too many."""
    return LD501.problem("this `)` closes nothing", "remove it, or open it before")


def unclosed_group() -> Problem:
    """A `(` too many."""
    return LD501.problem("this `(` is never closed", "add a `)`")


def deep_groups(limit: int) -> Problem:
    """Too many parentheses inside each other."""
    return LD501.problem(f"parentheses are nested deeper than {limit}", "make inner groups flows of their own")


def long_step_name(limit: int) -> Problem:
    """A name that no step can have."""
    return LD501.problem(f"a name has at most {limit} characters", "shorten the name")


LD502 = Code(
    "LD502",
    "Duplicate step in a flow",
    "error",
    "A step's name identifies it in paths, results and events, so each name stands in a flow once. To run an agent "
    "again, put it in a flow of its own.",
    "remove one of the two",
    wrong='"flow": "writer >> critic >> writer"',
    right='"flow": "writer >> critic >> rewrite"',
)


def repeated_step(name: str) -> Problem:
    """A name that an expression has twice."""
    hint = "to run it again, put it in a flow of its own and name that flow here"
    return LD502.problem(f"`{name}` is a step of the flow twice", hint)


def repeated_member(name: str) -> Problem:
    """A name that a flow's list has twice."""
    return LD502.problem(f"`{name}` is listed twice")


def ambiguous_member(name: str, flow: str) -> Problem:
    """Two members of a flow made in code that have one name."""
    return LD502.problem(f"two different members of the flow {flow!r} are called {name!r}", "rename one of them")


LD503 = Code(
    "LD503",
    "Flow that runs itself",
    "error",
    "A step of the flow is the flow itself, directly or through others: it would never end.",
    "remove one of the steps",
    wrong='"flow": "b >> one"',
    right='"flow": "b"',
)


def circular_flow(path: Sequence[str]) -> Problem:
    """The flows from one back to itself."""
    return LD503.problem(f"the flow runs itself: {' -> '.join(path)}")


LD504 = Code(
    "LD504",
    "Flow without members",
    "error",
    "A workflow has an expression, a list of members, or both.",
    "give it a `flow` or `agents`",
    wrong='"flows": {"article": {"mode": "workflow"}}',
    right='"flows": {"article": {"mode": "workflow", "flow": "writer"}}',
)


def flow_without_members(flow: str) -> Problem:
    """A flow that has nothing to run."""
    return LD504.problem(f"the flow `{flow}` has no members")


LD505 = Code(
    "LD505",
    "Unreachable member",
    "warning",
    "A workflow lists it but its expression never names it, or no agent of a handoff flow hands over to it: it would "
    "never run.",
    "use it in the flow, or remove it",
    wrong='"flow": "researcher >> writer"',
    right='"flow": "researcher >> stylist >> writer"',
)


def unused_member(name: str) -> Problem:
    """A member that the flow's expression leaves out."""
    return LD505.problem(
        f"the flow lists `{name}`, but its expression never names it", "name it in `flow`, or remove it"
    )


def no_handoff_to(name: str) -> Problem:
    """A member of a handoff flow."""
    hint = "list it in another agent's `handoffs`, or remove it"
    return LD505.problem(f"no agent of the flow hands over to `{name}`", hint)


LD506 = Code(
    "LD506",
    "Handoff out of a flow",
    "error",
    "An agent in a handoff flow lists a target under `handoffs` that is not in the flow.",
    "add the target to the flow's agents",
    wrong='"agents": ["triage"]',
    right='"agents": ["triage", "billing"]',
)


def handoff_outside(agent: str, target: str) -> Problem:
    """An agent of a handoff flow, and whom it hands over to."""
    message = f"`{agent}` hands over to `{target}`, which is not in the flow"
    return LD506.problem(message, f"add `{target}` to the flow's agents")


LD507 = Code(
    "LD507",
    "Tool name clashes with a flow's",
    "error",
    "An agent has a tool named `delegate_to_NAME` or `transfer_to_NAME`, and its team or its `handoffs` give it "
    "another one of that name.",
    "rename the tool, or give its toolset a prefix",
    wrong="tools: [transfer_to_billing]",
    right="tools: [write_to_billing]",
)


def clashing_tool(agent: str, tool: str, origin: object, giver: str) -> Problem:
    """A tool of an agent, where it comes from if that is known, and what gives it another one of the name."""
    shown = f" ({origin})" if origin is not None else ""
    return LD507.problem(f"`{agent}` has a tool called `{tool}`{shown}, and {giver} gives it one of that name")


LD511 = Code(
    "LD511",
    "Malformed condition",
    "error",
    "The conditions of a flow, and the expressions for its lists, are JMESPath: names joined by dots, beginning with "
    "`output` or `outputs`, compared with `==`, `!=`, `<` and `>`, and joined by `&&`, `||` and `!`. Text stands in "
    "single quotes, numbers in backticks.",
    "write an expression such as `output.kind == 'refund'` or `output.score > `5``",
    wrong='"when": "output.kind = refund"',
    right='"when": "output.kind == \'refund\'"',
)


def malformed_condition(reason: str, hint: str | None = None) -> Problem:
    """An expression that can't be parsed."""
    return LD511.problem(f"the condition can't be read: {reason}", hint)


def bare_number(number: str) -> Problem:
    """A number without backticks."""
    return LD511.problem(f"the number {number} needs backticks", f"write `` `{number}` ``")


def long_condition(limit: int) -> Problem:
    """An expression that is too long."""
    return LD511.problem(f"the condition is longer than {limit} characters", "compute it in a function step")


def deep_condition() -> Problem:
    """An expression that is nested too deeply."""
    return LD511.problem("the condition is nested too deeply", "compute it in a function step")


def building_condition(what: str) -> Problem:
    """An expression that makes new data."""
    return LD511.problem(
        f"the condition makes {what}, and may only look at the output", "build new data in a function step"
    )


LD512 = Code(
    "LD512",
    "Condition about what doesn't exist",
    "error",
    "A condition is about `output`, the output of the step before, or `outputs`, the list of those that it joined. "
    "Where their schema is known, each field that a condition reads must be one of its fields: otherwise it would "
    "always be null.",
    "use a field of the output",
    wrong='"when": "output.kid == \'refund\'"',
    right='"when": "output.kind == \'refund\'"',
)


def unknown_root(name: str, *, quoted: bool) -> Problem:
    """A name that is neither `output` nor `outputs`."""
    if quoted:
        hint = f"write text in single quotes: '{name}'"
        return LD512.problem(f'"{name}" in double quotes is a name, and there are only `output` and `outputs`', hint)
    return LD512.problem(
        f"a condition knows only `output` and `outputs`, not `{name}`", f"write `output.{name}`, or '{name}' for text"
    )


def unknown_field(name: str, path: str, known: Iterable[str]) -> Problem:
    """A field that the output's schema doesn't have."""
    names = list(known)
    near = closest_match(name, names)
    hint = f"did you mean `{near}`?" if near is not None else f"its fields are {', '.join(sorted(names)[:10])}"
    return LD512.problem(f"`{path}` has no field `{name}`", hint)


def field_of_scalar(name: str, path: str, kind: str) -> Problem:
    """A field of something that has no fields."""
    what = "text" if kind == "string" else f"a {kind}"
    hint = "give the step before an `output` schema with that field" if path == "output" else None
    return LD512.problem(f"`{path}` is {what}, which has no field `{name}`", hint)


def nothing_joined() -> Problem:
    """`outputs` after a step that has one output."""
    return LD512.problem(
        "the step before joins no outputs",
        "write `output`, or put a `for_each` or parallel members without an `aggregate` before it",
    )


def list_needed(text: str, kind: str, *, joined: bool = False) -> Problem:
    """A `for_each` over what is no list."""
    shown = {"string": "text", "object": "an object"}.get(kind, f"a {kind}")
    hint = "write `outputs` for the list" if joined else "name a field that is a list"
    return LD512.problem(f"`for_each` needs a list, and `{text}` is {shown}", hint)


LD513 = Code(
    "LD513",
    "Malformed steps",
    "error",
    "A workflow has either an expression in `flow` or a list of `steps`. A step is an expression, or an object with "
    "`when` and `then`, `for_each` and `do`, or `repeat`, `until` and `at_most`; they nest 50 levels deep.",
    "say once what runs",
    wrong='"flow": "writer", "steps": ["writer"]',
    right='"steps": ["writer"]',
)


def deep_steps(limit: int) -> Problem:
    """Steps inside each other that are too deep."""
    return LD513.problem(f"steps are nested deeper than {limit}", "make inner steps a flow of their own")


def two_declarations(flow: str) -> Problem:
    """A workflow with both `steps` and `flow`, which says the same."""
    return LD513.problem(f"the flow `{flow}` has both `steps` and `flow`", "omit `flow`")
