"""Link the manifest's `approvals`: build the `Policy`, and check rules against the project's agents and tools.

`llm_do.policy` defines what rules mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from llm_do.diagnostics.codes import rules as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.analysis.inventory import AgentTools, Inventory, KnownTool
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.analysis.permissions import permission_for
from llm_do.linker.analysis.rule_subjects import RuleAgents, Subjects, speaks_of
from llm_do.linker.sources.conversion import AgentSource, runtime_settings
from llm_do.policy.pattern import ArgumentPattern, PatternError, parse_pattern
from llm_do.policy.proofs import check_examples, is_overly_broad
from llm_do.policy.rules import Policy, Rule, RuleFault, build_policy
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import CALLS
from llm_do.project.flow_spec import CallPathNames, every_agent
from llm_do.project.project import RuntimeSettings
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from llm_do.formats.syntax.source import Node
    from llm_do.linker.sources.project_files import ProjectFiles
    from llm_do.project.project import Project

__all__ = [
    "check_escalations",
    "check_kinds",
    "check_rules",
    "check_shells",
    "find_idle_pattern",
    "link_policy",
]

_SHELL = ToolFacts(primary="command", commands=["command"])
_GIVEN = ("transfer_to_", "delegate_to_")
"""The prefixes of the tools that handoffs and teams give to agents."""

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def link_policy(files: ProjectFiles, names: Names) -> Policy:
    """Build a project's policy and report the faults of its rules."""
    if files.manifest is None or files.node is None:
        return Policy()
    node = files.node

    def place_of(path: tuple[str | int, ...]) -> str:
        place = node.place_of(path)
        return f"{place.file}:{place.line}"

    data = files.manifest.approvals.model_dump(exclude_unset=True)
    policy, faults = build_policy(data, place_of)
    for fault in faults:
        names.report(problems.invalid_rule(fault.message, fault.hint), _place(node, fault))
    return policy


def check_shells(files: ProjectFiles, names: Names) -> None:
    """Check that the `allow` lists of configured shells are valid patterns and allow no more than they seem to."""
    if files.manifest is None or files.node is None:
        return
    from llm_do.formats.toolset_config import ShellConfig

    for toolset, config in files.manifest.toolsets.items():
        for index, text in enumerate(config.allow if isinstance(config, ShellConfig) else ()):
            path = ("toolsets", toolset, "allow", index)
            policy, faults = build_policy({"allow": [f"shell({text})"]})
            for fault in faults:
                column = max(1, min((fault.column or 7) - len("shell("), len(text)))
                place = _place(files.node, RuleFault(fault.message, path, column))
                names.report(problems.invalid_command(text, _cause(fault), fault.hint), place)
            if any(is_overly_broad(rule, [_SHELL]) for rule in policy.rules):
                names.report(problems.broad_command(text), files.node.place_of(path))


def _cause(fault: RuleFault) -> str:
    """Return the message of a fault without the rule's text."""
    return fault.message.rpartition("can't be read: ")[2]


def check_rules(
    rules: Iterable[Rule], node: Node | None, subjects: Subjects, files: ProjectFiles, names: Names
) -> None:
    """Check each rule against the tools it names: whether it can match a call and means what its author thinks.

    Args:
        rules: The rules, of the manifest or of the lock.
        node: The file that has them; nothing is checked without one.
        subjects: The tools of each agent.
        files: The project's files.
        names: The project's names, which also take what is found.
    """
    if node is None:
        return
    readable = not any(item.severity == "error" for item in (*files.diagnostics, *names.faults))
    paths = CallPathNames(names.taken, subjects.listed)
    for rule in rules:
        place = _rule_place(node, rule)
        agents = subjects.agents(rule)
        spoken = agents.tools(rule)
        if is_overly_broad(rule, [tool.facts for tool in spoken]):
            names.report(problems.broad_rule(rule.text), place)
        if spoken or (readable and agents.are_open):
            for fault in check_examples(rule, [tool.facts for tool in spoken]):
                names.report(problems.failed_example(fault.message, fault.hint), _place(node, fault))
        unknown = paths.find_unknown(rule.pattern)
        if unknown is not None and agents.names and names.broken.may_have(unknown):
            unknown = None
        if unknown is not None or not agents.names:
            shown = unknown or rule.text.partition(":")[0].rpartition("/")[2]
            known = list(subjects.listed) if names.may_propose() else ()
            names.report(problems.rule_for_unknown_agent(rule.text, shown, known), place)
            continue
        if not spoken:
            own = _name_there(rule, agents.every_tool)
            if own is not None:
                names.report(problems.rule_with_other_prefix(rule.text, own), place)
                continue
            if not agents.may_have(rule, names.taken) and not _may_come(rule, names):
                _report_unknown_tool(rule, agents, names, place, one=len(subjects.listed) > 1)
            continue
        _check_arguments(rule, spoken, names, place, some=agents.are_open)


