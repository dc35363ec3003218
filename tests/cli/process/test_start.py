from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command

from llm_do.cli.actions.failure import requested_output
from llm_do.cli.app import COMMANDS, command_module
from llm_do.runtime.session.run_options import RunOptions
from tests.cli.cli_processes import LLM_DO, REPOSITORY, environment, run
from tests.support.openai_server import serve
from tests.support.tables import each_row

LIGHT = [
    ["--version"],
    ["--help"],
    ["run", "--help"],
    ["check", "--help"],
    ["chat", "--help"],
    ["approvals", "explain", "--help"],
    ["doctor", "--help"],
    ["init", "--help"],
    ["run", "--nonsense"],
    ["rnu"],
    ["run", "--max-depth", "0"],
    ["run", "--max-steps", "many"],
    ["run", "--timeout", "nan"],
    ["run", "--output", "xml"],
    ["schema"],
    ["schema", "nonsense"],
    ["run", "--approve-all", "--reject-all"],
    ["run", "missing/project"],
    ["run", "missing.agent", "prompt"],
    ["run", "."],
    ["run", ""],
]

HELPS = 8
"""The first ones, which are not errors."""

HEAVY = (
    "prompt_toolkit",
    "pydantic",
    "pydantic_ai",
    "rich",
    "asyncio",
    "yaml",
    "openai",
    "httpx",
    "httpx2",
    "ssl",
    "llm_do.runtime.runtime",
)

SCRIPT = """
import json, sys
from llm_do.cli import app
codes = [app.run(args) for args in json.loads(sys.argv[1])]
json.dump({"codes": codes, "modules": sorted(sys.modules)}, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("light")
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(LIGHT), str(folder / "seen.json")],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {**json.loads((folder / "seen.json").read_text()), "err": ended.stderr, "out": ended.stdout}


def test_help_version_and_usage_errors_import_nothing_heavy(light: dict[str, list[str]]) -> None:
    assert [name for name in HEAVY if name in light["modules"]] == []


def test_usage_errors_end_with_code_two(light: dict[str, list[int]]) -> None:
    assert light["codes"] == [0] * HELPS + [2] * (len(LIGHT) - HELPS)


def test_every_usage_error_is_one_paragraph(light: dict[str, str]) -> None:
    lines = light["err"].splitlines()

    assert len(lines) == len(LIGHT) - HELPS
    assert all(line.startswith("error: ") and line.endswith(".") for line in lines)


def test_a_mistyped_command_gets_a_suggestion(light: dict[str, str]) -> None:
    assert "error: No such command 'rnu'. Did you mean `run`? See `llm-do --help`." in light["err"]


def test_the_help_lists_every_command(light: dict[str, str]) -> None:
    assert all(f"  {name} " in light["out"] and text in light["out"] for name, text in COMMANDS.items())


def test_the_help_of_a_command_starts_as_in_the_list_of_commands() -> None:
    for name, text in COMMANDS.items():
        shown = get_command(import_module(command_module(name)).app).help or ""
        assert shown.startswith(text.removesuffix("."))


def test_every_command_takes_the_debug_option_that_errors_mention() -> None:
    for name in COMMANDS:
        command = get_command(import_module(command_module(name)).app)
        for each in getattr(command, "commands", {name: command}).values():
            assert "--debug" in {option for param in each.params for option in param.opts}, each.name


@pytest.mark.parametrize("name", ["run", "chat"])
def test_a_run_from_the_shell_takes_every_option_that_has_a_flag(name: str) -> None:
    declared = [get_args(each)[1] for each in RunOptions.__annotations__.values()]
    assert {"--allow", "--thread", "--durable"} <= {flag for option in declared for flag in option.flags}
    taken = {
        name: param.help for param in get_command(import_module(command_module(name)).app).params for name in param.opts
    }

    for option in declared:
        assert all(taken[flag].startswith(option.help.rstrip(".")) for flag in option.flags)


def test_without_arguments_the_help_goes_to_stderr() -> None:
    ended = run()

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: llm-do")


def test_the_version_is_printed() -> None:
    from llm_do import __version__

    assert run("--version").out == f"llm-do {__version__}\n"


def test_help_into_a_broken_pipe_prints_no_error() -> None:
    ended = subprocess.run(
        ["bash", "-c", f"'{LLM_DO[0]}' -m llm_do.cli run --help | true"],
        env=environment(),
        capture_output=True,
        timeout=60,
        cwd=REPOSITORY,
    )

    assert ended.stderr == b""


@each_row(
    "args, output",
    [
        (["run", "--output", "json", "--nonsense"], "json"),
        (["run", "--output=events"], "events"),
        (["run", "--output"], "text"),
        (["chat", "--output", "json"], "json"),
        (["run", "--", "--output", "json"], "text"),
        (["check", "--output", "json"], "text"),
        ([], "text"),
    ],
)
def test_the_output_format_is_known_before_the_arguments_are_parsed(args: list[str], output: str) -> None:
    assert requested_output(args) == output


def test_shell_completion_covers_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        return run(env={"_LLM_DO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}).out.split()

    assert completed("llm-do mo") == ["models"]
    assert {"--max-depth", "--max-steps"} <= set(completed("llm-do run --max-"))
    assert completed("llm-do run --max-de") == ["--max-depth"]


UNUSED = (
    "IPython",
    "griffe",
    "jsonschema",
    "llm_do.cli.commands.chat",
    "llm_do.flows",
    "llm_do.linker.check_worker",
    "llm_do.toolkits",
    "llm_do.toolsets",
    "logfire",
    "openai.lib.streaming",
    "openai.resources.chat",
    "openai.types.responses.response",
    "prompt_toolkit",
    "pydantic_ai.providers.ollama",
)

RUN = """
import json, sys
from llm_do.cli import app
code = app.run(["run", "main.agent", "Hello", "--model", "openai-chat:text", *sys.argv[2:]])
json.dump({"code": code, "modules": sorted(sys.modules)}, open(sys.argv[1], "w"))
"""


def _seen_by_run(folder: Path, *options: str) -> Any:
    (folder / "main.agent").write_text("---\nname: main\n---\nAnswer.\n")
    with serve({"text": [{"text": "Hello.", "chunks": 2}]}) as (url, log):
        subprocess.run(
            [sys.executable, "-c", RUN, "seen.json", *options],
            cwd=folder,
            env={**environment(), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"},
            capture_output=True,
            timeout=60,
            check=True,
        )
    seen = json.loads((folder / "seen.json").read_text())
    assert seen["code"] == 0
    return {**seen, "streamed": [bool(each.body.get("stream")) for each in log]}


@pytest.mark.slow
def test_a_plain_run_imports_nothing_it_does_not_use(tmp_path: Path) -> None:
    seen = _seen_by_run(tmp_path)
    assert [name for name in UNUSED if name in seen["modules"]] == []
    assert seen["streamed"] == [False]


@pytest.mark.slow
def test_a_streamed_answer_imports_no_types_of_another_protocol(tmp_path: Path) -> None:
    seen = _seen_by_run(tmp_path, "-vv")
    assert "openai.types.responses.response" not in seen["modules"]
    assert seen["streamed"] == [True]


@pytest.mark.slow
def test_a_file_in_the_current_folder_is_not_taken_for_a_library(tmp_path: Path) -> None:
    for name in ("typer", "pydantic", "yaml", "json5", "click"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    command = [sys.executable, "-m", "llm_do", "schema", "agent"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
