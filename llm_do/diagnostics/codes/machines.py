"""LD410 to LD414: toolkits and states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import did_you_mean

_SHOWN = 10

LD410 = Code(
    "LD410",
    "State that nothing unlocks",
    "warning",
    "Tools need a state that no tool of their toolkit, or of the agent's `states`, enables; most often one of the "
    "two is misspelled. A run that continues from another one may start with it unlocked.",
    "let a tool enable it",
    wrong="  inspect: {enables: [seeen]}",
    right="  inspect: {enables: [seen]}",
)


def unreachable_state(machine: str, state: str, tools: Sequence[str], enabled: Iterable[str]) -> Problem:
    """A state that tools need and nothing enables."""
    verb = "needs" if len(tools) == 1 else "need"
    message = f"nothing in {machine} unlocks the state `{state}`, which `{'` and `'.join(tools)}` {verb}"
    return LD410.problem(message, did_you_mean(state, enabled))


def state_of_toolkit(machine: str, state: str, tools: Sequence[str], tool: str, toolkit: str) -> Problem:
    """The same, where a tool of a toolkit enables a state of that name, which is the toolkit's own."""
    message = unreachable_state(machine, state, tools, ()).message
    hint = f"the toolkit `{toolkit}` has a state of its own: write `{tool}: {{enables: [{state}]}}` here too"
    return LD410.problem(message, hint)


LD411 = Code(
    "LD411",
    "Tool that never becomes available",
    "warning",
    "Whatever is called, the states that the tool requires are never all unlocked while those that it forbids are "
    "locked.",
    "look at what it requires and forbids",
    wrong="  todo_add: {enables: [ready, done]}",
    right="  todo_add: {enables: [ready]}",
)


def never_available(machine: str, tool: str) -> Problem:
    """A tool whose states never come together."""
    return LD411.problem(f"`{tool}` of {machine} can never become available: its states are never unlocked together")


LD412 = Code(
    "LD412",
    "Dead end",
    "warning",
    "Calls can lead to a situation in which no tool of the machine is available, and the model can only answer.",
    "if the work isn't done at that point, make another tool available there",
    wrong="  reopen: {forbids: [closed]}",
    right="  reopen: {requires: [closed], disables: [closed]}",
)


def dead_end(machine: str, path: Sequence[str], unlocked: Iterable[str]) -> Problem:
    """A situation without an available tool, and the calls that lead to it."""
    way = f"after {', '.join(path)}" if path else "in the beginning"
    states = ", ".join(sorted(unlocked))
    return LD412.problem(f"{way} no tool of {machine} is available" + (f" (unlocked: {states})" if states else ""))


LD413 = Code(
    "LD413",
    "Gate of an unknown tool",
    "error",
    "`states` names a tool that the agent doesn't have, so the intended tool would not be gated.",
    "correct the tool's name",
    wrong="  writ_file: {requires: [read]}",
    right="  write_file: {requires: [read]}",
)


def gate_of_unknown_tool(written: str, name: str, tools: Sequence[str]) -> Problem:
    """A gate; `written` is how the file spells the tool, `name` its name on the wire."""
    hint = did_you_mean(name, tools) or (f"it has {', '.join(tools[:_SHOWN])}" if tools else "it has no tools")
    return LD413.problem(f"`states` names the tool `{written}`, which the agent doesn't have", hint)


LD414 = Code(
    "LD414",
    "Unusable toolkit",
    "error",
    "A tool of the toolkit names a filter that doesn't exist, or has no schema.",
    "give every parameter a type that JSON can hold, such as str, int or a pydantic model",
    wrong='def pick(item: DynamicFiltered["items", "activ_only"]) -> str:',
    right='def pick(item: DynamicFiltered["items", "active_only"]) -> str:',
)


def unusable_toolkit(toolkit: str, reason: str, hint: str | None) -> Problem:
    """A toolkit that an error was raised for."""
    return LD414.problem(f"the toolkit `{toolkit}`: {reason}", hint)
