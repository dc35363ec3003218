"""LD402 to LD409, LD415, LD416, LD421 to LD423 and LD440 to LD444: agents' tools, toolsets and capabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.diagnostics.diagnostic import Location
from llm_do.text.words import did_you_mean

_SHOWN = 3

LD402 = Code(
    "LD402",
    "Duplicate tool name in an agent",
    "error",
    "A model tells tools apart by their names, so the names of one agent's tools have to differ.",
    "give one of the toolsets a `prefix`",
    wrong="  - docs",
    right="  - docs: {prefix: docs}",
)


def listed_twice(toolset: str, first: Location) -> Problem:
    """A toolset that an agent lists twice with the same prefix."""
    message = f"the agent lists `{toolset}` twice; the first is at {first}"
    return LD402.problem(message, "remove one, or give it a prefix")


def same_tool_names(first: object, at: Location, second: object, tools: Sequence[str], toolset: str | None) -> Problem:
    """Two lines of an agent that give it tools of one name; `toolset` is one that can have a prefix, if any can."""
    shown = ", ".join(f"`{name}`" for name in tools[:_SHOWN])
    more = f" and {len(tools) - _SHOWN} more" if len(tools) > _SHOWN else ""
    hint = f"give one a prefix: `{toolset}: {{prefix: {toolset}}}`" if toolset is not None else "remove one"
    return LD402.problem(f"{first}, at {at}, and {second} both give the agent {shown}{more}", hint)


LD403 = Code(
    "LD403",
    "Invalid derived tool name",
    "error",
    "A prefix makes a tool's name too long, or adds a character that providers refuse.",
    "at most 64 letters, digits, _ and -, not starting with a digit",
    wrong="  - filesystem_project: {prefix: the_files_of_the_project_that_everybody_in_the_company_may_read}",
    right="  - filesystem_project: {prefix: shared}",
)


def invalid_tool_names(tools: Sequence[str], origin: object) -> Problem:
    """Tools of one line of an agent."""
    more = f", and {len(tools) - 1} more of {origin}" if len(tools) > 1 else ""
    return LD403.problem(f"`{tools[0]}` can't be the name of a tool{more}")


def long_given_name(tool: str, giver: str, agent: str) -> Problem:
    """A tool that handoffs or a team give to an agent."""
    message = f"`{tool}`, which {giver} gives `{agent}`, can't be the name of a tool"
    return LD403.problem(message, "shorten the agent's name")


LD404 = Code(
    "LD404",
    "Invalid toolset option",
    "error",
    "Every toolset takes prefix, include and exclude; one that the manifest configures also takes its type's options.",
    "correct the option, or remove it",
    wrong="  - filesystem_project: {read_only: true}",
    right="  - filesystem_project_ro",
)


def unknown_option(kind: str, toolset: str, option: str, known: Sequence[str]) -> Problem:
    """An option that a toolset doesn't take."""
    hint = did_you_mean(option, known) or f"it takes {', '.join(known[:-1])} and {known[-1]}"
    return LD404.problem(f"{kind} `{toolset}` takes no `{option}`", hint)


def invalid_option(kind: str, toolset: str, option: str, reason: str) -> Problem:
    """An option with a value that a toolset doesn't take; validation gives the reason."""
    return LD404.problem(f"{kind} `{toolset}`: `{option}` {reason}")


LD405 = Code(
    "LD405",
    "Not a tool",
    "error",
    "A function or object can't become a tool: the type of a parameter has no JSON Schema, the parameters that it "
    "declares aren't a JSON Schema, or it has no name.",
    "give every parameter a type that JSON can hold, such as str, int, list[str] or a pydantic model",
    wrong="def send(to: socket.socket, text: str) -> str:",
    right="def send(to: str, text: str) -> str:",
)


def not_a_tool(name: str, reason: str, hint: str | None, *, wants_context: bool) -> Problem:
    """A function or object that no schema can be made of; `wants_context`: it takes a `CallContext`."""
    if hint is None and wants_context:
        hint = (
            "a tool's first parameter may be `ctx: RunContext[CallContext]`; "
            "a function that is called by name, such as a step of a flow, is `(input, ctx: CallContext)`"
        )
    return LD405.problem(f"no tool can be made of `{name}`: {reason}", hint)


def invalid_parameters(name: str, reason: str) -> Problem:
    """A tool object whose own schema isn't one."""
    return LD405.problem(f"the parameters of `{name}` are not a JSON Schema: {reason}", "correct the schema")


LD406 = Code(
    "LD406",
    "Refused by a provider",
    "warning",
    "A provider whose model the agent may use is known to refuse a request with this tool in it.",
    "change the tool's parameters or its description",
    wrong="def locate(point: tuple[float, str]) -> str:",
    right="def locate(latitude: float, name: str) -> str:",
)


