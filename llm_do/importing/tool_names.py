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
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "todowrite": "todo",
    "todoread": "todo",
    "taskcreate": "todo",
    "taskupdate": "todo",
    "tasklist": "todo",
    "taskget": "todo",
    "askuserquestion": "ask_user",
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
    **dict.fromkeys(("skill", "slashcommand"), "there are no commands of Claude Code here; put what it needs below"),
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
        others: `shell`, `web_fetch`, `web_search`, `todo` and `ask_user`.
        agents: Agents that it may call.
        servers: Tools of MCP servers, each as the server's name and the tool's; `*` stands for all of its tools.
        notes: What can't be said, a sentence each.
    """

    files: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    agents: tuple[str, ...] = ()
    servers: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def without(self, denied: Granted) -> Granted:
        """What is left without what `denied` stands for."""
        agents = tuple(name for name in self.agents if name not in denied.agents)
        servers = tuple(each for each in self.servers if not {each, (each[0], "*")} & {*denied.servers})
        return Granted(self.files - denied.files, self.others - denied.others, agents, servers, self.notes)


EVERYTHING = Granted(
    frozenset(FILES),
    frozenset(("shell", "todo")),
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
        elif pattern in ("", "*"):
            (files if own in FILES else others).add(own)
        elif denying:
            notes.append(_denied_pattern(word, pattern, own))
        else:
            (files if own in FILES else others).add(own)
            notes.append(_pattern(word, pattern, own))
    return Granted(frozenset(files), frozenset(others), tuple(agents), tuple(servers), tuple(_each_once(notes)))


def _absent(word: str, key: str) -> str:
    if key in _NEEDLESS:
        return f"the tool `{word}` isn't needed: {_NEEDLESS[key]}"
    if key in _ABSENT:
        return f"the tool `{word}` is left out: {_ABSENT[key]}"
    meant = closest_match(word, _NAMES, spelling_only=True)
    return f"the tool `{word}` is unknown and left out" + (f"; `{meant}` may be meant" if meant else "")


def _pattern(word: str, pattern: str, own: str) -> str:
    if own == "shell":
        return (
            f"`{word}({pattern})` became `shell`, where each command needs approval: allow some with a rule under "
            "`approvals` in project.json"
        )
    return (
        f"`{word}({pattern})` became `{own}` without the pattern: restrict it with a rule under `approvals` in "
        "project.json"
    )


def _denied_pattern(word: str, pattern: str, own: str) -> str:
    return (
        f"`{word}({pattern})` can't be denied in an agent file: write a rule for `{own}` under `approvals.deny` in "
        "project.json"
    )


def _each_once(notes: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(notes)
