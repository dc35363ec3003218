"""`llm-do test --from RUN`: a test of a run that has happened, which passes without the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import Ended, run_forked
from tests.support.openai_server import serve
from tests.testing.cases.case_projects import ANSWERS, desk

LEAD = """\
---
name: lead
model: openai-chat:lead
toolsets: [secretary]
---
Lead.
"""
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "secretary": [ANSWERS[0], {"text": "{tool}"}],
    "writer": ANSWERS,
    "lead": [
        {"tools": [{"name": "secretary", "args": {"input": text}} for text in ("one", "two")]},
        {"text": "Read twice: {tool}"},
    ],
}
SECRET = "sk-not-a-real-key-1234"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return desk(tmp_path / "desk", "tests: [{name: x, input: x}]", model="openai-chat:secretary")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with serve(SCRIPTS) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        yield log


def recorded(root: Path, *args: str) -> str:
    """The id of a run that was just made."""
    assert run_forked("run", "--format", "json", *args, cwd=root).json["status"] in ("completed", "denied")
    return run_forked("runs", "list", "--format", "json", cwd=root).json[0]["run_id"]


def made(root: Path, run: str) -> Ended:
    return run_forked("test", "--from", run, cwd=root)


def test_a_run_becomes_a_test_that_passes_without_the_provider(root: Path, server: list[Any]) -> None:
    run = recorded(root, "What was decided?")
    server.clear()
    done = made(root, run)
    assert (done.code, done.err) == (0, "")
    text = (root / "tests/what-was-decided.test.yaml").read_text()
    assert text == (
        f"# Made of the run {run[:12]}: say what matters of it, and remove the rest.\n"
        "tests:\n"
        "  - name: What was decided\n"
        "    input: What was decided?\n"
        "    expect:\n"
        "      output:\n"
        "        equals: |\n"
        "          Decided: one.\n"
        "      tools:\n"
        "        - read_file\n"
        "      at_most:\n"
        "        steps: 2\n"
    )
    assert all(f"+{line}\n" in done.out for line in text.splitlines())
    assert done.out.endswith(
        "wrote tests/what-was-decided.test.yaml\nwrote tests/cassettes/what-was-decided/What-was-decided.json\n"
    )
    again = run_forked("test", "-k", "decided", "-j", "1", cwd=root)
    assert (again.code, server) == (0, [])


@pytest.mark.slow
def test_nested_calls_models_and_answers_of_the_run_are_those_of_the_test(root: Path, server: list[Any]) -> None:
    (root / "lead.agent").write_text(LEAD)
    run = recorded(root, ".", "--entry", "lead", f"Look. {root}/notes.txt {SECRET}")
    other = recorded(root, "--model", "openai-chat:writer", "--approve-all", "Write the minutes.")
    (root / "out/minutes.md").unlink()
    (root / "out").rmdir()
    server.clear()
    assert [made(root, each).code for each in (run, other)] == [0, 0]
    text = "".join(path.read_text() for path in (root / "tests").rglob("*.*") if path.is_file())
    assert "entry: lead" in text
    assert "secretary: openai-chat:writer" in text
    assert "answer: once" in text
    assert str(root) not in text
    assert SECRET not in text
    assert server == []


@pytest.mark.slow
def test_a_script_of_the_command_line_is_named_by_the_test_if_the_project_has_it(root: Path, tmp_path: Path) -> None:
    for place in (root, tmp_path):
        (place / "inside.yaml").write_text("- text: 'Scripted.'\n")
    inside = recorded(root, "--model", "script:inside.yaml", "From inside")
    outside = recorded(root, "--model", "script:../inside.yaml", "From outside")

    assert made(root, inside).code == 0
    assert "secretary: script:inside.yaml" in (root / "tests/from-inside.test.yaml").read_text()
    done = made(root, outside)
    assert done.code == 1
    assert "request 1 of secretary would ask openai-chat:secretary, and there is no cassette" in " ".join(
        done.out.split()
    )


def test_a_run_that_was_denied_for_lack_of_a_person_is_replayed_as_such(root: Path, server: list[Any]) -> None:
    run = recorded(root, "--model", "openai-chat:writer", "Write the minutes.")
    assert made(root, run).code == 0
    text = (root / "tests/write-the-minutes.test.yaml").read_text()
    assert "status: denied" in text
    assert "denied:\n        - write_file\n" in text


@pytest.mark.slow
def test_what_a_changed_project_does_is_shown_and_the_test_is_written(root: Path, server: list[Any]) -> None:
    run = recorded(root, "What was decided?")
    agent = root / "secretary.agent"
    agent.write_text(agent.read_text().replace("Keep minutes.", "Keep short minutes."))
    done = made(root, run)
    assert done.code == 1
    assert "secretary's instructions have changed since the recording" in " ".join(done.out.split())
    assert (root / "tests/what-was-decided.test.yaml").exists()


@pytest.mark.slow
def test_a_second_test_of_a_run_has_a_file_of_its_own(root: Path, server: list[Any]) -> None:
    run = recorded(root, "What was decided?")
    assert [made(root, run).code for _ in range(2)] == [0, 0]
    assert (root / "tests/what-was-decided-2.test.yaml").exists()
    assert run_forked("test", "-k", "decided", "-j", "1", cwd=root).code == 0


@pytest.mark.slow
def test_runs_that_no_test_can_be_made_of_are_refused(root: Path, server: list[Any]) -> None:
    assert made(root, "abc").err.startswith("error: nothing has been recorded in ")
    recorded(root, "--thread", "t", "What was decided?")
    second = recorded(root, "--thread", "t", "And then?")
    done = made(root, second)
    assert (done.code, done.out) == (2, "")
    assert "continued a conversation, whose other runs the test would need" in done.err
    assert "no run has the id 'zzz'" in made(root, "zzz").err
    both = run_forked("test", "--from", second, "--live", cwd=root)
    assert (both.code, both.err) == (
        2,
        "error: --from and --live exclude each other. Make the test first, then run it.\n",
    )
    manifest = json.loads((root / "project.json").read_text())
    (root / "project.json").write_text(json.dumps({**manifest, "runtime": {"record": {"exchanges": False}}}))
    done = made(root, recorded(root, "What was decided?"))
    assert done.code == 2
    assert "what models were sent is not kept" in done.err
