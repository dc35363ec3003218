"""The calls of one tool that stand for all of its calls, given the patterns that may tell them apart.

For paths, texts and hosts the calls are complete (`llm_do.linker.proofs.representatives`). Of commands there are too
many kinds; then they are examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.linker.analysis.inventory import KnownTool
from llm_do.linker.proofs.representative_urls import representative_urls
from llm_do.linker.proofs.representatives import TooManyError, representative_paths, representative_texts
from llm_do.policy.call_effects import concerns
from llm_do.policy.pattern import Action, ArgumentPattern, Pattern, PatternError, parse_pattern
from llm_do.policy.proposals import quote_argument
from llm_do.project.agent_spec import skills_of
from llm_do.project.flow_spec import every_agent
from llm_do.project.project import Project
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.text.globs import Atom, Glob

__all__ = [
    "ShellRules",
    "ToolCases",
    "cases_of",
    "folder_of",
    "relative_patterns",
    "shell_of",
    "skill_folders",
    "undeclared",
]

_MOST = 3_000
"""The most calls of one tool to examine."""

_WORD = "x"


@frozen
class ToolCases:
    """Calls of a tool: the arguments of each, and why they may not stand for all of its calls; None if they do."""

    calls: Sequence[Mapping[str, Any]]
    incomplete: str | None = None


@frozen
class ShellRules:
    """What a shell toolset decides by itself: what it allows, and whether it only reads or only moves files."""

    allowed: Sequence[Pattern] = ()
    read_only: bool = False
    moves_only: bool = False


def undeclared(tool: KnownTool, action: Action) -> bool:
    """Whether a tool may have an effect on what its arguments name, since it declares none.

    A tool without side effects changes no files, whatever else it does.

    Example:
        >>> from llm_do.linker.analysis.inventory import Origin
        >>> from llm_do.policy.tool_facts import ToolFacts
        >>> undeclared(KnownTool("save", "save", Origin("save", None, 0), ToolFacts(arguments=("text",))), "net")
        True
    """
    facts = tool.facts
    if facts.kind not in ("function", "toolset", "toolkit", "mcp") or facts.named_arguments:
        return False
    if facts.repeatable and action == "files.write":
        return False
    return facts.arguments is None or any(_may_name(tool.schema, name) for name in facts.arguments)


def _may_name(schema: Mapping[str, Any] | None, name: str) -> bool:
    """Whether an argument may be a path or a URL: not if its JSON Schema admits numbers or listed values only."""
    properties = cast("Mapping[str, Any]", (schema or {}).get("properties") or {})
    found = properties.get(name)
    if not isinstance(found, Mapping):
        return True
    part = cast("Mapping[str, Any]", found)
    return "enum" not in part and part.get("type") not in ("integer", "number", "boolean", "null")


def cases_of(tool: KnownTool, patterns: Iterable[Pattern], project: Project) -> ToolCases:
    """Return the calls of a tool between which patterns can tell, and examples of its commands."""
    facts = tool.facts
    constraints: dict[str, list[ArgumentPattern]] = {}
    for pattern in patterns:
        for name, argument in _constraints(pattern, tool):
            constraints.setdefault(name, []).append(argument)
    values: dict[str, Sequence[str]] = {}
    incomplete: str | None = None
    try:
        for name, arguments in constraints.items():
            kind = facts.argument_kind(name)
            if kind == "command":
                continue
            if kind == "path":
                # No tool changes its root itself.
                paths = representative_paths(arguments)
                values[name] = [path for path in paths if path != "."] if name in facts.writes else paths
            else:
                values[name] = _listed(tool, name) or (representative_urls if kind == "host" else representative_texts)(
                    arguments
                )
    except TooManyError:
        return ToolCases([{}], "its rules can be combined in too many ways")
    size = 1
    for texts in values.values():
        size *= len(texts)
    if size > _MOST:
        return ToolCases([{}], "its rules can be combined in too many ways")
    calls = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    for name in facts.commands:
        commands = list(dict.fromkeys(_example_commands(constraints.get(name, ()), shell_of(tool, project))))
        calls = [{**call, name: command} for call in calls for command in commands]
    if facts.primary is not None and not values and not facts.commands:
        calls = _ordinary_calls(tool)
    return ToolCases([_with_required(tool, call) for call in calls], incomplete)


def _listed(tool: KnownTool, name: str) -> Sequence[str]:
    """Return the texts that an argument can be, if its JSON Schema lists them and the model is held to it."""
    properties = cast("Mapping[str, object]", (tool.schema or {}).get("properties") or {})
    found = properties.get(name)
    if tool.facts.kind == "mcp" or not isinstance(found, Mapping):
        return ()
    part = cast("Mapping[str, object]", found)
    listed = part.get("enum", [part["const"]] if "const" in part else ())
    values = cast("Sequence[object]", listed) if isinstance(listed, list | tuple) else ()
    texts = [each for each in values if isinstance(each, str)]
    return texts if len(texts) == len(values) else ()


def _ordinary_calls(tool: KnownTool) -> list[dict[str, str]]:
    """Return calls between which no rule tells."""
    names = tool.facts.primary_arguments
    return [
        dict(zip(names, each, strict=True)) for each in product(*(_listed(tool, name) or [_WORD] for name in names))
    ]


def _with_required(tool: KnownTool, call: dict[str, str]) -> dict[str, str]:
    """Return a call with those of its required arguments that rules compare."""
    required = (tool.schema or {}).get("required") or ()
    return {**{name: _WORD for name in tool.facts.named_arguments if name in required}, **call}


def _constraints(pattern: Pattern, tool: KnownTool) -> Iterator[tuple[str, ArgumentPattern]]:
    facts = tool.facts
    if pattern.action is not None:
        if pattern.primary is None or not concerns(pattern, facts):
            return
        names = {"files.read": facts.reads, "files.write": facts.writes}.get(pattern.action, facts.hosts)
        for name in names:
            if facts.argument_kind(name) != "command":
                yield name, pattern.primary
    elif pattern.names_tool(tool.name) or pattern.names_tool(tool.tool):
        if pattern.primary is not None:
            for name in facts.primary_arguments or facts.arguments or ():
                yield name, pattern.primary
        yield from pattern.named


def shell_of(tool: KnownTool, project: Project) -> ShellRules:
    """Return what the toolset of a shell decides by itself."""
    ref = tool.origin.ref
    found = project.registry.get(ref.name) if ref is not None else None
    if ref is not None and found is not None and isinstance(found.value, BuiltinToolset):
        config = {**found.value.config, **ref.options}
        texts = cast("Sequence[str]", config.get("allow") or ())
        return ShellRules(tuple(_command_patterns(texts)), read_only=config.get("read_only") is True)
    name = ref.name if ref is not None else ""
    return ShellRules(read_only=name == "shell_readonly", moves_only=name == "shell_file_ops")


def _command_patterns(texts: Iterable[str]) -> Iterator[Pattern]:
    for text in texts:
        try:
            yield parse_pattern(f"shell({text})")
        except PatternError:
            continue


def _example_commands(arguments: Iterable[ArgumentPattern], shell: ShellRules) -> Iterator[str]:
    """Yield commands: what the patterns spell, once as short as possible and once longer, and an ordinary one."""
    own = [pattern.primary for pattern in shell.allowed if pattern.primary is not None]
    for argument in (*arguments, *own):
        words = [[word.glob for word in command.words] for command in argument.command.commands]
        if not all(words):
            continue
        joins = ("", *(f" {join} " for join in argument.command.joins))
        for fill in ((), (_WORD,)):
            parts: list[str] = []
            for join, command in zip(joins, words, strict=True):
                open_ended = command[-1].is_star and len(command) > 1
                spelled = [glob.sample for glob in (command[:-1] if open_ended else command)]
                parts.append(join + " ".join(map(quote_argument, [*spelled, *(fill if open_ended else ())])))
            yield "".join(parts)
    if shell.read_only or shell.moves_only:
        yield "ls"
    if shell.moves_only:
        yield "mv x y"
    if not shell.read_only and not shell.moves_only:
        yield _WORD


def folder_of(tool: KnownTool, project: Project) -> str | None:
    """Return the folder that a tool's paths are relative to, as a path in the project; None if that isn't known."""
    ref = tool.origin.ref
    if ref is None or tool.toolset is None:
        return "."
    if ref.name.startswith("filesystem_cwd") or ref.name.startswith("shell_"):
        return None
    found = project.registry.get(ref.name)
    if found is None or not isinstance(found.value, BuiltinToolset):
        return "."
    config = {**found.value.config, **ref.options}
    folder = str(config.get("root" if config.get("type") == "filesystem" else "cwd", "."))
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    return None if folder.startswith(("/", "~")) or ".." in parts else "/".join(parts) or "."


def skill_folders(project: Project) -> list[str]:
    """Return the folders of all skills, the only ones that an agent can read as such."""
    skills = (skill for spec, _ in every_agent(project.registry) for skill in skills_of(spec))
    return list(dict.fromkeys(skill.folder for skill in skills))


def relative_patterns(pattern: Pattern, folder: str) -> list[Pattern]:
    """Return what a pattern about files of the project means for paths that are relative to a folder.

    Example:
        >>> [found.primary for found in relative_patterns(parse_pattern("files.write(src/**)"), "src")]
        [None]
        >>> relative_patterns(parse_pattern("files.write(src/**)"), "docs")
        []
    """
    argument = pattern.primary
    parts = [] if folder == "." else folder.split("/")
    if pattern.action in (None, "net") or argument is None or not parts:
        return [pattern]
    places = {0}
    segments = argument.path.segments
    for part in parts:
        places = _closed(segments, places)
        after: set[int] = set()
        for place in places:
            segment = segments[place] if place < len(segments) else None
            if place >= len(segments):
                after.add(place)  # below what matches
            elif segment is None:
                after.add(place)
            elif segment.matches(part, fold=True):
                after.add(place + 1)
        places = after
    found: list[Pattern] = []
    for place in sorted(_closed(segments, places)):
        rest = segments[place:]
        if all(segment is None for segment in rest):
            return [replace(pattern, primary=None)]
        atoms: list[Atom] = []
        for number, segment in enumerate(rest):
            atoms += [Atom("char", "/")] if number else []
            atoms += segment.atoms if segment is not None else (Atom("star"), Atom("star"))
        found.append(replace(pattern, primary=ArgumentPattern(tuple(atoms))))
    return found


def _closed(segments: Sequence[Glob | None], places: set[int]) -> set[int]:
    """Return the places in a pattern's segments that are reached without a segment, too."""
    found = set(places)
    for place in sorted(places):
        while place < len(segments) and segments[place] is None:
            place += 1
            found.add(place)
    return found
