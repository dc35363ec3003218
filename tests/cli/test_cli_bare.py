"""`run` and `chat` where there is no project: a model is asked directly, and a mistyped path never becomes a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_processes import environment, run_forked, run_many

NOTE = "note: no project here, so a model is asked directly, without tools (`llm-do init` creates a project)\n"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder without a project, and a script of answers."""
    (tmp_path / "answers.yaml").write_text('- text: "first: {input}"\n- text: "second: {input}"\n')
    (tmp_path / "greeter").mkdir()
    (tmp_path / "greeter" / "main.agent").write_text("---\nname: main\n---\nGreet.\n")
    return tmp_path


def test_a_prompt_needs_no_project_and_leaves_nothing_behind(empty: Path) -> None:
    before = sorted(empty.rglob("*"))
    script = ["--model", "script:answers.yaml"]
    ended = run_many(
        {
            "argument": (["run", *script, "Good morning"], empty, b""),
            "stdin": (["run", *script], empty, b"piped"),
            "word": (["run", *script, "hello"], empty, b""),
            "quiet": (["run", *script, "-q", "Good morning"], empty, b""),
            "chat": (["chat", *script], empty, b"one\ntwo\n"),
            "json": (["run", *script, "Good morning", "--format", "json"], empty, b""),
        }
    )

    assert (ended["argument"].code, ended["argument"].out) == (0, "first: Good morning\n")
    assert ended["argument"].err == NOTE
    assert ended["stdin"].out == "first: piped\n"
    assert ended["word"].out == "first: hello\n"
    assert (ended["quiet"].out, ended["quiet"].err) == ("first: Good morning\n", "")
    assert ended["chat"].out == "first: one\nsecond: two\n"
    assert NOTE in ended["chat"].err
    assert ended["json"].json["output"] == "first: Good morning"
    assert [message["parts"][0]["part_kind"] for message in ended["json"].json["messages"]] == ["user-prompt", "text"]
    assert sorted(empty.rglob("*")) == before


def test_what_looks_like_a_mistyped_project_is_no_prompt(empty: Path) -> None:
    script = ["--model", "script:answers.yaml"]
    expected = {
        "word": (["hello"], 'If it is a prompt, write: llm-do run --model PROVIDER:NAME "hello"'),
        "near": ([*script, "greter"], "no project at 'greter'. Did you mean `greeter`?"),
        "path": ([*script, "./greter"], "no project at greter: there is no such file or folder"),
        "agent": ([*script, "greter.agent"], "no project at greter.agent"),
        "two": ([*script, "greter", "Good morning"], "no project at 'greter'"),
        "folder": ([*script, ".", "Hi"], "no project in .: it has neither project.json nor an .agent file"),
        "nothing": (script, "no project here"),
    }  # fmt: skip

    ended = run_many({name: (["run", *args], empty, b"") for name, (args, _) in expected.items()})

    for name, (_, message) in expected.items():
        assert (ended[name].code, ended[name].out) == (2, ""), name
        assert message in ended[name].err, name
    assert "To ask a model without a project, leave the folder out." in ended["folder"].err


def test_options_that_need_a_project_say_so(empty: Path) -> None:
    script = ["--model", "script:answers.yaml"]
    options = {
        "--entry": ["run", *script, "--entry", "other", "Good morning"],
        "--thread": ["run", *script, "--thread", "t", "Good morning"],
        "--durable": ["run", *script, "--durable", "Good morning"],
        "--continue": ["chat", *script, "--continue"],
    }

    ended = run_many({name: (args, empty, b"") for name, args in options.items()})

    for name in options:
        assert ended[name].code == 2
        assert ended[name].err.startswith(f"error: {name} needs a project; no project here: ")


def test_without_a_project_a_store_records_the_conversation(empty: Path) -> None:
    script = ["--model", "script:answers.yaml", "--store", "kept.db", "--thread", "t"]
    run_forked("run", *script, "Good morning", cwd=empty)
    again = run_forked("run", *script, "Good night", "--format", "json", cwd=empty)

    assert (empty / "kept.db").is_file()
    assert len(again.json["messages"]) == 4


def test_without_a_project_a_missing_or_misspelled_model_is_one_line(empty: Path) -> None:
    misspelled = run_forked("run", "--model", "opnai:gpt-5", "Good morning", cwd=empty)
    planned = run_forked(
        "run", "--dry-run", "Good morning", cwd=empty, env={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    )

    assert (misspelled.code, misspelled.err.count("\n")) == (7, 1)
    assert "Did you mean `openai:gpt-5`?" in misspelled.err
    assert "agent assistant: model anthropic:claude" in planned.out
    assert "OPENAI_API_KEY" not in environment()


def test_without_a_project_the_folders_keys_are_read_only_if_they_are_named(empty: Path) -> None:
    (empty / ".env").write_text("OPENAI_API_KEY=k\n")
    note = "note: .env is read in a project's folder only; --env-file .env reads the keys in it\n"
    named = ["--model", "openai:gpt-5-mini", "Good morning"]

    unread = run_forked("run", *named, cwd=empty)
    read = run_forked("run", "Good morning", "--dry-run", "--env-file", ".env", cwd=empty)
    quiet = run_forked("run", *named, "-q", cwd=empty)

    assert NOTE + note in unread.err
    assert "OPENAI_API_KEY must be set" in unread.err
    assert "in the environment or in the project's .env" in unread.err
    assert (read.code, read.err) == (0, NOTE)
    assert "agent assistant: model openai:" in read.out
    assert "note:" not in quiet.err


def test_a_damaged_manifest_is_reported_rather_than_passed_over(tmp_path: Path) -> None:
    (tmp_path / "project.json").mkdir()

    ended = run_forked("run", "--model", "test", "Good morning", cwd=tmp_path)

    assert ended.code == 2
    assert "project.json" in ended.err
