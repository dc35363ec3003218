"""What policy says about all calls of one tool that a pattern matches, whatever their arguments.

The decisions are those of the function that decides at run time, about calls that stand for all others. What they
can't show is a possibility with its reason: commands, tools that declare nothing, a policy function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import KnownTool
from llm_do.linker.analysis.permissions import call_of, decide_about
from llm_do.linker.proofs.tool_cases import (
    ShellRules,
    cases_of,
    folder_of,
    relative_patterns,
    shell_of,
    skill_folders,
    undeclared,
)
from llm_do.policy.call_effects import concerns
from llm_do.policy.command_patterns import is_pipeline
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.filters import FILTERS
from llm_do.policy.commands.launching_programs import WRAPPERS
from llm_do.policy.commands.pattern_words import program_of
from llm_do.policy.matcher import applies_to_agent, matches
from llm_do.policy.pattern import ArgumentPattern, Pattern
from llm_do.policy.rules import Rule
from llm_do.policy.values import Decision, Effect, Host, ToolCallInfo
from llm_do.project.agent_spec import SKILLS
from llm_do.project.project import Project
from llm_do.project.tools.builtin_toolsets import FILES, MEMORY, decide_about_memory

__all__ = ["Caller", "Verdict", "judge_calls", "names_tool", "shell_decision"]

_RANK: Mapping[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}
_KNOWN_TOOLS = frozenset(map(id, (*FILES.values(), *MEMORY.values())))
"""Tools of toolsets whose decisions are known by the arguments."""


@frozen
class Caller:
    """Who calls: the agent, its call path and those who made it."""

    agent: str
    path: str
    makers: tuple[str, ...] = ()


@frozen
class Verdict:
    """What policy says about the calls of a tool that a pattern matches.

    Args:
        known: The most lenient effect that a call certainly has.
        call: That call, as a person writes it.
        decision: The decision about it.
        possible: The most lenient effect that a call may have.
        reason: Why that isn't certain.
    """

    known: Effect
    call: str
    decision: Decision
    possible: Effect
    reason: str = ""


def names_tool(pattern: Pattern, tool: KnownTool) -> bool:
    """Whether a pattern names a tool by its name, its own name or its toolset's."""
    if pattern.action is not None:
        return False
    names = (tool.name, tool.tool, tool.toolset, tool.origin.name)
    return any(name is not None and pattern.tool.matches(name) for name in names)


def judge_calls(pattern: Pattern, tool: KnownTool, caller: Caller, project: Project) -> Verdict | None:
    """Return what policy says about the calls of a tool that a pattern matches; None if it can't match any."""
    if pattern.action is None and not names_tool(pattern, tool):
        return None
    if not applies_to_agent(pattern, call_of(tool, caller.path, agent=caller.agent, makers=caller.makers)):
        return None
    hidden = pattern.action is not None and undeclared(tool, pattern.action)
    if pattern.action is not None and not hidden and not concerns(pattern, tool.facts):
        return None
    return _Judge(pattern, tool, caller, project).verdict(hidden=hidden)


