"""A person's configuration and a project's aliases, as the command line shows and uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked

MANIFEST = """\
{
  "version": 1,
  "entry": {"agent": "main"},
  "agent_files": ["*.agent"],
  "python_files": ["tools.py"],
  "models": {"fast": "script:answers.yaml"}
}
"""


def configured(root: Path, text: str) -> dict[str, str | None]:
    """The variables with which a configuration is used."""
    file = root.parent / "config" / "llm-do" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return {"XDG_CONFIG_HOME": str(file.parent.parent)}


@pytest.mark.slow
def test_an_alias_can_be_named_on_the_command_line_and_for_a_thread(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'", manifest=MANIFEST)

    by_option = run_forked("run", "hi", "-m", "fast", "--no-record", cwd=root)
    by_name = run_forked("run", "hi", "-m", "main=fast", "--no-record", cwd=root)
    wrong = run_forked("run", "hi", "-m", "fats", "--no-record", cwd=root)
    planned = run_forked("run", "hi", "-m", "fast", "--dry-run", cwd=root)
    thread = run_forked("threads", "set", "t", "model=fast", cwd=root)
    mistaken = run_forked("threads", "set", "t", "model=fats", cwd=root)
    listed = run_forked("models", cwd=root)

    assert (by_option.out, by_name.out) == ("got hi\n", "got hi\n")
    assert wrong.err == "error: the model 'fats' names no provider. Did you mean the alias `fast`?\n"
    assert f"agent main: model script:{root}/answers.yaml (override)" in planned.out
    assert (thread.code, mistaken.code) == (0, 2)
    assert "Did you mean the alias `fast`?" in mistaken.err
    assert listed.out.startswith("fast")
    assert "script:answers.yaml, by `models` of project.json" in listed.out.splitlines()[0]


def test_faults_of_the_configuration_are_warnings_and_the_run_goes_on(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'")
    env = configured(root, 'modle = "test"\n[aliases]\nmine = "test"\n')

    run = run_forked("run", "hi", "--no-record", cwd=root, env=env)
    quiet = run_forked("run", "hi", "-q", "--no-record", cwd=root, env=env)
    doctor = run_forked("doctor", cwd=root, env=env)

    file = f"{root.parent}/config/llm-do/config.toml"
    assert (run.code, run.err) == (0, f"warning: unknown key `modle` ({file}:1). Did you mean `model`?\n")
    assert (quiet.out, quiet.err) == ("got hi\n", "")
    assert f"ok    config            {file}: mine = test\n" in doctor.out
    assert f"note  config            {file}:1: unknown key `modle`\n" in doctor.out


def test_approvals_in_the_configuration_stop_a_run_before_it_begins(project: Callable[..., Path]) -> None:
    root = project("- text: 'got {input}'")
    env = configured(root, '\n[approvals]\nallow = ["*"]\n')

    run = run_forked("run", "hi", "--format", "json", cwd=root, env=env)
    check = run_forked("check", cwd=root, env=env)

    assert (run.code, run.json["status"], run.json["errors"][0]["line"]) == (2, "invalid", 2)
    assert "`approvals` can't be configured for all projects" in run.err
    assert check.code == 0
    assert "warning: `approvals` can't be configured for all projects" in check.err
