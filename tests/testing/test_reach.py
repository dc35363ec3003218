"""`Reach`: which test cases a changed file can reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_do import Project
from llm_do.linker.sources.test_files import read_tests
from llm_do.testing.cases.case import all_cases, columns_of
from llm_do.testing.watching.reach import Connections, Reach, connections_of

AGENTS = {
    "main": "toolsets: [reader]\nmodel: script:scripts/main.yaml",
    "reader": "description: reads",
    "writer": "description: writes\nhandoffs: [editor]",
    "editor": "description: edits",
}
TESTS = {
    "tests/main.test.yaml": """\
tests:
  - name: reads
  - name: checks
    expect: {output: {python: "checks.py:check"}}
matrix:
  strict: {agents: {reader: variants/reader.agent}}
""",
    "tests/writer.test.yaml": """\
defaults: {entry: writer}
tests:
  - name: writes
  - name: scripted
    model: script:tests/answers.yaml
  - name: again
    entry: reader
""",
}
MAIN = ["reads", "checks"]
WRITER = ["writes", "scripted", "again"]
EVERY = MAIN + WRITER


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, more in AGENTS.items():
        (tmp_path / f"{name}.agent").write_text(f"---\nname: {name}\n{more}\n---\nHelp.\n")
    (tmp_path / "tests").mkdir()
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}
    (tmp_path / "project.json").write_text(json.dumps(manifest))
    return tmp_path


def reach(root: Path) -> Reach:
    data = json.loads(json.dumps(connections_of(Project.load(root))))
    tests = read_tests(root)
    return Reach(root.resolve(), Connections.from_dict(data), all_cases(tests), columns_of(tests))


def reached(root: Path, *files: str) -> list[str]:
    ids = reach(root).of(root.resolve() / file for file in files)
    return [name for name in EVERY if any(id.endswith(f"::{name}") for id in ids)]


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("main.agent", MAIN),
        ("scripts/main.yaml", MAIN),
        ("reader.agent", [*MAIN, "again"]),
        ("writer.agent", ["writes", "scripted"]),
        ("editor.agent", ["writes", "scripted"]),
        ("tests/main.test.yaml", MAIN),
        ("tests/answers.yaml", ["scripted"]),
        ("tests/checks.py", ["checks"]),
        ("tests/cassettes/main/reads.json", ["reads"]),
        ("tests/cassettes/main/reads@strict.json", ["reads"]),
        ("tests/cassettes/writer/reads.json", []),
        ("variants/reader.agent", MAIN),
        ("project.json", EVERY),
        ("notes.txt", EVERY),
        ("new.agent", EVERY),
        ("../elsewhere.txt", EVERY),
    ],
)
def test_a_file_reaches_the_tests_that_can_use_it(root: Path, file: str, names: list[str]) -> None:
    assert reached(root, file) == names


def test_several_files_reach_what_each_of_them_does(root: Path) -> None:
    assert reached(root, "tests/cassettes/main/reads.json", "tests/answers.yaml") == ["reads", "scripted"]
    assert reached(root) == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def look(ctx) -> str:\n    '''Look.'''\n    return 'x'\n", MAIN),
        ("async def look(ctx) -> str:\n    '''Look.'''\n    return await ctx.call('main', 'x')\n", EVERY),
        ("async def look(ctx, name: str) -> str:\n    '''Look.'''\n    return await ctx.call(name, 'x')\n", EVERY),
    ],
)
def test_python_code_can_call_what_it_names_and_anything_if_it_computes_names(
    root: Path, code: str, names: list[str]
) -> None:
    manifest = json.loads((root / "project.json").read_text()) | {"python_files": ["tools.py"]}
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "tools.py").write_text(f"{code}\nTOOLS = [look]\n")

    assert reached(root, "main.agent") == names
    assert reached(root, "tools.py") == EVERY


def test_what_people_write_is_told_from_recordings_and_data(root: Path) -> None:
    found = reach(root)
    folder = root.resolve()

    sources = ["main.agent", "project.json", "tests/main.test.yaml", "tests/new.test.yaml", "tests/checks.py"]
    assert all(found.is_source(folder / name) for name in [*sources, "scripts/main.yaml", "variants/reader.agent"])
    assert not any(found.is_source(folder / name) for name in ("notes.txt", "tests/cassettes/main/reads.json"))
    assert found.is_recording(folder / "tests/cassettes/main/reads.json")
