"""`llm-do test`: what it prints, which exit code it ends with, and that it asks no provider unless it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import LLM_DO, REPOSITORY, Ended, run_forked
from tests.support.openai_server import serve
from tests.testing.cases.case_projects import ANSWERS, desk

PASSING = """
defaults: {answer: {write_file: once}}
tests:
  - name: keeps minutes
    input: Write the minutes.
    expect: {output: {contains: Made}}
  - name: asks before it writes
    input: Write the minutes.
    answer: nobody
    expect: {status: denied}
"""
FAILING = """
  - name: makes nothing
    input: Write the minutes.
    expect:
      output: {contains: Nothing}
"""


def run_tests(root: Path, *args: str, **options: Any) -> Ended:
    jobs = () if "-j" in args else ("-j", "1")
    return run_forked("test", *jobs, *args, cwd=root, **options)


def without_time(text: str) -> str:
    return re.sub(r"\d+\.\d+ s", "N s", text)


def test_tests_that_pass_are_dots_and_a_count(tmp_path: Path) -> None:
    done = run_tests(desk(tmp_path, PASSING), "-j", "2")
    assert (done.code, done.err) == (0, "")
    assert without_time(done.out) == "tests/minutes.test.yaml ..\n\n2 passed in N s\n"


def test_a_failure_is_shown_with_its_place_and_what_there_was(tmp_path: Path) -> None:
    done = run_tests(desk(tmp_path, PASSING + FAILING))
    assert done.code == 1
    assert without_time(done.out).splitlines() == [
        "tests/minutes.test.yaml ..F",
        "",
        "── makes nothing ───────────────────────────────── tests/minutes.test.yaml:12 ──",
        "tests/minutes.test.yaml:15: the output doesn't contain the text",
        "  expected: Nothing",
        "  got:      Made out/minutes.md.",
        "",
        "1 failed, 2 passed in N s",
    ]


def test_k_chooses_by_name_and_file(tmp_path: Path) -> None:
    root = desk(tmp_path, PASSING + FAILING, files={"tests/more/b.test.yaml": "tests: [{name: greets, input: Hello.}]"})
    assert without_time(run_tests(root, "-k", "ASKS").out).startswith("tests/minutes.test.yaml .\n")
    assert without_time(run_tests(root, "-k", "more/b").out).startswith("tests/more/b.test.yaml F\n")


@pytest.mark.parametrize(
    ("args", "tests", "code", "message"),
    [
        ([], None, 2, "no tests found: "),
        (["-k", "keeps minuts"], PASSING, 2, "no tests found: neither name nor file of any of 2 tests contains"),
        (["--record", "--live"], PASSING, 2, "--record and --live exclude each other"),
        (["--record-missing", "--replay"], PASSING, 2, "--replay and --record-missing exclude each other"),
        (["--repeat", "2"], PASSING, 2, "--repeat is for --live"),
        (["--record", "--model", "test"], PASSING, 2, "--model and --record exclude each other"),
        (["--matrix"], PASSING, 2, "no test file has a `matrix`"),
        (["--model", "openai:"], PASSING, 7, "the model 'openai:' has no name after 'openai'"),
        (
            ["--model", "secretry=test"],
            PASSING,
            2,
            "a model is named for 'secretry', and the project has no such agent",
        ),
        (["--output", "no/such/folder"], PASSING, 2, "there is no folder no/such for the report"),
        (["-j", "0"], PASSING, 2, "0"),
        (["no-such-project"], PASSING, 2, "no project at no-such-project"),
        ([], "tests:\n  - nmae: greets\n", 3, "unknown key `nmae` in `tests[0]`"),
        ([], "", 3, "the file has no tests"),
        ([], "tests: []", 3, "the file has no tests"),
        ([], "tests: [", 3, "tests/minutes.test.yaml:"),
    ],
)
def test_wrong_usage_and_faults_end_before_anything_runs(
    tmp_path: Path, args: list[str], tests: str | None, code: int, message: str
) -> None:
    root = desk(tmp_path, tests or "")
    if tests is None:
        (root / "tests/minutes.test.yaml").unlink()
    done = run_tests(root, *args)
    assert (done.code, done.out) == (code, "")
    assert message in " ".join(done.err.split())


def test_a_project_that_does_not_link_is_reported_as_check_does(tmp_path: Path) -> None:
    root = desk(tmp_path, PASSING, files={"secretary.agent": "---\nname: secretary\nmodle: test\n---\n"})
    done = run_tests(root)
    assert (done.code, done.out) == (3, "")
    assert "secretary.agent:3:1: error[LD120]" in done.err


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with serve({"secretary": ANSWERS}) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
        yield log


@pytest.mark.slow
def test_missing_recordings_are_one_block_until_they_are_recorded(tmp_path: Path, server: list[Any]) -> None:
    root = desk(tmp_path, PASSING, model="openai-chat:secretary")
    missing = run_tests(root)
    assert (missing.code, server) == (1, [])
    assert without_time(missing.out).splitlines() == [
        "tests/minutes.test.yaml FF",
        "",
        "── 2 tests have one cause ──────────────────────────────────────────────────────",
        "it has no cassette",
        "  Record them with `llm-do test --record-missing`.",
        "  tests/minutes.test.yaml:4 keeps minutes",
        "  tests/minutes.test.yaml:7 asks before it writes",
        "",
        "2 failed in N s",
    ]
    recorded = run_tests(root, "--record-missing")
    assert (recorded.code, len(server)) == (0, 6)
    assert recorded.err == "recording 2 tests for the first time: what it costs isn't known\n"
    assert "\nrecorded 6 requests in 2 cassettes\n" in recorded.out
    server.clear()
    assert run_tests(root, "--record-missing").code == 0
    assert run_tests(root).code == 0
    assert server == []


@pytest.mark.slow
def test_a_changed_prompt_is_one_block_and_only_what_it_concerns_is_recorded_again(
    tmp_path: Path, server: list[Any]
) -> None:
    scripted = "tests: [{name: scripted, input: x, model: 'script:answers.yaml', answer: once}]"
    root = desk(tmp_path, PASSING, model="openai-chat:secretary", files={"tests/other.test.yaml": scripted})
    assert run_tests(root, "--record").code == 0
    server.clear()
    agent = root / "secretary.agent"
    agent.write_text(agent.read_text().replace("Keep minutes.", "Keep short minutes."))
    done = run_tests(root)
    assert done.out.count("Keep short minutes.") == 1
    assert "── 2 tests have one cause ──" in done.out
    assert "secretary.agent:6: secretary's instructions have changed since the" in done.out
    assert "Record them with `llm-do test --record-missing` (6 requests last time)." in " ".join(done.out.split())
    again = run_tests(root, "--record-missing")
    assert again.err == "recording 2 tests (6 requests last time)\n"
    assert (again.code, len(server)) == (0, 6)


def test_a_provider_that_fails_while_recording_is_exit_code_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = desk(tmp_path, PASSING, model="openai-chat:secretary")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
    with serve({"secretary": [{"status": 401, "times": 99}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        done = run_tests(root, "--record")
    assert done.code == 7
    assert not (root / "tests/cassettes").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("form", "first"), [("json", "{\n"), ("junit", "<?xml"), ("markdown", "### ❌ llm-do test: 2 passed, 1 failed")]
)
def test_a_report_goes_to_stdout_or_to_a_file(tmp_path: Path, form: str, first: str) -> None:
    root = desk(tmp_path, PASSING + FAILING)
    done = run_tests(root, "--format", form)
    assert done.out.startswith(first)
    assert "1 failed, 2 passed" in done.err
    filed = run_tests(root, "--format", form, "--output", "report")
    assert (filed.code, filed.err) == (1, "")
    assert "1 failed, 2 passed" in filed.out
    assert (root / "report").read_text().startswith(first)


@pytest.mark.slow
def test_matrix_columns_are_run_one_by_one(tmp_path: Path) -> None:
    matrix = PASSING + "matrix:\n  plain: {}\n  silent: {agents: {secretary: silent.agent}}\n"
    silent = "---\nname: secretary\nmodel: script:silent.yaml\ntoolsets: [filesystem_project]\n---\n"
    files = {"variants/silent.agent": silent, "silent.yaml": json.dumps([{"text": "Nothing."}])}
    root = desk(tmp_path, matrix.replace("silent.agent", "variants/silent.agent"), files=files, agent_files=["*.agent"])
    done = run_tests(root, "--matrix")
    assert done.out.splitlines()[:2] == [
        "tests/minutes.test.yaml [plain] ..",
        "tests/minutes.test.yaml [silent] FF",
    ]
    data = json.loads(run_tests(root, "--matrix", "--format", "json").out)
    assert data["columns"] == ["plain", "silent"]
    assert [case["status"] for case in data["cases"]] == ["passed", "passed", "failed", "failed"]


HANGS = '''
import os, time

def hang(seconds: float) -> str:
    """Hang."""
    time.sleep(seconds)
    return "over"

async def block(seconds: float) -> str:
    """Block the loop."""
    print("blocking")
    time.sleep(seconds)
    return "over"

def crash() -> str:
    """Crash."""
    os._exit(9)

TOOLS = [hang, block, crash]
'''
TOOL_AGENT = "---\nname: secretary\nmodel: script:answers.yaml\ntools: [hang, block, crash]\n---\n"


def tools_desk(root: Path, tests: str, *calls: dict[str, Any]) -> Path:
    answers = [{"tools": list(calls)}, {"text": "Done."}]
    files = {"secretary.agent": TOOL_AGENT, "tools.py": HANGS}
    return desk(
        root,
        tests,
        files=files,
        answers=answers,
        python_files=["tools.py"],
        approvals={"allow": ["hang", "block", "crash"]},
    )


def test_a_test_that_hangs_ends_at_its_limit(tmp_path: Path) -> None:
    tests = "tests: [{name: hangs, input: x, at_most: {seconds: 0.2}}]"
    done = run_tests(tools_desk(tmp_path, tests, {"name": "hang", "args": {"seconds": 600}}))
    assert done.code == 1
    assert "tests/minutes.test.yaml:1: the run took longer than 0.2 s" in done.out


def test_a_test_that_ends_its_process_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    tests = "tests: [{name: crashes, input: x}, {name: is quick, input: x, model: 'script:b.yaml'}]"
    root = tools_desk(tmp_path, tests, {"name": "crash"})
    (root / "b.yaml").write_text(json.dumps([{"text": "Done."}]))
    done = run_tests(root, "-j", "1")
    assert done.code == 1
    assert "the process of the test exited with code 9" in done.out
    assert "1 with errors, 1 passed" in done.out


@pytest.mark.slow
def test_a_test_that_blocks_its_process_is_stopped_and_what_it_printed_is_shown(tmp_path: Path) -> None:
    tests = "tests: [{name: blocks, input: x, at_most: {seconds: 0.2}}]"
    done = run_tests(tools_desk(tmp_path, tests, {"name": "block", "args": {"seconds": 600}}))
    assert done.code == 1
    assert "the test didn't end: it was stopped after 15.2 s" in done.out
    assert "printed:\n      blocking" in done.out


@pytest.mark.slow
def test_an_interruption_reports_what_ran(tmp_path: Path) -> None:
    quick = "{name: is quick, input: x, model: 'script:b.yaml'}"
    tests = f"tests: [{quick}, {{name: hangs, input: x}}, {{name: comes later, input: x}}]"
    root = tools_desk(tmp_path, tests, {"name": "hang", "args": {"seconds": 600}})
    (root / "b.yaml").write_text(json.dumps([{"text": "Done."}]))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [*LLM_DO, "test", "-j", "1"]
    process = subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    begun = process.stdout.read(len("tests/minutes.test.yaml ."))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert without_time(begun + out) == "tests/minutes.test.yaml .--\n\ninterrupted: 1 passed, 2 not run in N s\n"
    assert err == ""