class _Judge:
    """Decides about the calls of one tool by one caller that a pattern matches."""

    def __init__(self, pattern: Pattern, tool: KnownTool, caller: Caller, project: Project) -> None:
        self.pattern, self.tool, self.caller, self.project = pattern, tool, caller, project
        self.shell = shell_of(tool, project) if tool.facts.commands else None
        self.mode = project.settings.approval_mode
        folder = "." if tool.facts.commands else folder_of(tool, project)
        by_path = pattern.action in ("files.read", "files.write")
        self.unknown_folder = by_path and folder is None and pattern.primary is not None
        if not by_path or pattern.primary is None:
            self.targets = [pattern]
        elif tool.origin.name == SKILLS:
            folders = skill_folders(project)
            self.targets = [pattern] if any(relative_patterns(pattern, each) for each in folders) else []
        else:
            self.targets = (
                relative_patterns(pattern, folder) if folder is not None else [replace(pattern, primary=None)]
            )

    def verdict(self, *, hidden: bool) -> Verdict | None:
        """Return the verdict; `hidden` if the tool doesn't declare whether it has the effect."""
        if not self.targets and not hidden:
            return None
        rules = [rule.pattern for rule in self.project.policy.rules]
        found: list[tuple[Effect, ToolCallInfo, Decision]] = []
        cases = cases_of(self.tool, [*self.targets, *rules], self.project)
        for args in (*cases.calls, *self._naming_commands()):
            call = call_of(self.tool, self.caller.path, args, agent=self.caller.agent, makers=self.caller.makers)
            judged = _without_urls(call)
            if not hidden and not self._matches(judged):
                continue
            decision = self._decide(judged)
            found.append((self._answered(decision), call, decision))
        if not found:
            return None if cases.incomplete is None else self._uncertain(cases.incomplete)
        known, call, decision = min(found, key=lambda each: _RANK[each[0]])
        possible, reason = self._possible(known, call, decision)
        name = self.tool.name
        if cases.incomplete is not None:
            possible, reason = "allow", f"{name}: {cases.incomplete}"
        if hidden:
            does = {"files.read": "reads", "files.write": "changes"}.get(self.pattern.action or "", "reaches")
            return Verdict(
                "deny",
                name,
                decision,
                min(known, possible, key=lambda each: _RANK[each]),
                (f"the tool {name} doesn't declare what it {does}"),
            )
        if self.unknown_folder:
            return Verdict("deny", _shown(call), decision, possible, f"the folder of {name} isn't known before a run")
        return Verdict(known, _shown(call), decision, possible, reason)

    def _uncertain(self, reason: str) -> Verdict:
        return Verdict("deny", self.tool.name, Decision("deny", reason), "allow", reason)

    def _matches(self, call: ToolCallInfo) -> bool:
        if self.pattern.action is None and not (self.pattern.primary or self.pattern.named):
            return True
        return any(matches(target, call, restrictive=True) for target in self.targets)

    def _naming_commands(self) -> Iterator[Mapping[str, Any]]:
        """Yield commands that name what a pattern about an effect spells."""
        if self.shell is None or self.pattern.action is None:
            return
        argument = self.pattern.primary
        if self.pattern.action == "net":
            host = argument.url.host.sample if argument is not None else "example.org"
            yield {"command": f"curl https://{host}/"}
            return
        path = _sample_path(argument)
        yield {"command": f"{'cat' if self.pattern.action == 'files.read' else 'tee'} {path}"}

    def _decide(self, call: ToolCallInfo, function: Effect | None = None) -> Decision:
        own = decide_about_memory(self.tool.facts, call.args.get("scope"))
        if self.shell is not None:
            own = shell_decision(self.shell, call.resolved.get("command"))
        policy, settings = self.project.policy, self.project.settings
        return decide_about(self.tool, call, policy, settings, toolset=own, function=function)

    def _answered(self, decision: Decision) -> Effect:
        """Return the effect of a decision under the project's mode."""
        if decision.effect != "ask" or self.mode == "prompt":
            return decision.effect
        if self.mode == "reject_all":
            return "deny"
        return "ask" if decision.person_only else "allow"

    def _possible(self, known: Effect, call: ToolCallInfo, decision: Decision) -> tuple[Effect, str]:
        """Return the most lenient effect that a call may have, and why that isn't certain."""
        function = self.project.policy.function
        if function is not None:
            lenient = self._answered(self._decide(call, "allow"))
            if _RANK[lenient] < _RANK[known]:
                return lenient, f"{function} may allow {self.tool.name}"
        if self.shell is not None:
            return self._possible_command(known, self.shell)
        decides = self.tool.facts.decides and id(self.tool.facts) not in _KNOWN_TOOLS
        if known == "ask" and decides and decision.source in ("toolset", "default"):
            return "allow", f"the toolset of {self.tool.name} decides by the arguments"
        return known, ""

    def _possible_command(self, known: Effect, shell: ShellRules) -> tuple[Effect, str]:
        """Return the same for commands, of which only examples were decided about."""
        if known == "allow":
            return known, ""
        policy, name = self.project.policy, self.tool.name
        about = [rule for rule in policy.rules if self._concerns_commands(rule)]
        if any(rule.effect == "deny" and _is_total(rule.pattern) for rule in about):
            return "deny", ""
        wanted = self.pattern.primary if self.pattern.action is None else None
        denied = [rule for rule in about if rule.effect == "deny" and _covers(rule.pattern.primary, wanted)]
        if denied:
            return "deny", ""
        if self.pattern.action == "files.write" and shell.read_only and not shell.allowed and not _allows(about):
            return known, ""
        asked = any(rule.effect == "ask" and _is_total(rule.pattern) for rule in about)
        lenient = [rule.text for rule in about if rule.effect == "allow" and not _apart(rule.pattern.primary, wanted)]
        lenient += [pattern.text for pattern in shell.allowed if not _apart(pattern.primary, wanted)]
        if shell.read_only and self.pattern.action != "files.write":
            lenient.append("commands that only read")
        if lenient and not asked and not self._confined():
            return "allow", f"commands that {name} runs unasked ({', '.join(lenient[:3])}) may do it"
        if known == "deny":
            strict = shell.read_only or shell.moves_only
            how = "without naming it" if wanted is None else "in other words"
            return ("deny", "") if strict else ("ask", f"a person may allow {name} a command that does it {how}")
        return known, ""

    def _concerns_commands(self, rule: Rule) -> bool:
        call = call_of(self.tool, self.caller.path, agent=self.caller.agent, makers=self.caller.makers)
        named = rule.pattern.names_tool(self.tool.name) or rule.pattern.names_tool(self.tool.tool)
        return named and applies_to_agent(rule.pattern, call)

    def _confined(self) -> bool:
        """Whether the sandbox keeps every command that needs no approval from what a `deny` says."""
        if self.pattern.action is None or self.project.sandbox.mode != "required":
            return False
        denies = [rule.pattern for rule in self.project.policy.denies if rule.pattern.action == self.pattern.action]
        everyone = [each for each in denies if each.agent is None and each.agent_path is None]
        argument = self.pattern.primary
        return any(
            each.primary is None or (argument is not None and each.primary.atoms == argument.atoms) for each in everyone
        )


