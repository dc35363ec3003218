"""Which files an import writes: a name for each agent, an entry, and a manifest. It touches no file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from llm_do._startup.frozen import frozen
from llm_do.importing.agent_text import Available, agent_text, toolsets_of
from llm_do.importing.frontmatter import NotAnAgentError, UnreadableFileError
from llm_do.importing.skill_plan import SKILLS, plan_skills
from llm_do.importing.tool_names import EVERYTHING, Granted
from llm_do.importing.translation import ALIASES, Draft, Note, translate

__all__ = ["FOLDER", "SKILLS", "ImportPlan", "SourceFile", "SourceNote", "Target", "plan_import"]

FOLDER = "agents"
"""Where agents are written, below the project's folder."""

_MAX_STEPS = 50
"""Model requests in one run: agents that work on files need more than the default."""

_LEADER = """\
You lead a team of agents. Give each task to the agent whose description fits it best, with everything that it needs to
know: it sees nothing but what you write. Answer with what came of it.
"""


_ALONE = Draft(
    "main",
    "Works in the project's folder.",
    replace(EVERYTHING, notes=()),
    "You help with the work in this folder. Look at the files before you answer or change anything.",
)
"""The agent of a project that has only skills: as Claude Code itself, it has files, commands and the to-do list."""


@frozen
class SourceFile:
    """A file to import.

    Args:
        file: How it is named in notes.
        text: Its text.
    """

    file: str
    text: str


@frozen
class SourceNote:
    """Something about a file that couldn't be said.

    Args:
        file: The file.
        note: What.
    """

    file: str
    note: Note


@frozen
class Target:
    """The project that agents are imported into.

    Args:
        title: Its name, for a new manifest.
        exists: Whether it has a manifest.
        shell: Its toolset for commands, if it has one.
        servers: Its toolsets that are MCP servers.
        models: Its aliases of models.
        taken: Names that its own agents, toolsets, flows and functions have, each with its file.
        skills: The names of its skills that are where skills are written.
    """

    title: str
    exists: bool = False
    shell: str | None = None
    servers: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    taken: Mapping[str, str] | None = None
    skills: frozenset[str] = frozenset()


@frozen
class ImportPlan:
    """What an import would write.

    Args:
        files: The texts of files, by path below the project's folder.
        notes: What couldn't be converted, in the order of the files.
        refused: Why files can't be imported, as the end of a sentence about each.
        others: Why files are no agents at all.
        skills: The folders of skills, below the project's folder, by their source.
    """

    files: Mapping[str, str]
    notes: Sequence[SourceNote]
    refused: Mapping[str, str]
    others: Mapping[str, str]
    skills: Mapping[str, str] = field(default_factory=dict[str, str])


@frozen
class _Named:
    source: SourceFile
    draft: Draft
    name: str


def plan_import(sources: Iterable[SourceFile], target: Target, skills: Iterable[SourceFile] = ()) -> ImportPlan:
    r"""Decide what to write for a number of files.

    Args:
        sources: The files of agents.
        target: The project.
        skills: The `SKILL.md` files of skills.

    Example:
        >>> plan = plan_import([SourceFile("a.md", "---\nname: a\ntools: Read\n---\nHelp.")], Target("shop"))
        >>> list(plan.files), plan.refused
        (['agents/a.agent', 'project.json'], {})
    """
    notes: list[SourceNote] = []
    refused: dict[str, str] = {}
    others: dict[str, str] = {}
    drafts: list[tuple[SourceFile, Draft]] = []
    for source in sources:
        try:
            draft = translate(source.text, source.file)
            agent_text(draft, draft.name, Available("commands"))  # so that no agent names one that can't be written
        except NotAnAgentError as error:
            others[source.file] = str(error)
            continue
        except UnreadableFileError as error:
            refused[source.file] = str(error)
            continue
        drafts.append((source, draft))
    planned = plan_skills(skills)
    notes += [SourceNote(file, note) for file, note in planned.notes]
    refused |= planned.refused or {}
    if planned.folders and not drafts and not target.exists:
        drafts.append((SourceFile("", ""), _ALONE))
    named = _name_all(drafts, target, notes)
    shell = target.shell or ("shell_readonly" if target.exists else _free("commands", {each.name for each in named}))
    files: dict[str, str] = {f"{planned.folders[file]}/SKILL.md": text for file, text in planned.texts.items()}
    agents = {each.draft.name: each.name for each in reversed(named)}
    known = {**{name: f"{SKILLS}/{name}" for name in target.skills}, **planned.names}
    models = target.models if target.exists else frozenset(ALIASES)
    available = Available(shell, agents, target.servers, models, known)
    for each in named:
        files[path_of(each.name)] = agent_text(each.draft, each.name, available)
        notes += [SourceNote(each.source.file, note) for note in each.draft.notes]
        notes += [SourceNote(each.source.file, note) for note in _more_notes(each.draft, target, available)]
    if named and not target.exists:
        entry = _entry(named, files, shell)
        uses_shell = any(shell in toolsets_of(each.draft, available) for each in named)
        aliases = sorted({each.draft.alias for each in named if each.draft.alias is not None})
        has_skills = bool(planned.folders)
        files["project.json"] = _manifest(
            target.title, entry, shell if uses_shell else None, aliases, has_skills=has_skills
        )
    return ImportPlan(files, notes, refused, others, planned.folders)


