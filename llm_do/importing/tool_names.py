"""The tools of Claude Code by name, and what stands for each of them here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from llm_do._startup.frozen import frozen
from llm_do.project.tools.builtin_toolsets import FILES
from llm_do.text.words import closest_match

__all__ = ["EVERYTHING", "Granted", "grant"]

_FILE_TOOLS: Mapping[str, str] = {
    "read": "read_file",
    "notebookread": "read_file",
    "grep": "search_files",
    "glob": "list_files",
    "ls": "list_files",
    "write": "write_file",
    "edit": "edit_file",
    "multiedit": "edit_file",
}
_OTHERS: Mapping[str, str] = {
    "bash": "shell",
    "webfetch": "http",
    "websearch": "web_search",
    "todowrite": "todo",
    "todoread": "todo",
    "taskcreate": "todo",
    "taskupdate": "todo",
    "tasklist": "todo",
    "taskget": "todo",
    "askuserquestion": "ask_user",
    "skill": "skills",
    "task": "agents",
    "agent": "agents",
}
_NEEDLESS: Mapping[str, str] = {
    **dict.fromkeys(
        ("bashoutput", "killbash", "killshell", "taskoutput", "taskstop"),
        "commands run to their end, and none stays in the background",
    ),
    **dict.fromkeys(("exitplanmode", "enterplanmode"), "there is no plan mode; a flow with `mode: plan` plans"),
}
_ABSENT: Mapping[str, str] = {
    "slashcommand": "there are no commands of Claude Code here; put what it needs below",
    "notebookedit": "nothing edits notebooks; `edit_file` changes them as text",
    "listmcpresourcestool": "resources of MCP servers aren't read",
    "readmcpresourcetool": "resources of MCP servers aren't read",
}
_NAMES = (
    *("Read", "NotebookRead", "Grep", "Glob", "LS", "Write", "Edit", "MultiEdit", "NotebookEdit", "Bash", "BashOutput"),
    *("KillShell", "WebFetch", "WebSearch", "TodoWrite", "AskUserQuestion", "Task", "Agent", "ExitPlanMode", "Skill"),
    "SlashCommand",
)
_EVERY = ("*", "all", "alltools", "inherit", "default", "any", "everything")
_TOOL = re.compile(r"([A-Za-z*][\w*.:/ -]*?)\s*(?:\((.*)\)?)?", re.DOTALL)
_SERVER = re.compile(r"mcp__(.+?)(?:__(.*))?", re.DOTALL)


@frozen
class Granted:
    """What a list of tools stands for.

    Args:
        files: Tools of file toolsets.
        others: `shell`, `http`, `web_search`, `todo`, `ask_user` and `skills`.
        agents: Agents that it may call.
        servers: Tools of MCP servers, each as the server's name and the tool's; `*` stands for all of its tools.
        notes: What couldn't be converted, a sentence each.
        skills: Skills that it may load, if not all of them.
    """

    files: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    agents: tuple[str, ...] = ()
    servers: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()

    def without(self, denied: Granted) -> Granted:
        """What is left without what `denied` stands for."""
        agents = tuple(name for name in self.agents if name not in denied.agents)
        servers = tuple(each for each in self.servers if not {each, (each[0], "*")} & {*denied.servers})
        skills = tuple(name for name in self.skills if name not in denied.skills and "skills" not in denied.others)
        return Granted(self.files - denied.files, self.others - denied.others, agents, servers, self.notes, skills)


EVERYTHING = Granted(
    frozenset(FILES),
    frozenset(("shell", "todo", "skills")),
    notes=(
        "no list of tools, so Claude Code gives it every tool: it got files, commands and the to-do list, but no web "
        "and no MCP servers; write `toolsets` with what it needs",
    ),
)
"""What an agent without a list of tools gets."""


def grant(names: Sequence[str], *, denying: bool = False) -> Granted:
    """Return what tools of Claude Code stand for.

    Args:
        names: Their names, with a pattern in parentheses if they have one.
        denying: Whether the tools are taken away, so that one with a pattern is no tool as a whole.

    Example:
        >>> found = grant(["Read", "Grep", "Bash", "Telepathy"])
        >>> sorted(found.files), sorted(found.others), found.notes
        (['read_file', 'search_files'], ['shell'], ('the tool `Telepathy` is unknown and left out',))
    """
    if any(re.sub(r"[\s_-]", "", name).lower() in _EVERY for name in names):
        return EVERYTHING if not denying else Granted(EVERYTHING.files, EVERYTHING.others)
    files: set[str] = set()
    others: set[str] = set()
    agents: list[str] = []
    servers: list[tuple[str, str]] = []
    skills: list[str] = []
    notes: list[str] = []
    for name in names:
        found = _TOOL.fullmatch(name)
        word, pattern = (found[1], (found[2] or "").strip(") ")) if found is not None else (name, "")
        key = re.sub(r"[\s_-]", "", word).lower().removesuffix("tool")
        own = _FILE_TOOLS.get(key) or _OTHERS.get(key)
        server = _SERVER.fullmatch(word)
        if server is not None:
            servers.append((server[1], server[2] or "*"))
        elif own is None:
            notes.append(_absent(word, key))
        elif own == "agents":
            called = [each.strip() for each in pattern.split(",") if each.strip() not in ("", "*")]
            agents += called
            notes += [] if called else [f"`{word}` names no agents: list those that it may call under `toolsets`"]
        elif own == "skills" and pattern not in ("", "*"):
            skills.append(pattern.split()[0].rpartition(":")[2])
            notes += [_denied_skill(word, skills[-1])] if denying else []
        elif pattern in ("", "*"):
            (files if own in FILES else others).add(own)
        elif denying:
            notes.append(_denied_pattern(word, pattern, own))
        else:
            (files if own in FILES else others).add(own)
            notes.append(_pattern(word, pattern, own))
    return Granted(
        frozenset(files), frozenset(others), tuple(agents), tuple(servers), tuple(_each_once(notes)), tuple(skills)
    )


def _absent(word: str, key: str) -> str:
    if key in _NEEDLESS:
        return f"the tool `{word}` isn't needed: {_NEEDLESS[key]}"
    if key in _ABSENT:
        return f"the tool `{word}` is left out: {_ABSENT[key]}"
    meant = closest_match(word, _NAMES, spelling_only=True)
    return f"the tool `{word}` is unknown and left out" + (f"; `{meant}` may be meant" if meant else "")


def _pattern(word: str, pattern: str, own: str) -> str:
    if own == "http":
        return (
            f"`{word}({pattern})` became `http_get`, where each URL needs approval: allow some with a rule such as "
            f"`{_url_rule(pattern)}` under `approvals` in project.json"
        )
    if own == "shell":
        return (
            f"`{word}({pattern})` became `shell`, where each command needs approval: allow some with a rule under "
            "`approvals` in project.json"
        )
    return (
        f"`{word}({pattern})` became `{own}` without the pattern: restrict it with a rule under `approvals` in "
        "project.json"
    )


def _url_rule(pattern: str) -> str:
    host = pattern.partition("domain:")[2].strip()
    return f"http_get(https://{host if re.fullmatch(r'[A-Za-z0-9.-]+', host) else 'HOST'}/**)"


def _denied_pattern(word: str, pattern: str, own: str) -> str:
    own = _url_rule(pattern) if own == "http" else own
    return (
        f"`{word}({pattern})` can't be denied in an agent file: write a rule for `{own}` under `approvals.deny` in "
        "project.json"
    )


def _denied_skill(word: str, name: str) -> str:
    return (
        f"`{word}({name})` can't be denied in an agent file: write the rule `load_skill({name})` under "
        "`approvals.deny` in project.json"
    )


def _each_once(notes: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(notes)
