"""LD6xx: approval rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import did_you_mean, with_article

LD601 = Code(
    "LD601",
    "Rule can't be read",
    "error",
    "A rule is `tool`, `tool(PATTERN)` or `tool(name=PATTERN, ...)`, with `agent:` in front to limit it to one agent.",
    "write it as `tool`, `tool(PATTERN)` or `tool(name=PATTERN)`",
    wrong='"approvals": {"allow": ["write_file(reports/**"]}',
    right='"approvals": {"allow": ["write_file(reports/**)"]}',
)


def invalid_rule(reason: str, hint: str | None) -> Problem:
    """A rule of the manifest; the parser of rules gives the reason."""
    return LD601.problem(reason, hint)


def invalid_command(command: str, reason: str, hint: str | None) -> Problem:
    """An entry of a shell's `allow` list."""
    return LD601.problem(f"the command {command} can't be read: {reason}", hint)


def invalid_saved_approval(reason: str) -> Problem:
    """An entry of the saved approvals."""
    return LD601.problem(reason, "correct it, or `llm-do approvals revoke --all`")


LD602 = Code(
    "LD602",
    "Rule contradicts its example",
    "error",
    "An example beside a rule doesn't come out as it says. Examples are values of the rule's primary argument, such as "
    "a path or a command, without the tool's name.",
    "correct the rule or the example",
    wrong='{"rule": "write_file(reports/*)", "allows": ["reports/2024/may.md"]}',
    right='{"rule": "write_file(reports/**)", "allows": ["reports/2024/may.md"]}',
)


def failed_example(reason: str, hint: str | None) -> Problem:
    """An example of a rule; the check of examples gives the reason."""
    return LD602.problem(reason, hint)


LD603 = Code(
    "LD603",
    "Broad rule",
    "warning",
    "The rule allows more than a reader expects: every tool, every command, or a program that runs others. On a "
    "machine without a sandbox that is true of any rule on commands, since no list of programs and their options is "
    "complete; `llm-do check` says so there.",
    "name the tool, and what it may be called with, such as `shell(git log *)`",
    wrong='"approvals": {"allow": ["*"]}',
    right='"approvals": {"allow": ["write_file(reports/**)"]}',
)


def broad_rule(rule: str) -> Problem:
    """A rule of the manifest."""
    return LD603.problem(f"the rule {rule} allows more than it seems to")


def broad_command(command: str) -> Problem:
    """An entry of a shell's `allow` list."""
    return LD603.problem(f"the command {command} allows more than it seems to", "name the program and its subcommand")


def no_sandbox(reason: str) -> Problem:
    """Allowed commands on a machine without a sandbox."""
    hint = 'install bubblewrap, or have a person asked with `"sandbox": "required"`'
    return LD603.problem(f"commands that the project allows run without a sandbox: {reason}", hint)


LD604 = Code(
    "LD604",
    "Rule that can't match",
    "warning",
    "No agent that the rule names exists, none of them has a tool that it names, or the pattern is spelled as no path "
    "or URL ever is, so the rule does nothing.",
    "correct the name, or remove the rule",
    wrong='"approvals": {"deny": ["writ_file"]}',
    right='"approvals": {"deny": ["write_file"]}',
)


def rule_for_unknown_agent(rule: str, agent: str, known: Iterable[str]) -> Problem:
    """A rule for an agent that doesn't exist."""
    return LD604.problem(f"the rule {rule} can't match: no agent is called `{agent}`", did_you_mean(agent, known))


def rule_for_unknown_tool(rule: str, agent: str | None, tool: str | None, known: Iterable[str]) -> Problem:
    """A rule for a tool that `agent`, or no agent at all, has; `tool` is None when the rule has a pattern there."""
    who = f"the agent `{agent}` has no such tool" if agent is not None else "no agent has such a tool"
    hint = (_other_spelling(tool, known) or did_you_mean(tool, known)) if tool else None
    return LD604.problem(f"the rule {rule} can't match: {who}", hint)


def rule_with_other_prefix(rule: str, tool: str) -> Problem:
    """A rule that names a tool as `toolset::tool`, though its toolset has no such prefix there."""
    return LD604.problem(f"the rule {rule} can't match: the tool is called `{tool}` there", f"write `{tool}`")


def rule_for_toolset(rule: str, toolset: str, tools: Sequence[str]) -> Problem:
    """A rule that names a toolset, and what its tools are called."""
    return LD604.problem(f"the rule {rule} can't match: no tool has that name", tools_of_toolset(toolset, tools))