def path_of(name: str) -> str:
    """Where the agent of a name is written."""
    return f"{FOLDER}/{name}.agent"


def _name_all(drafts: Sequence[tuple[SourceFile, Draft]], target: Target, notes: list[SourceNote]) -> list[_Named]:
    """Give each agent a name of its own; a file that is the same as another is left out."""
    taken = {name.casefold() for name, file in (target.taken or {}).items() if file != path_of(name)}
    seen: dict[str, Draft] = {}
    named: list[_Named] = []
    for source, draft in drafts:
        same = next((name for name, other in seen.items() if _is_same(draft, other)), None)
        if same is not None:
            notes.append(SourceNote(source.file, Note(f"it is the same as `{same}`, and is left out")))
            continue
        name = _free(draft.name, taken)
        if name != draft.name:
            notes.append(SourceNote(source.file, Note(f"it is called `{name}`: there is a `{draft.name}` already")))
        taken.add(name.casefold())
        seen[name] = draft
        named.append(_Named(source, draft, name))
    return named


def _is_same(draft: Draft, other: Draft) -> bool:
    parts = ("name", "description", "granted", "instructions", "model", "alias", "skills")
    return all(getattr(draft, part) == getattr(other, part) for part in parts)


def _free(name: str, taken: Iterable[str]) -> str:
    """A name that isn't taken, in whichever case: file systems may take two for one."""
    used = {each.casefold() for each in taken}
    if name.casefold() not in used:
        return name
    return next(new for number in range(2, len(used) + 3) if (new := f"{name[:58]}-{number}").casefold() not in used)


def _more_notes(draft: Draft, target: Target, available: Available) -> list[Note]:
    line = draft.tools_line
    notes = [
        Note(f"it may call `{name}`, which is not imported, so that is left out", line)
        for name in draft.granted.agents
        if name not in available.agents
    ]
    notes += [
        Note(f"it uses the skill `{name}`, which is not imported, so that is left out", draft.skills_line)
        for name in draft.skills or ()
        if name not in available.skills
    ]
    notes += [
        Note(
            f"the tools of the MCP server `{server}` are left out: declare it under `toolsets` in project.json with "
            '`"type": "mcp"`, and list it under `toolsets` here',
            line,
        )
        for server in dict.fromkeys(server for server, _ in draft.granted.servers)
        if server not in target.servers
    ]
    if target.exists and draft.alias is not None and draft.alias not in target.models:
        entry = f'"{draft.alias}": "{ALIASES[draft.alias]}"'
        text = f"`model: {draft.alias}` is left to the project: add `{entry}` to `models` in project.json, and use it"
        notes.append(Note(text, draft.model_line))
    if target.exists and target.shell is None and "shell" in draft.granted.others and not draft.read_only:
        notes.append(
            Note(
                "`Bash` became `shell_readonly`, because project.json has no toolset for commands: add "
                '`"commands": {"type": "shell"}` to its `toolsets`, and list `commands` instead',
                line,
            )
        )
    return notes


def _entry(written: Sequence[_Named], files: dict[str, str], shell: str) -> str:
    """The agent that runs first: the only one, or one that calls the others."""
    if len(written) == 1:
        return written[0].name
    name = _free("main", {*(each.name for each in written), shell})
    members = tuple(each.name for each in written)
    leader = Draft(name, "Gives each task to the agent that fits it.", Granted(agents=members), _LEADER.rstrip())
    files[path_of(name)] = agent_text(leader, name, Available(shell, {member: member for member in members}))
    return name


def _manifest(title: str, entry: str, shell: str | None, models: Sequence[str], *, has_skills: bool) -> str:
    document: dict[str, object] = {
        "version": 1,
        "name": title,
        "entry": {"agent": entry},
        "agent_files": [f"{FOLDER}/*.agent"],
    }
    if has_skills:
        document["skills"] = [f"{SKILLS}/*"]
    if models:
        document["models"] = {name: ALIASES[name] for name in models}
    if shell is not None:
        document["toolsets"] = {shell: {"type": "shell"}}
    document["runtime"] = {"max_steps": _MAX_STEPS}
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
