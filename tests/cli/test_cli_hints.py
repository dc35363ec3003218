"""Command lines that people write out of habit: accepted, or answered with what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

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
