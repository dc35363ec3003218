"""Command lines that people write out of habit: accepted, or answered with what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from llm_do.cli.process.named_commands import TAKES
from tests.cli.cli_processes import run_forked, run_many

ANSWERED = {
    "rnu": "Did you mean `run`?",
    "new shop": "Create a project with `llm-do init DIR`.",
    "pytest": "Run a project's tests with `llm-do test PROJECT`.",
    "lint": "`llm-do check PROJECT`",
    "ask hello": '`llm-do run PROJECT "PROMPT"`',
    "main.agent hello there": "To run this project, write: llm-do run main.agent hello there.",
    ".": "To run this project, write: llm-do run .",
    "costs": "`llm-do runs costs PROJECT`",
    "prune": "`llm-do runs prune --older-than 90d`",
    "drop 5f3c": "`llm-do runs drop RUN_ID`",
    "answer 5f3c.1 allow": "`llm-do approvals answer QUESTION_ID allow`",
    "bogus": "The commands are run, map, worker, resume, chat, check,",
    "--headless main.agent": "Leave it out: without a terminal, calls that need approval are denied.",
    "run --modle test": "Did you mean `--model`?",
    "run --prompt hello": "The prompt is an argument:",
    "run --temperature 0 hello": "`model_settings: {temperature: 0}`",
    "run --yes": "`--approve-all` allows every call.",
    "run --continue": "`llm-do chat --continue`",
    "run . one two three": "Quote a prompt of several words: llm-do run . 'one two three'.",
    "run one two": "Quote a prompt of several words: llm-do run 'one two'.",
    "chat one two three": "Quote a prompt of several words: llm-do chat 'one two three'.",
    "run --timeout 5x": "'5x' is not a time, such as 90, 90s, 5m or 1h30m.",
    "chat hello --durable --run-id x": "Name the thread: --thread ID.",
    "resume 5f3c": "`llm-do run --durable` begins a run that can be resumed.",
    "run --model": "Option '--model' requires an argument. See `llm-do run --help`.",
    "runs list --since": "Option '--since' requires an argument. See `llm-do runs list --help`.",
    "check --explain nonsense": "Codes are in brackets in what `llm-do check` prints.",
    "graph --states nobody": "`llm-do graph` shows its agents.",
    "import .": "no agents and no skills in the current folder.",
    "threads lst": "Did you mean `list`?",
    "runs nonsense": "The commands are list, costs, show, compare, drop, prune.",
    "undo": "A run with --no-record keeps nothing",
    "undo 5f3c": "nothing is kept of a run '5f3c'",
    "models lst": "'lst' is not one of 'list', 'pull'.",
    "run --field city": "--field 'city' is not NAME=VALUE.",
}


def test_what_no_command_line_means_is_answered_with_what_to_write(project: Callable[..., Path]) -> None:
    root = project()
    ended = run_many({line: (line.split(" "), root, b"") for line in ANSWERED})

    for line, answer in ANSWERED.items():
        assert (ended[line].code, ended[line].out) == (2, ""), line
        assert ended[line].err.startswith("error: "), line
        assert ended[line].err.count("\n") == 1, line
        assert answer in ended[line].err, line


def test_habits_of_other_tools_are_accepted(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'", agent="---\nname: main\n---\nx")
    ended = run_many(
        {
            line: (line.split(" "), root, b"")
            for line in ("-h", "help", "run -h", "help run", "-V", "--version", "threads list -h")
        }
    )

    assert {each.code for each in ended.values()} == {0}
    assert ended["-h"].out == ended["help"].out
    assert ended["run -h"].out == ended["help run"].out
    assert ended["-V"].out == ended["--version"].out
    assert run_forked("run", "hi", "-m", "script:answers.yaml", "--timeout", "1h30m", cwd=root).out == "got hi\n"


JSON = [
    "run hello --no-record",
    "check",
    "doctor",
    "models",
    "tools",
    "graph",
    "approvals list",
    "threads list",
    "runs list",
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("spelling", [["--format", "json"], ["--output", "json"], ["--json"], ["--format=json"]])
def test_every_command_prints_json_for_one_spelling_and_its_synonyms(
    project: Callable[..., Path], spelling: list[str]
) -> None:
    root = project("- text: done")
    run_many({"run": (["run", "hello", "--thread", "t"], root, b"")})
    ended = run_many({line: ([*line.split(" "), *spelling], root, b"") for line in JSON})

    assert {line: each.code for line, each in ended.items() if each.code} == {}
    assert [line for line, each in ended.items() if each.json is None] == []


def test_only_the_one_spelling_is_in_the_help() -> None:
    for line in JSON:
        shown = run_forked(*[word for word in line.split(" ") if word not in ("hello", "--no-record")], "--help").out
        assert "--format" in shown, line
        assert "--json" not in shown, line
        assert "--output" not in shown, line


def test_help_fits_a_narrow_terminal() -> None:
    for columns in (30, 40, 50, 60):
        for line in ("--help", "run --help", "approvals --help", "runs list --help"):
            shown = run_forked(*line.split(" "), env={"COLUMNS": str(columns)}).out.split("\n")
            # examples stay on one line, to be copied; so do a long option and its metavar
            wide = [each for each in shown if len(each) > columns and not each.lstrip().startswith(("llm-do ", "-"))]
            assert wide == [], (line, columns)
            assert len(max(shown, key=len)) > 20


FROM_OUTSIDE = {
    "runs show nosuch -p project": "`llm-do runs list -p project` shows the runs",
    "runs show project nosuch": "`llm-do runs list -p project` shows the runs",
    "resume -p project nosuch": "`llm-do runs list -p project` shows the runs",
    "resume -p project RUN": "See it with `llm-do runs show -p project RUN",
    "resume -p project RUN --env-file keys.env": "`llm-do runs show -p project --env-file keys.env RUN",
    "approvals answer -p project nope allow": "`llm-do approvals pending -p project` shows",
    "threads show -p project --store project/.llm-do/state.db": "`llm-do threads list -p project --store project/",
    "chat project --continue": "Start one with `llm-do chat -p project`",
    "models -p project lst": "See `llm-do models --help`",
    "graph project --states nobody": "`llm-do graph -p project` shows its agents",
}


def test_commands_that_messages_name_find_the_project_from_where_the_first_was_given(
    project: Callable[..., Path], tmp_path: Path
) -> None:
    project("- text: done")
    (tmp_path / "keys.env").write_text("A=b\n")
    run_forked("run", "project", "hello", "-m", "script:project/answers.yaml", cwd=tmp_path)
    run_id = run_forked("runs", "list", "project", "--json", cwd=tmp_path).json[0]["run_id"]
    expected = {line.replace("RUN", run_id): hint.replace("RUN", run_id) for line, hint in FROM_OUTSIDE.items()}
    ended = run_many({line: (line.split(" "), tmp_path, b"") for line in expected})

    assert {line: ended[line].err for line, hint in expected.items() if hint not in ended[line].err} == {}


WITHOUT_ID = {
    "resume project": "llm-do resume project RUN_ID.",
    "runs drop project": "llm-do runs drop project RUN_ID.",
    "threads delete project": "llm-do threads delete project THREAD.",
    "threads set project model=test": "llm-do threads set project THREAD KEY=VALUE.",
    "approvals show project": "llm-do approvals show project ID.",
}


def test_a_project_without_the_id_after_it_is_not_taken_for_the_id(
    project: Callable[..., Path], tmp_path: Path
) -> None:
    root = project("- text: done")
    (root / "project").mkdir()
    (root / "project" / "main.agent").write_text("---\nname: main\n---\nx")
    ended = run_many({line: (line.split(" "), tmp_path, b"") for line in WITHOUT_ID})
    inside = run_many({line: (line.split(" "), root, b"") for line in WITHOUT_ID})

    for line, example in WITHOUT_ID.items():
        assert ended[line].code == 2
        assert ended[line].err == f"error: an argument is missing: project is the project. Write: {example}\n"
        assert "is the project" not in inside[line].err
    assert run_forked("resume", "project", "--help", cwd=tmp_path).code == 0


def test_what_a_map_says_of_its_questions_finds_the_project(project: Callable[..., Path], tmp_path: Path) -> None:
    project("- tools: [{name: shout, args: {}}]\n- text: done")
    (tmp_path / "in.jsonl").write_text('"a"\n')
    ended = run_forked("map", "project", "in.jsonl", "--batch", "b", cwd=tmp_path)

    assert ended.code == 5
    assert "`llm-do approvals pending -p project --run b-1`" in ended.err
    assert "`llm-do resume -p project b-1`" in ended.err


def test_a_command_gets_only_the_options_that_it_takes() -> None:
    root = get_command(import_module("llm_do.cli.app")._root)
    taken = {name: _project_options(command) for name, command in _commands(root, "")}

    # `serve` and `trust` take the project as an argument alone
    assert {name: set(options) for name, options in TAKES.items()} == {
        name: options for name, options in taken.items() if options and name != "serve"
    }


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _commands(command, f"{name} ")
        else:
            yield f"{prefix}{name}", command


def _project_options(command: Any) -> set[str]:
    return {"--project", "--store", "--env-file"}.intersection(*[[n for p in command.params for n in p.opts]])