def refused_tool(tool: str, what: str, providers: Iterable[str], hint: str) -> Problem:
    """A tool; `what` of it is refused, and the hint, stand in the table of the providers' limits."""
    return LD406.problem(f"the tool `{tool}` {what}, which {' and '.join(providers)} will refuse", hint)


LD407 = Code(
    "LD407",
    "Too many tools",
    "warning",
    "The agent has more tools than a provider accepts in one request.",
    "leave some out, or move them to an agent of their own",
    wrong="toolsets: [many]",
    right='toolsets:\n  - many: {include: ["look_1*"]}',
)


def too_many_tools(agent: str, count: int, limit: int) -> Problem:
    """An agent whose model may be OpenAI's."""
    return LD407.problem(f"the agent `{agent}` has {count} tools, and OpenAI accepts {limit}")


LD408 = Code(
    "LD408",
    "Filter matches no tool",
    "warning",
    "A glob in `include` or `exclude` matches no tool of the toolset; most often it is misspelled.",
    "correct the glob, or remove it",
    wrong="  - filesystem_project: {exclude: [writ_file]}",
    right="  - filesystem_project: {exclude: [write_file]}",
)


def unmatched_filter(key: str, glob: str, origin: object, known: Sequence[str]) -> Problem:
    """A glob in `include` or `exclude`."""
    hint = did_you_mean(glob, known) or f"its tools are {', '.join(known)}"
    return LD408.problem(f"`{key}: {glob}` matches no tool of {origin}", hint)


LD409 = Code(
    "LD409",
    "Unknown declared argument",
    "error",
    "What a tool declares about its arguments, such as which one is primary and which are paths or hosts, has to name "
    "its parameters, because rules match them.",
    "name one of the tool's parameters",
    wrong='@tool(primary="adress")',
    right='@tool(primary="address")',
)


def unknown_declared(tool: str, argument: str, parameters: Sequence[str], *, primary: bool) -> Problem:
    """A declared argument that isn't a parameter."""
    what = "as its primary argument" if primary else "in its facts"
    message = f"{tool} declares `{argument}` {what} but has no such parameter"
    return LD409.problem(message, f"its parameters are: {', '.join(parameters) or 'none'}")


LD415 = Code(
    "LD415",
    "Parameter without a type",
    "warning",
    "A tool's parameter has no annotation, so the schema that the model reads says nothing about it, and whatever JSON "
    "the model sends is passed on unchecked.",
    "annotate the parameter, such as `name: str`",
    wrong="def find(word, limit: int = 10) -> str:",
    right="def find(word: str, limit: int = 10) -> str:",
)


def untyped_parameters(tool: str, parameters: Sequence[str], *, may_be_context: bool) -> Problem:
    """Parameters of a function; `may_be_context`: the first one looks as if it were for the context of the call."""
    shown = ", ".join(f"`{each}`" for each in parameters[:_SHOWN])
    more = f" and {len(parameters) - _SHOWN} more" if len(parameters) > _SHOWN else ""
    noun, first = "parameter" if len(parameters) == 1 else "parameters", parameters[0]
    hint = f"annotate it, such as `{first}: str`"
    if may_be_context:
        hint = f"annotate the call's context as `{first}: RunContext[CallContext]`, anything else as in `{first}: str`"
    message = f"`{tool}` gives its {noun} {shown}{more} no type, so whatever JSON the model sends is accepted"
    return LD415.problem(message, hint)


LD416 = Code(
    "LD416",
    "Unknown approval",
    "error",
    "A tool's `approval` is not allow, ask or deny, or its `facts` are not a `ToolFacts`, so no decision can be made "
    "about it. Where this shows only during a run, each call is denied.",
    "write allow, ask or deny, or leave it out",
    wrong='    approval = "denied"',
    right='    approval = "deny"',
)


def unknown_approval(tool: str, reason: str) -> Problem:
    """A tool whose declared approval isn't one."""
    hint = "declare a `ToolFacts`, or leave it out" if reason.startswith("facts") else None
    return LD416.problem(f"{tool} can't be approved or denied: its {reason}", hint)


LD421 = Code(
    "LD421",
    "Tool without a description",
    "warning",
    "A function has no docstring, so a model knows of the tool only its name and its parameters, and calls it at the "
    "wrong time or not at all.",
    "write a docstring that says what the tool does and when to use it",
    wrong='def order(part: str) -> str:\n    return "ordered"',
    right='def order(part: str) -> str:\n    """Order a part."""\n    return "ordered"',
)


def undescribed_tool(tool: str) -> Problem:
    """A function that a model may call."""
    return LD421.problem(f"the model reads nothing about `{tool}` but its name and its parameters")


_DEPTH = "set `runtime.max_depth` in project.json to the depth that you mean"

