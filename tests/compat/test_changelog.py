"""Everything that differs for projects from 0.3 is in the changelog, and each difference listed there is real."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import InputError, LinkError, Project
from llm_do.cli.arguments.usage_hints import hint_for_command, hint_for_option
from llm_do.errors import EXIT_CODES
from llm_do.project.project import RuntimeSettings
from llm_do.toolsets.approval import set_toolset_approval_config
from llm_do.toolsets.shell import ShellToolset
from tests.support.runs import agent, carry_out, run_spec, runtime_of
from tests.support.scripted import call, script

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("### Coming from 0.3") :].partition("\n### New")[0]
ENTRIES = [" ".join(entry.split()) for entry in re.findall(r"^- ((?:.+\n)(?:  .+\n)*)", SECTION, re.MULTILINE)]


def codes(folder: Path, agent_text: str = "---\nname: main\n---\n", **manifest: Any) -> list[str]:
    """The codes of the errors of a project."""
    (folder / "main.agent").write_text(agent_text)
    data = {"version": 1, "runtime": {}, "entry": {"agent": "main"}, "agent_files": ["main.agent"], **manifest}
    (folder / "project.json").write_text(json.dumps(data))
    try:
        Project.load(folder)
    except LinkError as error:
        return [found.code for found in error.diagnostics]
    return []


def unknown_keys(folder: Path) -> None:
    assert codes(folder) == []
    assert codes(folder, colour="red")
    assert codes(folder, "---\nname: my main\n---\n")


def denials(_: Path) -> None:
    assert RuntimeSettings().return_permission_errors is True


def no_terminal(_: Path) -> None:
    assert EXIT_CODES["denied"] == 4


def shell(folder: Path) -> None:
    (folder / "a").write_text("{}")
    (folder / "project.json").write_text("{}")
    rules = [{"pattern": "cp", "approval_required": False}, {"pattern": "env", "approval_required": False}]
    toolset = ShellToolset({"rules": rules, "base_path": folder})  # type: ignore[typeddict-item]
    for command in ("cp a project.json", "env rm a", "cp a .git/config"):
        spec = agent("main", script(call("shell", command=command), "done"), toolsets=[toolset])
        result = carry_out(runtime_of([spec], root=folder, approvals="prompt"))
        assert [denial.tool for denial in result.denials] == ["shell"], command


def approval_config(_: Path) -> None:
    set_toolset_approval_config(FunctionToolset(), {"add": {"pre_approved": True}})
    with pytest.raises(ValueError, match="pre_approved"):
        set_toolset_approval_config(FunctionToolset(), {"add": {"approved": True}})


def sign_in(folder: Path) -> None:
    assert codes(folder, runtime={"auth_mode": "oauth_off"}) == []
    assert codes(folder, runtime={"auth_mode": "oauth_required"})


def command_line(folder: Path) -> None:
    assert "llm-do run" in hint_for_command(str(folder), ["Hello"], ["run"])
    for option, words in (("--chat", "chat"), ("--tui", "chat"), ("--headless", "leave it out")):
        assert words in str(hint_for_option(option, []))
    assert "python_files" in str(hint_for_option("--init-python", []))


def empty_input(_: Path) -> None:
    with pytest.raises(InputError):
        run_spec(agent("main", script("x")), "")

    async def main(input: Any, ctx: Any) -> Any:
        return ctx.call("main", "x")

    assert carry_out(runtime_of([], main)).status == "failed"


def modules(_: Path) -> None:
    for name in ("llm_do.project.linker", "llm_do.project.discovery", "llm_do.ui.app"):
        assert find_spec(name) is None


def versions(_: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert declared["requires-python"].startswith(">=3.11")
    assert any(re.match(r"pydantic-ai(-slim)?(\[.*\])?>=2\.", each) for each in declared["dependencies"])


DIFFERENCES: dict[str, Callable[[Path], None]] = {
    "Unknown keys are errors": unknown_keys,
    "A denied call is reported to the model": denials,
    "A run starts even without a terminal": no_terminal,
    "`ShellToolset` keeps its rules": shell,
    "The settings that `set_toolset_approval_config` accepts": approval_config,
    "`auth_mode` other than `oauth_off` is an error": sign_in,
    "The command line has commands": command_line,
    "An empty input is refused": empty_input,
    "The modules inside `llm_do.ui` and `llm_do.project`": modules,
    "Python 3.11": versions,
}
"""The beginning of each entry, and what shows that it is so."""


def test_the_changelog_lists_these_differences_and_no_others() -> None:
    assert [entry for entry in ENTRIES if not entry.startswith(tuple(DIFFERENCES))] == []
    assert [each for each in DIFFERENCES if not any(entry.startswith(each) for entry in ENTRIES)] == []


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_each_difference_is_real(tmp_path: Path, difference: str) -> None:
    DIFFERENCES[difference](tmp_path)
