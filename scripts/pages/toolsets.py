"""Generate the page about the toolsets that come with llm-do: options, tools, arguments and default decisions.

The data comes from a project that lists the toolsets, in the way of `llm-do tools` and `llm-do approvals explain`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_do import Project
from llm_do.formats.editor_schema import project_schema
from llm_do.policy.decision import decide
from llm_do.policy.rules import Policy
from llm_do.policy.values import ToolCallInfo
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE, find_builtin
from llm_do.ui.reports.explanation import explain_data
from llm_do.ui.reports.tool_list import tools_data
from scripts.pages import MissingExampleError
from scripts.pages.markdown import code, prose, table
from scripts.pages.project_files import manifests, write_json
from scripts.pages.schemas import Book

__all__ = ["CALLS", "options_book", "toolset_options"]

HEAD = """\
# Options of toolsets

The toolsets that come with llm-do: how each is configured, its tools and their arguments, and what happens to a call
that no rule of the project matches. [Toolsets](../toolsets.md) is the guide, [Approvals](../approvals.md) explains
rules. Those in the first table are listed by name; of these, only `memory` has options. Others are configured under
`toolsets` in the [manifest](project-json.md#keys), by a `type`, and listed by the name they get there. `prefix`,
`include` and `exclude` are [set where an agent lists a toolset](agent-files.md#toolsetsname); the options of a type may
be set there too, and take precedence over the manifest's.

An "allowed" call runs, one that "needs approval" waits for an answer, one that "needs a person" can only be allowed by
a person, and a "denied" call never runs.
"""

FILES = {"notes.txt": "Notes.\n", "tools.py": "TOOLS = []\n", ".env": "KEY=x\n", "docs/guide.md": "Guide.\n"}
CONFIGURED = {
    "files": {"type": "filesystem", "root": "docs"},
    "api": {"type": "http", "base_url": "https://api.example.org/v1/"},
    "commands": {"type": "shell", "allow": ["make test", "git log *"]},
    "notes": {"type": "memory", "scopes": ["thread", "user"]},
}

_FILE_CALLS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("read_file", {"path": "notes.txt"}),
    ("read_file", {"path": ".env"}),
    ("list_files", {}),
    ("search_files", {"pattern": "TODO"}),
)
_WRITES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("write_file", {"path": "notes.txt", "content": "..."}),
    ("write_file", {"path": "tools.py", "content": "..."}),
    ("write_file", {"path": ".git/config", "content": "..."}),
    ("write_file", {"path": "../notes.txt", "content": "..."}),
    ("edit_file", {"path": "notes.txt", "old": "a", "new": "b"}),
    ("make_directory", {"path": "letters"}),
    ("move_file", {"source": "notes.txt", "target": "old.txt"}),
    ("delete_file", {"path": "notes.txt"}),
)


def _commands(*lines: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [("shell", {"command": line}) for line in lines]


_REQUESTS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("http_get", {"url": "https://api.example.org/v1/users?page=2"}),
    ("http_request", {"method": "DELETE", "url": "https://api.example.org/v1/users/7"}),
)


CALLS: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "filesystem_project": (*_FILE_CALLS, *_WRITES),
    "filesystem_project_ro": _FILE_CALLS,
    "filesystem_cwd": (*_FILE_CALLS, *_WRITES),
    "filesystem_cwd_ro": _FILE_CALLS,
    "shell_readonly": _commands(
        "ls -l docs",
        "grep -rn TODO docs | head",
        "cd docs && ls *.md 2>/dev/null",
        "git log --oneline",
        "git log --output=x",
        "cat .env",
        "cat ../x",
        "rm x",
    ),
    "shell_file_ops": _commands("ls", "mv notes.txt old.txt", "rm notes.txt"),
    "http": _REQUESTS,
    "api": _REQUESTS,
    "skills": [
        ("load_skill", {"name": "dates"}),
        ("read_skill_file", {"skill": "letters", "path": "references/house.md"}),
    ],
    "ask_user": [("ask_user", {"question": "Which one?"})],
    "todo": [("todo_add", {"items": ["Look."]}), ("todo_update", {"number": 1, "status": "done"}), ("todo_list", {})],
    "dynamic_agents": [
        ("agent_create", {"name": "poet", "instructions": "Rhyme."}),
        ("agent_call", {"agent": "poet", "input": "Rain."}),
    ],
    "memory": [
        ("remember", {"text": "Prefers German.", "scope": "user"}),
        ("remember", {"text": "Closed on Mondays.", "scope": "project"}),
        ("recall", {"query": "language"}),
        ("forget", {"id": "3f9a2c41", "scope": "thread"}),
        ("forget", {"id": "3f9a2c41", "scope": "project"}),
    ],
    "notes": [
        ("remember", {"text": "Prefers German.", "scope": "user"}),
        ("recall", {}),
        ("forget", {"id": "3f9a2c41", "scope": "user"}),
    ],
    "files": [("read_file", {"path": "guide.md"}), ("write_file", {"path": "guide.md", "content": "..."})],
    "commands": [
        *_commands("make test", "make clean", "git log --oneline", "git log --output=x", "make test && git log -3"),
        *_commands("make test > log.txt"),
        ("shell", {"command": "make test", "cwd": "docs"}),
    ],
}
"""The calls that the page shows, by toolset."""

_SAME = {
    "filesystem_project_ro": "filesystem_project",
    "filesystem_cwd": "filesystem_project",
    "filesystem_cwd_ro": "filesystem_project",
    "shell_file_ops": "shell_readonly",
}
"""Toolsets whose tools are all or some of another's."""


def options_book() -> Book:
    """Return the options of configured toolsets."""
    return Book(project_schema(), manifests(), write_json)


def toolset_options() -> str:
    """Generate the page `toolset-options.md`."""
    with tempfile.TemporaryDirectory() as folder:
        project = _project(Path(folder))
        agents = {agent["name"]: agent for agent in tools_data(project)["agents"]}
        parts = [HEAD, "## Listed by name\n", _summary(agents)]
        for name in sorted(BUILTINS):
            parts += [f"## {code(name)}\n", *_builtin(project, agents, name)]
        parts += ["## Configured in the manifest\n", "An object under `toolsets`, by its `type`.\n"]
        book = options_book()
        configured = {"filesystem": "files", "http": "api", "shell": "commands", "memory": "notes", "mcp": ""}
        for kind, name in configured.items():
            parts += [f"### {code(f'type: {kind}')}\n", *_configured(project, agents, book, kind, name)]
    if missing := set(CONFIGURABLE) - set(configured):
        raise MissingExampleError(
            f"no toolset of type `{min(missing)}` is shown: add one to CONFIGURED in scripts/pages/toolsets.py, and to"
            " `configured` below"
        )
    return "\n".join([*parts, "## Words\n", book.words()])


def _project(folder: Path) -> Project:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    listed = [*BUILTINS, *CONFIGURED]
    for name in listed:
        text = f"---\nname: with_{name}\ntoolsets: [{name}]\n---\nWork.\n"
        (folder / f"{name}.agent").write_text(text, encoding="utf-8")
    manifest = {
        "version": 1,
        "entry": {"agent": f"with_{listed[0]}"},
        "agent_files": ["*.agent"],
        "python_files": ["tools.py"],
        "toolsets": CONFIGURED,
        "generated_agents_dir": "made",
    }
    (folder / "project.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Project.load(folder)


def _summary(agents: Mapping[str, Any]) -> str:
    rows = []
    for name in sorted(BUILTINS):
        found = find_builtin(name)
        assert found is not None
        tools = [code(tool["name"]) for tool in agents[f"with_{name}"]["tools"]]
        rows.append([f"[{code(name)}](#{name})", _first_sentence(found.load().__doc__), ", ".join(tools)])
    return table(["name", "what it is", "tools"], rows)


def _builtin(project: Project, agents: Mapping[str, Any], name: str) -> Iterator[str]:
    found = find_builtin(name)
    assert found is not None
    yield f"{_first_sentence(found.load().__doc__)}\n"
    if name in _SAME and CALLS[name] in (CALLS["filesystem_project"], CALLS["filesystem_project_ro"]):
        yield f"The tools and the decisions are those of [{code(_SAME[name])}](#{_SAME[name]}).\n"
        return
    if name in _SAME:
        yield f"The tool is that of [{code(_SAME[name])}](#{_SAME[name]}).\n"
    else:
        yield from _tools(agents[f"with_{name}"]["tools"])
    yield _decisions(project, name)


def _configured(project: Project, agents: Mapping[str, Any], book: Book, kind: str, name: str) -> Iterator[str]:
    section = next(section for section in book.sections.values() if section.kind == f"type: {kind}")
    yield f"{section.schema['description']}\n"
    yield book.rows(section.name)
    if kind == "mcp":
        effect = decide(ToolCallInfo("notes_search", {}, kind="mcp"), Policy()).effect
        verb = {"allow": "is allowed", "ask": "needs approval", "deny": "is denied"}[effect]
        yield (
            "Exactly one of `command` and `url` is required. The server lists its tools once it has started;\n"
            f"a call of one {verb}. `${{NAME}}` in `env` and `headers` is filled in\n"
            "from the environment, and a variable that isn't set is an error.\n"
        )
        return
    same = {"filesystem": "filesystem_project", "shell": "shell_readonly"}.get(kind, kind)
    yield f"The tools are those of [{code(same)}](#{same}). With `{json.dumps(CONFIGURED[name])}`:\n"
    yield _decisions(project, name)
    assert {tool["name"] for tool in agents[f"with_{name}"]["tools"]} == {
        tool["name"] for tool in agents[f"with_{same}"]["tools"]
    }


def _tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for tool in tools:
        yield f"{code(tool['name'])}: {prose(tool['description'])}\n"
        book = Book({**tool["parameters"], "title": ""}, [], write_json)
        rows = [
            [code(name), book.value(part), _default(tool["parameters"], name), prose(part.get("description", ""))]
            for name, part in tool["parameters"].get("properties", {}).items()
        ]
        if rows:
            yield table(["argument", "value", "default", "meaning"], rows)


def _default(schema: Mapping[str, Any], name: str) -> str:
    if name in schema.get("required", ()):
        return "required"
    value = schema["properties"][name].get("default")
    return "none" if value is None else code(json.dumps(value))


def _decisions(project: Project, name: str) -> str:
    if name not in CALLS:
        raise MissingExampleError(
            f"no call of the toolset `{name}` is shown: add it to CALLS in scripts/pages/toolsets.py"
        )
    rows = []
    for tool, args in CALLS[name]:
        explained = explain_data(project, [f"with_{name}", tool, json.dumps(args)])
        shown = ", ".join(f"{key}={json.dumps(value)}" for key, value in args.items())
        reason = explained["reason"].removeprefix(f"{tool} is ").partition(": ")[2] or explained["reason"]
        rows.append([code(f"{tool}({shown})"), _word(explained["effect"], person=explained["person_only"]), reason])
    return table(["call", "without a rule", "why"], rows)


def _word(effect: str, *, person: bool) -> str:
    return {"allow": "allowed", "ask": "needs a person" if person else "needs approval", "deny": "denied"}[effect]


def _first_sentence(text: str | None) -> str:
    return prose((text or "").partition("\n\n")[0])