def tools_of_toolset(toolset: str, tools: Sequence[str]) -> str:
    """What to write in place of a toolset's name.

    Example:
        >>> tools_of_toolset("desk", ["connect", "reserve"])
        '`desk` is a toolset, and rules name its tools: `connect`, `reserve`'
    """
    shown = ", ".join([*(f"`{tool}`" for tool in tools[:5]), *(["..."] if len(tools) > 5 else [])])
    return f"`{toolset}` is a toolset, and rules name its tools: {shown}"


def unmatched_pattern(rule: str, reason: str, kind: str) -> Problem:
    """A rule whose pattern no path or no URL can match."""
    hint = {
        "path": "write the path as it is below that folder, such as `reports/**`",
        "host": "write a host, such as `*.example.org`, or a URL, such as `https://api.example.org/v1/**`",
    }
    return LD604.problem(f"the rule {rule} can't match: {reason}", hint[kind])


def _other_spelling(tool: str, known: Iterable[str]) -> str | None:
    """What to write for a tool that other programs write in another way."""
    path, _, last = tool.rpartition("/")
    if path and last in known:
        return f"write `{path}:{last}`"
    return (
        "commands are calls of `shell`: write a rule such as `shell(git log *)`" if tool in ("Bash", "bash") else None
    )


LD605 = Code(
    "LD605",
    "Rule without an argument's name",
    "error",
    "`tool(PATTERN)` matches a tool's primary argument, and this tool declares none.",
    "name the argument: `tool(name=PATTERN)`",
    wrong='"approvals": {"allow": ["send(ann)"]}',
    right='"approvals": {"allow": ["send(to=ann)"]}',
)


def no_primary_argument(rule: str, tool: str, arguments: Sequence[str], *, function: bool) -> Problem:
    """A rule with a bare pattern on a tool without a primary argument; a `function` can declare one."""
    hint = name_the_argument(tool, arguments)
    if function:
        hint += ', or declare one with `@tool(primary="...")`'
    message = f"the rule {rule} doesn't say which argument it is about, and `{tool}` has no primary one"
    return LD605.problem(message, hint)


def name_the_argument(tool: str, arguments: Sequence[str]) -> str:
    """What to write in place of a bare pattern.

    Example:
        >>> name_the_argument("send", ["to", "text"])
        'write `send(to=...)`; its arguments are to, text'
    """
    first = arguments[0] if arguments else "name"
    return f"write `{tool}({first}=...)`; its arguments are {', '.join(arguments) or 'none'}"


LD606 = Code(
    "LD606",
    "Rule about an unknown argument",
    "error",
    "The tool has no argument of the name in the rule, so the rule would never match.",
    "correct the argument's name",
    wrong='"approvals": {"deny": ["send(too=ann)"]}',
    right='"approvals": {"deny": ["send(to=ann)"]}',
)


def unknown_argument(rule: str, argument: str, tool: str, known: Iterable[str]) -> Problem:
    """A rule about an argument that its tool doesn't have."""
    names = list(dict.fromkeys(known))
    hint = did_you_mean(argument, names) or f"its arguments are {', '.join(names) or 'none'}"
    return LD606.problem(f"the rule {rule} names `{argument}`, which is not an argument of `{tool}`", hint)


LD607 = Code(
    "LD607",
    "Permission escalates through another agent",
    "warning",
    "A rule keeps a tool from an agent, and the agent can call another one that has the tool without approval.",
    "ask for approval of the call to that agent, or of the tool at that path too",
    wrong='"approvals": {"ask": ["main:write_file"], "allow": ["writer:write_file"]}',
    right='"approvals": {"ask": ["main:write_file", "main:writer"], "allow": ["writer:write_file"]}',
)


def escalation(rule: str, tool: str, path: str) -> Problem:
    """A tool that a rule keeps from an agent, available without approval at another call path."""
    return LD607.problem(f"the rule {rule} keeps `{tool}` from an agent that has it without approval as {path}")


LD608 = Code(
    "LD608",
    "Approval that only the kind decides",
    "warning",
    "A function needs approval by default, a call of an agent or a flow doesn't. `tools` and `toolsets` take either, "
    "so that one can become the other without a change to its callers; then the approval of its calls changes with it.",
    "say with a rule what holds whichever it is, or list functions under `tools` and agents under `toolsets`",
    wrong="toolsets: [add]",
    right="tools: [add]",
)


def kind_decides(name: str, kind: str, effect: str) -> Problem:
    """A function among `toolsets` or an agent among `tools`, whose default approval is its kind's."""
    needs = (
        "need approval, unlike those of an agent" if effect == "ask" else "need no approval, unlike those of a function"
    )
    place = "tools" if kind == "function" else "toolsets"
    rule = f'"approvals": {{"allow": ["{name}"]}}'
    return LD608.problem(
        f"calls of `{name}` {needs}: it is {with_article(kind)}",
        f"state it with a rule, such as {rule}, or list it under `{place}`",
    )