LD422 = Code(
    "LD422",
    "Agents that call each other",
    "warning",
    "Each of the agents has the next one as a tool, so that their models can call each other, and themselves, until "
    "`runtime.max_depth` ends the run with an error. A project that means this says how deep it may go.",
    f"take one out of the other's `toolsets`, or {_DEPTH}",
    wrong="name: c\ntoolsets: [b]",
    right="name: c",
)


def circular_agents(path: Sequence[str]) -> Problem:
    """The agents from one back to itself."""
    if len(path) == 2:
        return LD422.problem(f"`{path[0]}` has itself as a tool", f"take it out of its own `toolsets`, or {_DEPTH}")
    return LD422.problem(f"agents call each other in a circle: {' -> '.join(path)}")


LD423 = Code(
    "LD423",
    "Memory that isn't kept",
    "warning",
    "An agent has a memory for later runs, and the project's store doesn't keep it: nothing is recorded, or only in "
    "memory.",
    "remove `record: false` or `threads.store: memory` from project.json, or the memory from the agent's `toolsets`",
    wrong="toolsets: [memory]",
    right="toolsets: [todo]",
)


def unkept_memory(agent: str, toolset: str, *, ends: bool) -> Problem:
    """A toolset of an agent; `ends`: what is remembered is lost when the process ends, else nothing is remembered."""
    if ends:
        return LD423.problem(
            f"what `{agent}` remembers with `{toolset}` is lost when the process ends: `threads.store` is `memory`"
        )
    return LD423.problem(f"`{agent}` can remember nothing with `{toolset}`: `record` is false")


LD440 = Code(
    "LD440",
    "Unknown capability",
    "error",
    "A capability in an agent file is one of PydanticAI's, or a class that a Python file of the project lists in "
    "`CAPABILITIES`. A name is never imported.",
    "correct the name, or list the class in `CAPABILITIES`",
    wrong="  - Cachng",
    right="  - Caching",
)


def unknown_capability(message: str, hint: str | None) -> Problem:
    """A capability that neither PydanticAI nor the project has."""
    return LD440.problem(message, hint)


LD441 = Code(
    "LD441",
    "Invalid capability",
    "error",
    "A capability doesn't take these arguments, or can't be made of them.",
    "correct its arguments",
    wrong="  - Thinking: {efort: high}",
    right="  - Thinking: {effort: high}",
)


def invalid_capability(message: str, hint: str | None) -> Problem:
    """A capability that can't be made of its arguments."""
    return LD441.problem(message, hint)


def invalid_registration(what: str) -> Problem:
    """A member of a Python file's `CAPABILITIES` that isn't a capability's class."""
    return LD441.problem(
        f"`CAPABILITIES` lists {what}", "list classes: dataclasses that inherit from PydanticAI's `AbstractCapability`"
    )


LD442 = Code(
    "LD442",
    "Capability that can't be judged",
    "error",
    "What a capability does has to pass policy, budget and record. One that may pass them by is refused.",
    "remove it",
    wrong="  - MCP: https://tools.example.com/mcp",
    right="  - Caching",
)


def refused_capability(message: str, hint: str | None) -> Problem:
    """A capability that may pass policy, budget or record by."""
    return LD442.problem(message, hint)


LD443 = Code(
    "LD443",
    "Provider's tool without a rule",
    "error",
    "A tool that the provider runs is called where no one can be asked. One that a capability adds needs a rule that "
    "allows it, and none may be denied or require approval.",
    "allow it with a rule of its name, or remove the tool",
    wrong='"approvals": {"allow": []}',
    right='"approvals": {"allow": ["web_search"]}',
)


def provider_tool_without_rule(tool: str, agent: str, effect: str, reason: str) -> Problem:
    """A tool of a provider that isn't allowed."""
    asked = "" if effect == "deny" else ", and no one can be asked where the provider runs it"
    return LD443.problem(
        f"`{agent}` can't have `{tool}`: {reason}{asked}", f'allow it with the rule "{tool}", or remove the tool'
    )


LD444 = Code(
    "LD444",
    "Duplicate capability",
    "error",
    "PydanticAI would make one of two capabilities of the same id, so which of them holds isn't what the file says.",
    "keep one of the two",
    wrong="  - Thinking: low\n  - Thinking: high",
    right="  - Thinking: high",
)


def duplicate_capability(message: str, hint: str | None) -> Problem:
    """A capability that an agent has twice."""
    return LD444.problem(message, hint)


def registered_twice(name: str, *, library: bool) -> Problem:
    """A class in `CAPABILITIES` whose name is taken."""
    other = "PydanticAI has one of that name" if library else "another file lists one of that name"
    return LD444.problem(f"the capability `{name}` can't be registered: {other}", "rename the class")
