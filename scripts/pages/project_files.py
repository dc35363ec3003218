"""Generate the pages about the keys of `.agent` files and of the manifest from the schemas that editors use.

The examples come from docs/reference/example and project.json.example, which tests link.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from llm_do.formats.agent_file import parse_agent
from llm_do.formats.editor_schema import agent_schema, project_schema
from scripts.pages.markdown import fenced
from scripts.pages.schemas import Book

__all__ = ["agent_book", "agent_files", "manifests", "project_book", "project_json", "write_json"]

SHARED = {
    "ModelSettings": "agent-files.md#model_settings",
    "HooksFile": "agent-files.md#hooks",
    "CompactionFile": "agent-files.md#compaction",
    "FilesystemConfig": "toolset-options.md#type-filesystem",
    "HttpConfig": "toolset-options.md#type-http",
    "ShellConfig": "toolset-options.md#type-shell",
    "MemoryConfig": "toolset-options.md#type-memory",
    "McpConfig": "toolset-options.md#type-mcp",
}
"""Objects of the manifest that other pages explain."""


ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "reference" / "example"
MANIFESTS = (EXAMPLE / "project.json", ROOT / "project.json.example", EXAMPLE / "flow.json")
SHOWN = ("planner.agent", "guide.agent", "editor.agent")

AGENT_HEAD = """\
# Keys of `.agent` files

An agent is a file: YAML between two lines `---`, and below it the instructions, in UTF-8.
[Authoring](../authoring.md) is the guide; this page has every key. Keys that are not here are errors, nothing is
converted (`"3"` is not a number, `no` is not text), and no key may be null. `llm-do check` reports every error with
its place; `llm-do schema agent` prints the same as a JSON Schema, with which an [editor](../editors.md) completes the
file.

Only `name` is required. A key that is omitted and has no default here takes the project's setting
([`runtime`](project-json.md#runtime), [`model`](project-json.md#keys)), or isn't sent at all. `[]` in a heading
means each item of a list, `NAME` a name of your choice. The examples are from [a project that uses every
key](#the-example).

## Keys
"""

PROJECT_HEAD = """\
# Keys of `project.json`

The manifest of a project: JSON in UTF-8, without comments. [project.json](../project-json.md) is the guide; this page
has every key. Keys that are not here are errors, nothing is converted, and no key may be null except where it says
so. `llm-do check` reports every error with its place; `llm-do schema project` prints the same as a JSON Schema, with
which an [editor](../editors.md) completes the file. `version` and `entry` are required, and one of `agent_files` and
`python_files` has to name a file.

`[]` in a heading means each item of a list, `NAME` a name of your choice. The examples are from [a project that
uses every key](#the-example) and from [project.json.example](../../project.json.example).

## Keys
"""


def agent_book() -> Book:
    """Return the keys of `.agent` files."""
    files = sorted(EXAMPLE.glob("*.agent"))
    return Book(agent_schema(), [_frontmatter(path) for path in files if path.name in SHOWN], _yaml)


def project_book() -> Book:
    """Return the keys of the manifest."""
    return Book(project_schema(), manifests(), write_json, SHARED)


def manifests() -> list[Any]:
    """Return the manifests that examples are taken from."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in MANIFESTS]


def agent_files() -> str:
    """Generate the page `agent-files.md`."""
    files = [f"`{name}`\n\n{fenced((EXAMPLE / name).read_text(encoding='utf-8'), 'yaml')}" for name in SHOWN]
    intro = "The agents of [example](example); a test links it.\n"
    return _page(AGENT_HEAD, agent_book(), [intro, *files])


def project_json() -> str:
    """Generate the page `project-json.md`."""
    text = (EXAMPLE / "project.json").read_text(encoding="utf-8")
    intro = (
        "The manifest of [example](example); a test links it. An entry that is a function is in\n"
        "[project.json.example](../../project.json.example), one that is a flow in [flow.json](example/flow.json).\n"
    )
    return _page(PROJECT_HEAD, project_book(), [intro, fenced(text, "json")])


def _page(head: str, book: Book, example: list[str]) -> str:
    parts = [head, book.rows("")]
    parts += [f"{rule}\n" for rule in book.rules("")]
    parts += [book.section(name) for name in book.sections if name]
    parts += ["## Words\n", book.words(), "## The example\n", *example]
    return "\n".join(parts)


def _frontmatter(path: Path) -> object:
    node = parse_agent(path.read_text(encoding="utf-8"), path.name).node
    assert node is not None
    return node.data()


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False).removesuffix("...\n").strip()


def write_json(value: object) -> str:
    """Format a value as in a manifest, on one line."""
    return json.dumps(value, ensure_ascii=False)