def _report_unknown_tool(rule: Rule, agents: RuleAgents, names: Names, place: Location, *, one: bool) -> None:
    """Report a rule for a tool that none of its agents has; `one` of several is named."""
    toolset = _toolset_meant(rule, agents.every_tool)
    if toolset is not None:
        names.report(problems.rule_for_toolset(rule.text, *toolset), place)
        return
    agent = agents.names[0] if one and len(agents.names) == 1 else None
    literal = rule.pattern.tool.literal if names.may_propose() else None
    names.report(problems.rule_for_unknown_tool(rule.text, agent, literal, agents.tool_names), place)


def find_idle_pattern(text: str, project: Project, *, broadly: bool = False) -> str | None:
    """Explain why no call can match a pattern of the command line, so that a mistyped name is noticed.

    Args:
        text: The pattern.
        project: The project.
        broadly: Whether it is matched as a rule that denies is, where a bare pattern is about any argument.
    """
    try:
        rule = Rule("deny", parse_pattern(text), text)
    except PatternError:
        return None
    inventory = Inventory(project.registry)
    every = [inventory.of(spec) for spec, _ in every_agent(project.registry)]
    tools = [tool for own in every for tool in own.tools]
    literal, spoken = rule.pattern.tool.literal, [tool for tool in tools if speaks_of(rule, tool)]
    known, origins = [tool.name for tool in tools], [origin for own in every for origin in own.open]
    toolset = _toolset_meant(rule, tools) if not spoken and not origins else None
    if toolset is not None:
        return f"{text} can't match: no tool has that name; {problems.tools_of_toolset(*toolset)}"
    if literal is None or rule.pattern.action is not None or literal.startswith(_GIVEN):
        return None
    own = _name_there(rule, tools)
    if own is not None:
        return f"{text} can't match: the tool is called `{own}` there"
    if literal not in known and may_be_listed(literal, known, origins, project.registry, own=True):
        return None
    if spoken:
        fault = _unknown_argument(text, rule, spoken)
        return fault or (_unnamed_argument(text, rule, spoken) if not broadly and not origins else None)
    hint = did_you_mean(literal, sorted({tool.name for tool in tools}))
    return f"{text} can't match: no agent has such a tool" + (f"; {hint}" if hint else "")


def _name_there(rule: Rule, tools: Iterable[KnownTool]) -> str | None:
    """The name of the tool that a rule means by `TOOLSET::TOOL`, if its toolset hasn't that prefix."""
    literal = rule.pattern.tool.literal
    if literal is None or "::" not in rule.text or any(tool.name == literal for tool in tools):
        return None
    return next((tool.name for tool in tools if f"{tool.toolset}_{tool.tool}" == literal), None)


def _toolset_meant(rule: Rule, tools: Iterable[KnownTool]) -> tuple[str, list[str]] | None:
    """The toolset that a rule names instead of a tool, as `TOOLSET` or `TOOLSET::*`, and what its tools are called."""
    name, _, tool = rule.text.partition("(")[0].partition("::")
    name = name.rpartition(":")[2]
    found = list(dict.fromkeys(each.name for each in tools if each.toolset == name)) if tool in ("", "*") else []
    return (name, found) if found else None


def check_escalations(project: Project, files: ProjectFiles) -> list[Diagnostic]:
    """Warn about tools that rules restrict for an agent, but that it can use without approval through another one."""
    if files.manifest is None or project.entry.kind != "agent":
        return []
    from llm_do.linker.proofs.escalations import find_escalations  # a project without a manifest has no rules

    found: list[Diagnostic] = []
    for each in find_escalations(project):
        rule = next((rule for rule in project.policy.rules if rule.text == each.own.rule), None)
        place = files.place(*rule.path) if rule is not None else files.place("approvals")
        found.append(problems.escalation(each.own.rule or "", each.tool, each.path).at(place))
    return found


def check_kinds(
    tools: Mapping[str, AgentTools],
    policy: Policy,
    files: ProjectFiles,
    names: Names,
    sources: Mapping[str, AgentSource],
) -> None:
    """Warn about agents among `tools` and functions among `toolsets` whose approval no rule and no setting states.

    An agent that becomes a function, or the other way round, keeps its callers, and the default of its kind changes.
    """
    settings = runtime_settings(files.manifest.runtime) if files.manifest is not None else RuntimeSettings()
    for agent, listed in tools.items():
        for tool in listed.tools:
            if (tool.kind in CALLS) != (tool.origin.ref is None) or tool.kind not in (*CALLS, "function"):
                continue
            decision = permission_for(tool, agent, policy, settings).decision
            if decision.source != "default":
                continue
            found, source, ref = names.taken.get(agent), sources.get(agent), tool.origin.ref
            place = found.place if found is not None else None
            if ref is not None:
                place = ref.place or place
            elif source is not None:
                place = source.place(("tools", tool.origin.index))
            problem = problems.kind_decides(tool.name, tool.kind, decision.effect)
            names.report(problem, place or Location(""))