def shell_decision(shell: ShellRules, line: object) -> Decision:
    """Return what a shell's toolset decides about a command line, as far as its words tell."""
    if not is_pipeline(line):
        return Decision("deny", "it can't be parsed")
    fitting: set[int] = set()
    for pattern in shell.allowed:
        fitting |= pattern.primary.command.allows(line) if pattern.primary is not None else set()
    left = [argv for place, argv in enumerate(line) if place not in fitting]
    if not left:
        return Decision("allow", "its `allow` says so")
    if shell.moves_only:
        if any(argv[0] not in ("ls", "mv") for argv in left):
            return Decision("deny", "it is not one of ls and mv")
        return Decision("allow" if all(argv[0] == "ls" for argv in left) else "ask", "it changes files")
    if shell.read_only:
        only = all(read_command(argv).reads for argv in left)
        return Decision("allow", "it only reads") if only else Decision("deny", "it may do more than read")
    return Decision("ask", "no pattern of `allow` matches it")


def _allows(rules: Sequence[Rule]) -> bool:
    return any(rule.effect == "allow" for rule in rules)


def _is_total(pattern: Pattern) -> bool:
    """Whether a pattern matches every call of its tools, whatever the arguments."""
    return pattern.action is None and not pattern.named and (pattern.primary is None or pattern.primary.plain.is_star)


def _words(argument: ArgumentPattern | None) -> list[str | None] | None:
    """Return the words of a pattern of one command, None for one with a wildcard; None without a pattern."""
    if argument is None or len(argument.command.commands) != 1:
        return None
    return [word.glob.literal for word in argument.command.commands[0].words]


def _covers(rule: ArgumentPattern | None, wanted: ArgumentPattern | None) -> bool:
    """Whether a pattern that denies matches every command that another one matches: it begins with the same words."""
    own, others = _words(rule), _words(wanted)
    if not own or not others:
        return False
    if own[-1] is None and len(own) > 1:
        own = own[:-1]
    return None not in own and own == others[: len(own)]


def _apart(rule: ArgumentPattern | None, wanted: ArgumentPattern | None) -> bool:
    """Whether no command that a pattern allows can match another one: their words differ somewhere.

    Only the words in front count: a pattern that asks for or denies a command finds it behind options, too, but a rule
    that allows doesn't let any in that it doesn't spell.
    """
    own, others = _words(rule), _words(wanted)
    if not own or not others or rule is None or rule.command.is_broad or own[0] is None:
        return False
    if program_of(own[0]) in WRAPPERS or others[0] is None or others[0] in FILTERS:  # a filter may follow any command
        return False
    pairs = list(zip(own, others, strict=False))
    return any(one is not None and other is not None and one != other for one, other in pairs)


def _without_urls(call: ToolCallInfo) -> ToolCallInfo:
    """Return a call without the texts of its URLs, which stand for others: a rule that denies matches any text."""
    texts = {name: value for name, value in call.args.items() if not isinstance(call.resolved.get(name), Host)}
    return replace(call, args=texts)


def _sample_path(argument: ArgumentPattern | None) -> str:
    if argument is None:
        return "x"
    return "/".join(segment.sample if segment is not None else "x" for segment in argument.path.segments) or "x"


def _shown(call: ToolCallInfo) -> str:
    """Return a call as a person writes it: the tool, and the arguments that rules compare."""
    primary = (call.primary,) if isinstance(call.primary, str) else call.primary or ()
    given = [str(call.args[name]) for name in primary if name in call.args]
    others = [f"{name}={value}" for name, value in call.args.items() if name not in primary]
    if len(given) == len(call.args) == 1:
        return f"{call.tool_name}({given[0]})"
    named = [f"{name}={call.args[name]}" for name in primary if name in call.args]
    return f"{call.tool_name}({', '.join([*named, *others])})" if call.args else call.tool_name
