"""The pages of docs/reference: up to date with the code, complete, and with examples that link."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import llm_do
from llm_do import Project
from llm_do.errors import EXIT_CODES
from llm_do.formats.editor_schema import agent_schema, project_schema
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE, find_builtin, known_tools
from llm_do.runtime.record.events.event import EVENT_TYPES, Event
from llm_do.runtime.record.events.event_base import EventBase
from scripts import reference
from scripts.pages import api, docstrings, markdown, project_files, runs, samples, schemas, toolsets
from tests.support.programs import install_program
from tests.support.tables import each_row

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLE = DOCS / "reference" / "example"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")),
        *DOCS.glob("**/*.md"),
        *ROOT.glob("examples/*/README.md"),
    ]
)
LINK = re.compile(r"\[[^\]]*\]\((?P<to>[^)\s]+)\)")


def text_of(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


@cache
def tables(name: str) -> list[list[str]]:
    """The first column of every table of a page, without the head."""
    found: list[list[str]] = [[]]
    for line in text_of(name).splitlines():
        if line.startswith("| "):
            found[-1].append(line.split("|")[1].strip().strip("`"))
        elif found[-1]:
            found.append([])
    return [rows[2:] for rows in found if rows]


def section(name: str, heading: str) -> str:
    """The text below a heading of a page, up to the next one of its level."""
    text = text_of(name)
    (start,) = re.finditer(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    below = text[start.end() :]
    end = re.search(rf"^#{{1,{len(start[1])}}} ", below, re.MULTILINE)
    return below[: end.start()] if end else below


def objects(schema: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Every object with fixed keys, by name, with its keys."""
    for name, part in [("", schema), *schema["$defs"].items()]:
        if part.get("properties"):
            yield name, list(part["properties"])


OBJECTS = {(kind, name): keys for kind in (agent_schema, project_schema) for name, keys in objects(kind())}


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_matches_the_code(name: str) -> None:
    assert text_of(name) == reference.page(name), "run: python scripts/reference.py"


def test_every_page_is_made() -> None:
    assert sorted(path.name for path in (DOCS / "reference").glob("*.md")) == sorted(reference.PAGES)


@each_row("kind, name", OBJECTS)
def test_a_table_has_every_key_of_an_object_of_the_files(kind: Any, name: str) -> None:
    shown = [rows for page in ("agent-files.md", "project-json.md", "toolset-options.md") for rows in tables(page)]

    assert OBJECTS[kind, name] in shown, "run: python scripts/reference.py"


