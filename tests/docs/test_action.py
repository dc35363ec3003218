"""`action.yml` and the hook for pre-commit: steps run here as a runner runs them, with a stand-in for `gh`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{ ([\w.]+) \}\}")
GH = """\
#!/bin/sh
case "$*" in *--paginate*) echo "$EARLIER"; exit ;; esac
for argument; do printf '%s\\n' "$argument" >>"$RUNNER_TEMP/gh.txt"; done
exit "$GH_FAILS"
"""
PROJECT = '{"version": 1, "name": "::error::shop", "entry": {"agent": "main"}, "agent_files": ["main.agent"], %s}'
CASES = 'defaults: {model: "test"}\ntests:\n  - {name: answers, input: Hello, expect: {output: {contains: "%s"}}}\n'


HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Job:
    """What the steps of one job did."""

    codes: dict[str, int]
    log: str
    summary: str
    comment: list[str]
    workspace: Path


def test_no_expression_is_part_of_a_script() -> None:
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []
    assert all(step["shell"] == "bash" for step in STEPS.values())
    assert not any("uses" in step for step in STEPS.values())


def test_every_input_is_used_and_described() -> None:
    used = {name for step in STEPS.values() for name in re.findall(r"inputs\.(\w+)", str(step))}

    assert used == set(ACTION["inputs"])
    assert all(each["description"].endswith(".") for each in ACTION["inputs"].values())


def test_the_hook_runs_for_each_file_of_a_project_and_imports_nothing() -> None:
    (hook,) = HOOKS
    files = ["project.json", "shop/project.json", "a.agent", "tests/a.test.yaml", "tools.py", "shop/llm-do.lock"]

    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("llm-do-check", "python", False)
    assert all(re.search(hook["files"], file) for file in files)
    assert not any(re.search(hook["files"], file) for file in ("readme.md", "my-project.json", "a.agents"))
    assert [*hook["entry"].split(), *hook["args"]] == ["llm-do", "check", "--text-only"]


def run(folder: Path, *, event: dict[str, str] | None = None, **inputs: str) -> Job:
    """Run all steps but the installation, in the folder `shop` with a project."""
    temp, workspace, programs = folder / "temp", folder / "shop", folder / "programs"
    for path, text in {
        temp / "llm-do/bin/llm-do": f'#!/bin/sh\nexec "{sys.executable}" -m llm_do.cli "$@"\n',
        temp / "llm-do/bin/python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
        programs / "gh": GH,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    values = {f"inputs.{name}": str(each["default"]) for name, each in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values |= {f"github.event.pull_request.{name}": value for name, value in (event or {}).items()}
    base = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(temp),
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
        "GITHUB_REPOSITORY": "ann/shop",
        "GITHUB_WORKFLOW": "agents",
        "GITHUB_JOB": "agents",
        "EARLIER": inputs.get("earlier", ""),
        "GH_FAILS": inputs.get("fails", "0"),
    }
    codes: dict[str, int] = {}
    log = ""
    for name, step in STEPS.items():
        if name == "Install llm-do" or (name == "Test" and values["inputs.test"] != "true"):
            continue
        env = {key: EXPRESSION.sub(lambda found: values.get(found[1], ""), text) for key, text in step["env"].items()}
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=workspace,
            env=base | env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        codes[name] = ended.returncode
        log += ended.stdout + ended.stderr
    sent = temp / "gh.txt"
    summary = temp / "summary.md"
    return Job(
        codes,
        log,
        summary.read_text(encoding="utf-8") if summary.exists() else "",
        sent.read_text(encoding="utf-8").splitlines() if sent.exists() else [],
        workspace,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a project whose Python file leaves a trace when it is imported."""
    shop = tmp_path / "shop"
    (shop / "tests").mkdir(parents=True)
    (shop / "project.json").write_text(PROJECT % '"python_files": ["tools.py"], "approvals": {"allow": ["look"]}')
    (shop / "main.agent").write_text("---\nname: main\ntools: [look]\n---\nHelp.\n")
    (shop / "tools.py").write_text(
        'from pathlib import Path\n\nPath("imported").touch()\n\n\ndef look() -> str:\n    """Look."""\n'
        '    return "seen"\n\n\nTOOLS = [look]\n'
    )
    (shop / "tests" / "main.test.yaml").write_text(CASES % "seen")
    return tmp_path


OWN = {"number": "7", "head.repo.full_name": "ann/shop"}
FORK = {"number": "7", "head.repo.full_name": "eve/shop"}
DELETED_FORK = {"number": "7"}


@pytest.mark.slow
def test_a_pull_request_is_checked_tested_and_reported(folder: Path) -> None:
    job = run(folder, event=OWN, sarif="found.sarif")

    assert job.codes == {"Check": 0, "Test": 0, "Report": 0}, job.log
    assert "### ✅ llm-do check\n" in job.summary
    assert "| <code>answers</code> | ✅ passed |" in job.summary
    assert job.comment[:4] == ["api", "--method", "POST", "repos/ann/shop/issues/7/comments"]
    assert '"version": "2.1.0"' in (job.workspace / "found.sarif").read_text()
    comment = (folder / "temp" / "llm-do-comment.md").read_text(encoding="utf-8")
    assert comment == f"<!-- llm-do: agents, agents -->\n{job.summary}"


@pytest.mark.slow
@pytest.mark.parametrize("event", [FORK, DELETED_FORK])
def test_nothing_of_a_fork_runs_and_no_comment_is_written(event: dict[str, str], folder: Path) -> None:
    job = run(folder, event=event)

    assert job.codes == {"Check": 0, "Test": 0, "Report": 0}, job.log
    assert not (job.workspace / "imported").exists()
    assert "Tests don't run for pull requests from forks." in job.summary
    assert job.comment == []


@pytest.mark.slow
def test_a_push_has_a_summary_and_no_comment(folder: Path) -> None:
    job = run(folder, test="false")

    assert job.codes == {"Check": 0, "Report": 0}
    assert (job.workspace / "imported").exists()
    assert job.summary.startswith("### ✅ llm-do check\n")
    assert job.comment == []


@pytest.mark.slow
def test_faults_fail_the_job_and_are_annotations_only(folder: Path) -> None:
    (folder / "shop" / "main.agent").write_text("---\nname: main\nmodle: x\n---\n")
    (folder / "shop" / "tests" / "main.test.yaml").write_text(CASES % "never")

    job = run(folder, event=OWN, earlier="99", fails="1")

    assert {name: code for name, code in job.codes.items() if code} == {"Check": 3, "Test": 3}
    commands = [line for line in job.log.splitlines() if line.lstrip().startswith("::")]
    assert commands[0].startswith("::error file=main.agent,line=3,")
    assert "::error::shop" not in "\n".join(commands)
    assert commands[-1].startswith("::warning::the report isn't a comment")
    assert job.comment[:4] == ["api", "--method", "PATCH", "repos/ann/shop/issues/comments/99"]
    assert "### ❌ llm-do check\n" in job.summary
    assert "### ❌ llm-do test: no report" in job.summary


@pytest.mark.slow
def test_inputs_are_values_and_never_scripts(folder: Path) -> None:
    job = run(folder, event=OWN, project='$(touch "$RUNNER_TEMP/run") ; `id`', base='"; touch x', test="false")

    assert job.codes["Check"] == 2
    assert not (folder / "temp" / "run").exists()
