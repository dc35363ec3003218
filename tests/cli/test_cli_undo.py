"""`llm-do undo` as a person or a script uses it: real runs, in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import run, run_forked
from tests.cli.cli_terminal import Screen
from tests.files.undo_support import tree

AGENT = """
---
name: main
model: script:answers.yaml
toolsets: [filesystem_project, shell]
tools: [helper, send, read, die]
---
Help.
"""

HELPER = """
---
name: helper
model: script:answers.yaml
toolsets: [filesystem_project]
---
Help.
"""

TOOLS = '''
import os, signal
from pathlib import Path
from llm_do import tool


def send(to: str, text: str = "") -> str:
    """Send a text."""
    return f"sent to {to}"


@tool(repeatable=True)
def read(what: str) -> str:
    """Read something."""
    return what


@tool(repeatable=True)
def die(number: int) -> str:
    """Kill the process, the first time that it is called with a number."""
    mark = Path(f"../died-{number}")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


TOOLS = [send, read, die]
'''

MANIFEST = json.dumps(
    {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "python_files": ["tools.py"],
        "toolsets": {"shell": {"type": "shell"}, "outside": {"type": "filesystem", "root": "../outside"}},
        "runtime": {"approval_mode": "approve_all"},
    }
)

EDITS = """
agents:
  main:
    - tools:
        - {name: write_file, args: {path: a.md, content: "one\\nTWO\\n"}}
        - {name: helper, args: {input: go}}
        - {name: send, args: {to: ann}}
        - {name: read, args: {what: nothing}}
        - {name: shell, args: {command: "touch by-shell"}}
    - text: done
  helper:
    - tools:
        - {name: write_file, args: {path: new/b.md, content: "b"}}
        - {name: move_file, args: {source: old.md, target: new/old.md}}
    - text: done