def _unknown_argument(text: str, rule: Rule, spoken: Sequence[KnownTool]) -> str | None:
    """Describe the fault of a pattern that names an argument which none of its tools has."""
    if any(tool.facts.arguments is None for tool in spoken):
        return None
    known = list(dict.fromkeys(argument for tool in spoken for argument in tool.facts.arguments or ()))
    for name, _ in rule.pattern.named:
        if name not in known:
            hint = did_you_mean(name, known) or f"its arguments are {', '.join(known) or 'none'}"
            return f"{text} can't match: `{name}` is no argument of `{spoken[0].name}`; {hint}"
    return None


def _unnamed_argument(text: str, rule: Rule, spoken: Sequence[KnownTool]) -> str | None:
    """Describe the fault of a bare pattern of an argument, if none of its tools has a primary one."""
    if rule.pattern.primary is None or any(tool.facts.primary is not None for tool in spoken):
        return None
    hint = problems.name_the_argument(spoken[0].name, spoken[0].facts.arguments or ())
    return f"{text} can't match: `{spoken[0].name}` has no primary argument; {hint}"


def _check_arguments(rule: Rule, spoken: Sequence[KnownTool], names: Names, place: Location, *, some: bool) -> None:
    pattern = rule.pattern
    for argument, kind in _compared_kinds(rule, spoken):
        if (reason := argument.mismatch(kind)) is not None:
            names.report(problems.unmatched_pattern(rule.text, reason, kind), place)
    if pattern.action is not None:
        return
    if pattern.primary is not None:
        if all(tool.facts.primary is None for tool in spoken) and not some:
            tool = spoken[0]
            function, known = tool.kind == "function", tool.facts.arguments or ()
            names.report(problems.no_primary_argument(rule.text, tool.name, known, function=function), place)
        return
    for name, _ in pattern.named:
        known = [argument for tool in spoken for argument in tool.facts.arguments or ()]
        if name not in known and not some and all(tool.facts.arguments is not None for tool in spoken):
            names.report(problems.unknown_argument(rule.text, name, spoken[0].name, known), place)


def _compared_kinds(
    rule: Rule, spoken: Sequence[KnownTool]
) -> Iterator[tuple[ArgumentPattern, Literal["path", "host"]]]:
    """Yield a rule's patterns that are compared with paths alone, or with hosts alone, whichever tool is called."""
    pattern = rule.pattern
    if pattern.action is not None:
        if pattern.primary is not None:
            yield pattern.primary, "host" if pattern.action == "net" else "path"
        return
    for argument, name in [(pattern.primary, None), *((argument, name) for name, argument in pattern.named)]:
        every = [tool.facts.primary_arguments if name is None else (name,) for tool in spoken]
        kinds = {tool.facts.argument_kind(own) for tool, names in zip(spoken, every, strict=True) for own in names}
        if argument is not None and kinds == {"path"}:
            yield argument, "path"
        elif argument is not None and kinds == {"host"} and rule.effect == "allow":
            yield argument, "host"  # a rule that denies or asks is compared with the URL's text as well


def _may_come(rule: Rule, names: Names) -> bool:
    """Whether a file that couldn't be read may define the tool."""
    literal = rule.pattern.tool.literal
    return bool(names.broken.names or names.broken.python) and (literal is None or names.broken.may_have(literal))


def _rule_place(node: Node, rule: Rule) -> Location:
    holder = node.at(rule.path)
    return node.place_of((*rule.path, "rule") if holder is not None and holder.kind == "mapping" else rule.path)


def _place(node: Node, fault: RuleFault) -> Location:
    """Return the location of a fault: the character in the rule if it is known, else the rule."""
    found = node.at(fault.path)
    if found is None or fault.column is None:
        return node.place_of(fault.path)
    offset = min(found.start + 1 + _written(found.text[1:-1], fault.column - 1), found.end - 1)
    return found.source.place(offset, offset + 1)


def _written(text: str, count: int) -> int:
    """Return the number of characters in a JSON string's source that encode its first `count` characters."""
    at = 0
    for _ in range(count):
        found = _SURROGATES.match(text, at) or _ESCAPE.match(text, at)
        at = found.end() if found is not None else at + 1
    return at
