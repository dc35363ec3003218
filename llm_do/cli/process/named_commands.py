"""Commands that a message names: they get the options that find the project which this command line names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from llm_do._startup.plain_commands import read_options

__all__ = ["TAKES", "complete_commands"]

_PROJECT, _ENV_FILE, _STORE = "--project", "--env-file", "--store"
_LOOKS = (_PROJECT, _ENV_FILE)
_OPENS = (_PROJECT, _STORE, _ENV_FILE)

TAKES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("run", "map", "worker", "resume", "chat", "test", "mcp"), _OPENS),
    **dict.fromkeys(("check", "graph", "tools", "lock", "doctor", "models", "approvals explain"), _LOOKS),
    **dict.fromkeys(("approvals list", "approvals revoke", "approvals accept", "undo"), (_PROJECT,)),
    **dict.fromkeys(("approvals pending", "approvals show", "approvals answer", "approvals replay"), _OPENS),
    **dict.fromkeys((f"threads {each}" for each in ("list", "show", "config", "set", "fork")), _OPENS),
    **dict.fromkeys((f"threads {each}" for each in ("branch", "delete", "export", "import")), _OPENS),
    **dict.fromkeys((f"memory {each}" for each in ("list", "show", "forget")), _OPENS),
    **dict.fromkeys((f"runs {each}" for each in ("list", "costs", "show", "compare", "drop", "prune")), _OPENS),
}
"""Which of the options that name a project and its store each command takes; the other commands take none."""

_COMMAND = re.compile(r"`llm-do ([a-z]+(?: [a-z]+)?)\b([^`\n]*)`")
_COMPLETE = re.compile(r" (?:-p|--project|--store|--help|PROJECT)\b")
"""What a command has that names its project itself, or needs none."""


def complete_commands(text: str) -> str:
    """Give the commands in backquotes the options of this command line that name its project, where they are taken.

    A command copied from a message then finds the project in the folder in which this one was given. Indented lines
    are quotations, and stay as they are.
    """
    same = {name: value for name, value in _same_options().items() if value}
    if not same:
        return text
    lines = text.split("\n")
    return "\n".join(each if each[:1] == " " else _COMMAND.sub(lambda it: _complete(it, same), each) for each in lines)


def _same_options() -> dict[str, str]:
    from llm_do.ui.reports.open_questions import same_project

    named = read_options.get("named")
    project = read_options.get("project")
    if not named and isinstance(project, str) and os.path.lexists(project):  # else it is a prompt
        named = project
    store, env_file = read_options.get("store"), read_options.get("env_file")
    return {
        _PROJECT: same_project(_text(named), None, None),
        _STORE: same_project(None, _text(store), None),
        _ENV_FILE: same_project(None, None, _text(env_file)),
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _complete(found: re.Match[str], same: Mapping[str, str]) -> str:
    words, rest = found[1], found[2]
    command = words if words in TAKES else words.partition(" ")[0]
    rest = words[len(command) :] + rest
    if command not in TAKES or _COMPLETE.search(rest):
        return found[0]
    options = "".join(same[name] for name in TAKES[command] if name in same)
    return f"`llm-do {command}{options}{rest}`"