@pytest.mark.parametrize("manifest", ["project.json", "flow.json"])
def test_the_example_links_without_a_finding(manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_DO_MODEL", raising=False)
    install_program(tmp_path, "maps-server", monkeypatch)

    # The programs of its servers are on no machine.
    assert [each for each in Project.load(EXAMPLE / manifest).warnings if each.code != "LD707"] == []


def test_the_blocks_about_files_are_files_of_the_example() -> None:
    files = [path.read_text(encoding="utf-8") for path in EXAMPLE.iterdir() if path.suffix in (".agent", ".json")]
    blocks = [
        found["body"]
        for page in ("agent-files.md", "project-json.md")
        for found in markdown.FENCED.finditer(text_of(page))
    ]

    assert len(blocks) == 4
    assert [block for block in blocks if block not in files] == []


@each_row("kind", get_args(Event))
def test_an_events_section_has_its_fields_and_shows_them(kind: type[EventBase]) -> None:
    own = {field.name for field in dataclasses.fields(kind)} - {field.name for field in dataclasses.fields(EventBase)}
    names = {{"source": "from", "target": "to"}.get(name, name) if kind.type == "handoff" else name for name in own}
    assert f"\n## `{kind.type}`\n" in text_of("events.md"), "run: python scripts/reference.py"
    text = section("events.md", f"`{kind.type}`")
    (shown,) = markdown.FENCED.finditer(text)

    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == names
    assert set(json.loads(shown["body"])) == names | {"type"}


def test_all_events_are_listed() -> None:
    assert [row.partition("`]")[0].removeprefix("[`") for row in tables("events.md")[0]] == list(EVENT_TYPES), (
        "run: python scripts/reference.py"
    )


def test_the_guide_to_events_names_every_type() -> None:
    guide = text_of("../events-and-hooks.md").partition("\n## Hooks\n")[0]

    missing = [kind for kind in EVENT_TYPES if f"`{kind}`" not in guide]
    assert missing == [], "add it to the list in docs/events-and-hooks.md"


def test_every_status_is_explained() -> None:
    assert list(EXIT_CODES) in tables("results.md")


@each_row("name", BUILTINS)
def test_every_tool_of_a_toolset_is_listed(name: str) -> None:
    found = find_builtin(name)
    assert found is not None
    tools = known_tools(found, {})
    assert tools is not None
    rows = [line for line in text_of("toolset-options.md").splitlines() if line.startswith(f"| [`{name}`]")]
    assert rows, "run: python scripts/reference.py"
    (row,) = rows

    assert row.split("|")[3].strip() == ", ".join(f"`{tool}`" for tool in tools)
    assert {tool for tool, _ in toolsets.CALLS[name]} == set(tools)
    for facts in tools.values():
        assert list(facts.arguments or ()) in [*tables("toolset-options.md"), []]


@each_row("name", sorted({*BUILTINS, *CONFIGURABLE}))
def test_the_guide_to_toolsets_names_every_built_in(name: str) -> None:
    guide = text_of("../toolsets.md")

    assert f"`{name}`" in guide or f'"type": "{name}"' in guide, "describe it in docs/toolsets.md"


@each_row("each", api.names())
def test_every_public_name_is_documented(each: api.Name) -> None:
    assert each.parts.text
    assert f"\n## `{each.heading}`\n" in text_of(f"python-{each.page}.md")
    for key, member in vars(each.value).items() if each.kind == "class" else ():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not key.startswith("_") and inspect.isfunction(function):
            assert inspect.getdoc(function) or inspect.getdoc(getattr(each.value, key)), key


def test_every_name_that_the_package_exports_is_public() -> None:
    assert {each.name for each in api.names() if each.module == "llm_do"} == set(llm_do.__all__)


@each_row("page", PAGES)
def test_what_a_page_imports_is_public(page: Path) -> None:
    public = {(each.module, each.name) for each in api.names()}
    public |= {
        (module, name) for module, chosen in api.MODULES.items() for name in chosen or import_module(module).__all__
    }
    imported = [
        (module, name.strip())
        for found in markdown.FENCED.finditer(page.read_text(encoding="utf-8"))
        if found["info"].startswith("python")
        for module, names in re.findall(r"^from (llm_do[\w.]*) import ([\w, ]+)$", found["body"], re.MULTILINE)
        for name in names.split(",")
    ]

    assert [each for each in imported if each not in public] == []


@each_row("module", [api, docstrings, markdown, project_files, runs, samples, schemas, toolsets])
def test_the_examples_in_the_generator_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def anchors(page: Path) -> set[str]:
    return {anchor for _, anchor in markdown.headings(page.read_text(encoding="utf-8"))}


def test_each_public_name_links_to_its_own_entry() -> None:
    links = re.findall(r"^\| \[`\w+`\]\((python-\w+\.md)#([\w-]+)\) \|", text_of("python.md"), re.MULTILINE)
    entries = {
        (page, anchor): heading
        for page in {page for page, _ in links}
        for heading, anchor in markdown.headings(text_of(page))
    }

    assert [entries[link] for link in links] == [f"`{each.heading}`" for each in api.names()]


@each_row("page", PAGES)
def test_every_link_has_a_target(page: Path) -> None:
    wrong: list[str] = []
    for found in LINK.finditer(markdown.FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, part = found["to"].partition("#")
        target = page.parent / path if path else page
        if "://" not in path and (not target.exists() or (part and part not in anchors(target))):
            wrong.append(found["to"])

    assert wrong == []


def test_tables_are_not_too_wide() -> None:
    cells = [
        (name, cell)
        for name in reference.PAGES
        for line in text_of(name).splitlines()
        if line.startswith("| ")
        for cell in re.split(r"(?<!\\)\|", line)
    ]
    seen = [(name, re.sub(r"\]\([^)]*\)", "", cell)) for name, cell in cells]

    assert [(name, cell) for name, cell in seen if len(cell) > 160] == []