"""


@pytest.fixture
def edited(project: Callable[..., Path]) -> Path:
    """A project in which a run has changed files."""
    root = write(project, EDITS)
    assert run_forked("run", "go", cwd=root).code == 0
    return root


def write(project: Callable[..., Path], answers: str, **files: str) -> Path:
    root = project(answers, agent=AGENT.lstrip(), manifest=MANIFEST, **{"tools.py": TOOLS, **files})
    (root / "helper.agent").write_text(HELPER.lstrip())
    (root / "a.md").write_text("one\ntwo\n")
    (root / "old.md").write_text("old\n")
    (root.parent / "outside").mkdir()
    return root


@pytest.fixture
def terminal(edited: Path) -> Iterator[Callable[..., Screen]]:
    started: list[Screen] = []

    def start(*args: str, **options: object) -> Screen:
        started.append(Screen(["undo", *args], edited, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for screen in started:
        screen.close()


def test_a_run_is_undone_redone_and_told_of(edited: Path) -> None:
    after = tree(edited)
    shown = run_forked("runs", "show", cwd=edited)
    assert "files changed, of which all can be restored by `llm-do undo " in shown.out
    files = run_forked("runs", "show", "--format", "json", cwd=edited).json["files"]
    expected = [("a.md", "changed"), ("new", "created"), ("new/b.md", "created"), ("new/old.md", "created")]
    assert [(file["path"], file["change"]) for file in files] == [*expected, ("old.md", "removed")]
    assert {(file["outcome"], file["why"]) for file in files} == {("undo", None)}
    page = run_forked("runs", "show", "--html", "-", cwd=edited).out
    document = json.loads(page.partition('id="document">')[2].partition("</script>")[0])
    assert [file["path"] for file in document["files"]] == ["a.md", "new/", "new/b.md", "new/old.md", "old.md"]
    assert {(file["can_undo"], file["note"]) for file in document["files"]} == {(True, "")}

    dry = run_forked("undo", "--dry-run", cwd=edited)
    assert (dry.code, tree(edited)) == (0, after)
    assert "-TWO\n+two\n" in dry.out

    asked = run_forked("undo", cwd=edited)
    assert (asked.code, tree(edited)) == (2, after)
    assert "--yes does it" in asked.err

    undone = run_forked("undo", "--yes", cwd=edited)
    assert undone.code == 0
    words = " ".join(undone.out.split())
    assert words == "restored a.md removed new/ removed new/b.md removed new/old.md created again old.md"
    assert undone.err.splitlines()[:-1] == ["not undone: send(to=ann)", "not undone: shell(command=touch by-shell)"]
    assert sorted(set(tree(edited)) - {"by-shell"}) == [
        "a.md", "answers.yaml", "helper.agent", "main.agent", "old.md", "project.json", "tools.py"
    ]  # fmt: skip
    assert (edited / "a.md").read_text() == "one\ntwo\n"

    again = run_forked("undo", "--yes", cwd=edited)
    assert (again.code, again.out) == (2, "")
    assert "no run has changed files in" in again.err

    redo = undone.err.splitlines()[-1].split("`")[1].split()[-1]
    redone = run_forked("undo", redo, "--yes", "--format", "json", cwd=edited)
    assert redone.code == 0
    assert {file["outcome"] for file in redone.json["files"]} == {"undone"}
    assert redone.json["undo_of"] == shown.out.split()[1].rstrip(":")
    assert tree(edited) == after


def test_files_that_have_changed_since_are_listed_and_the_others_selected(edited: Path) -> None:
    (edited / "a.md").write_text("mine")
    before = tree(edited)
    refused = run_forked("undo", "--yes", cwd=edited)
    assert (refused.code, refused.out, tree(edited)) == (1, "", before)
    assert refused.err == (
        "error: a.md: it has changed since\nnothing was undone; --path undoes others, such as --path '!a.md'\n"
    )
    data = run_forked("undo", "--yes", "--format", "json", cwd=edited).json
    assert data["undo_id"] is None
    assert (data["files"][0]["path"], data["files"][0]["why"]) == ("a.md", "it has changed since")
    planned = run_forked("undo", "--dry-run", cwd=edited)
    assert "changed  a.md        (it has changed since)\nremove   new/\n" in planned.out
    shown = run_forked("runs", "show", cwd=edited).out
    assert "files changed, of which 4 can be restored by `llm-do undo " in shown
    assert "  changed  a.md        (it has changed since)\n  created  new/\n" in shown

    assert run_forked("undo", "--yes", "--path", "*.md", "--path", "!a.md", cwd=edited).code == 0
    shown = run_forked("runs", "show", cwd=edited).out
    assert "of which 3 are as before the run and 1 can be restored by `llm-do undo " in shown, shown
    assert (edited / "a.md").read_text() == "mine"
    assert not (edited / "new" / "b.md").exists()
    missed = run_forked("undo", "--yes", "--path", "*.py", cwd=edited)
    assert (missed.code, missed.out) == (2, "")


def test_on_a_terminal_the_difference_is_shown_first(edited: Path, terminal: Callable[..., Screen]) -> None:
    after = tree(edited)
    screen = terminal()
    screen.wait_until_shown("undo?")
    assert any("- TWO" in line for line in screen.lines)
    assert any("not undone: shell(command=touch by-shell)" in line for line in screen.lines)
    screen.type("what\r")
    screen.wait("y yes")
    screen.type("n\r")
    assert screen.end() == 1
    assert tree(edited) == after

    screen = terminal()
    screen.wait_until_shown("undo?")
    screen.type("y\r")
    assert screen.end() == 0
    assert (edited / "a.md").read_text() == "one\ntwo\n"


def test_a_run_that_is_not_recorded_keeps_nothing_and_says_so(project: Callable[..., Path]) -> None:
    root = write(project, EDITS)
    ended = run_forked("run", "go", "--no-record", cwd=root)
    assert ended.code == 0
    assert ended.err.count("nothing of them is kept for `llm-do undo`, because it isn't recorded") == 1
    assert not (root / ".llm-do" / "undo").exists()


def test_what_is_not_kept_is_in_the_record_and_the_rest_is_undone(project: Callable[..., Path]) -> None:
    root = write(project, EDITS.replace("path: a.md", "path: fresh.md").replace("old.md, target", "large, target"))
    with (root / "large").open("wb") as file:
        file.truncate(40 * 1024 * 1024)
    ended = run_forked("run", "go", cwd=root)
    assert "large can't be restored by `llm-do undo`: it is too large to be kept, with 40.0 MB" in ended.err
    events = run_forked("runs", "show", "--format", "events", "--type", "warning", cwd=root)
    assert "large can't be restored" in events.out
    assert "1 can be restored" not in run_forked("runs", "show", cwd=root).out

    undone = run_forked("undo", "--yes", cwd=root)
    assert undone.code == 1
    assert "not kept  large" in undone.err
    assert (root / "new" / "old.md").stat().st_size == 40 * 1024 * 1024
    assert not (root / "fresh.md").exists()


def test_secrets_in_commands_are_not_written_down(project: Callable[..., Path]) -> None:
    root = write(project, EDITS.replace("touch by-shell", "echo sk-0123456789abcdef"))
    assert run_forked("run", "go", cwd=root, env={"ACME_API_KEY": "sk-0123456789abcdef"}).code == 0
    record = "".join(path.read_text() for path in (root / ".llm-do" / "undo" / "records").iterdir())
    assert "echo [redacted ACME_API_KEY]" in record
    assert "sk-0123456789abcdef" not in record


def test_files_outside_of_the_project_are_restored_if_it_is_trusted(project: Callable[..., Path]) -> None:
    manifest: dict[str, Any] = json.loads(MANIFEST)
    agent = AGENT.replace("[filesystem_project, shell]", "[outside]")
    answers = "- tools: [{name: write_file, args: {path: a.md, content: after}}]\n- text: done"
    root = write(project, answers)
    (root / "main.agent").write_text(agent.lstrip())
    (root / "project.json").write_text(json.dumps(manifest))
    outside = root.parent / "outside" / "a.md"
    outside.write_text("before")
    assert run_forked("run", "go", cwd=root).code == 0

    refused = run_forked("undo", "--yes", cwd=root, env={"LLM_DO_TRUST": None})
    assert (refused.code, outside.read_text()) == (1, "after")
    assert f"{outside}: it is outside of the project's folder, which isn't trusted" in refused.err
    assert run_forked("undo", "--yes", "--trust", cwd=root, env={"LLM_DO_TRUST": None}).code == 0
    assert outside.read_text() == "before"


def test_deleting_a_thread_drops_what_is_kept_of_its_runs(project: Callable[..., Path]) -> None:
    root = write(project, EDITS)
    assert run_forked("run", "go", "--thread", "desk", cwd=root).code == 0
    assert list((root / ".llm-do" / "undo" / "files").glob("*/*"))
    assert run_forked("threads", "delete", "desk", cwd=root).code == 0
    kept = root / ".llm-do" / "undo"
    assert [*kept.glob("files/*/*"), *kept.glob("records/*")] == []
    assert run_forked("undo", "--yes", cwd=root).code == 2


@pytest.mark.slow
def test_a_durable_run_that_was_killed_and_resumed_is_undone_to_its_beginning(project: Callable[..., Path]) -> None:
    turns = [
        "[{name: write_file, args: {path: a.md, content: first}}, {name: send, args: {to: ann}}]",
        "[{name: die, args: {number: 1}}]",
        "[{name: write_file, args: {path: a.md, content: second}}, {name: delete_file, args: {path: old.md}}]",
        "[{name: die, args: {number: 2}}]",
        "[{name: write_file, args: {path: new/c.md, content: third}}]",
    ]
    root = write(project, "".join(f"- tools: {turn}\n" for turn in turns) + "- text: done\n")
    before = tree(root)
    assert run("run", "go", "--durable", "--run-id", "job", cwd=root).code == -9
    assert run("resume", "job", cwd=root).code == -9
    assert run("resume", "job", cwd=root).code == 0
    assert (root / "a.md").read_text() == "second"

    undone = run("undo", "job", "--yes", cwd=root)
    assert undone.code == 0
    assert undone.err.count("not undone: send(to=ann)") == 1
    assert tree(root) == before


@pytest.mark.slow
def test_each_run_of_a_batch_is_undone_by_itself(project: Callable[..., Path]) -> None:
    turn = "- tools: [{name: write_file, args: {path: '{input}.md', content: x}}]\n- text: done\n"
    root = write(project, turn)
    (root / "in.jsonl").write_text('"one"\n"two"\n')
    assert run_forked("map", "main", "in.jsonl", cwd=root).code == 0
    listed = run_forked("runs", "list", "--format", "json", cwd=root).json
    assert len(listed) == 2
    shown = [run_forked("runs", "show", each["run_id"], "--format", "json", cwd=root).json for each in listed]
    paths = {each["run_id"]: [file["path"] for file in each["files"]] for each in shown}
    [first, second] = paths
    assert run_forked("undo", first, "--yes", cwd=root).code == 0
    assert not (root / paths[first][0]).exists()
    assert (root / paths[second][0]).exists()


def test_an_empty_id_and_one_that_several_begin_with_undo_nothing(edited: Path) -> None:
    after = tree(edited)
    for words in ([""], [".", ""], ["--project", ".", ""]):
        empty = run_forked("undo", *words, "--yes", cwd=edited)
        assert (empty.code, tree(edited)) == (2, after)
        assert empty.err.startswith("error: the run's id is empty")

    undone = run_forked("undo", "--yes", cwd=edited)
    again = run_forked("undo", "undo-", "--yes", cwd=edited)
    redone = tree(edited)
    several = run_forked("undo", "undo-", "--yes", cwd=edited)

    assert (undone.code, again.code, several.code) == (0, 0, 2)
    assert tree(edited) == redone
    assert "several runs have ids that begin with 'undo-': undo-" in several.err
    assert "Write more of the id." in several.err
