"""Commands run without a shell, never wait for input, use bounded memory and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai import FunctionToolset

from llm_do import Runtime
from llm_do.errors import ToolError
from llm_do.policy.secrets import is_secret
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.toolsets.shell.captured_output import Capture
from llm_do.toolsets.shell.environment import shell_environment, trusted_path
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.toolsets.shell.support import OFF, arun, configured, run, traits

PYTHON = sys.executable


@pytest.fixture
def shell(tmp_path: Path) -> FunctionToolset[Any]:
    return configured(tmp_path, "shell", type="shell", allow=["*"], sandbox=OFF)


def python(code: str) -> str:
    return f"{PYTHON} -c '{code}'"


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, allowing its new parent a moment to reap it."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_result_has_exit_code_and_both_streams(shell: FunctionToolset[Any]) -> None:
    code = 'import sys; print("out"); print("err", file=sys.stderr); sys.exit(3)'
    assert run(shell, python(code)) == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "truncated": False}


def test_an_argument_reaches_the_program_unchanged(shell: FunctionToolset[Any]) -> None:
    code = "import sys; print(sys.argv[1:])"
    result = run(shell, f"{python(code)} '; ls' 'a  b' '*'")
    assert result["stdout"] == "['; ls', 'a  b', '*']\n"


def test_a_pipeline_connects_its_processes_and_reports_every_failure(shell: FunctionToolset[Any]) -> None:
    shout = python("import sys; print(sys.stdin.read().upper(), end=str())")
    assert run(shell, f"echo hello | {shout} | cat")["stdout"] == "HELLO\n"
    failed = run(shell, f"{python('import sys; sys.exit(4)')} | cat")
    assert (failed["exit_code"], failed["exit_codes"]) == (0, [4, 0])


def test_a_reader_that_stops_early_ends_the_writer(shell: FunctionToolset[Any]) -> None:
    result = run(shell, "yes | head -n 2", timeout=20)
    assert (result["exit_code"], result["stdout"]) == (0, "y\ny\n")


def test_a_writer_whose_reader_stops_early_has_not_failed(shell: FunctionToolset[Any]) -> None:
    succeeded = traits(shell).succeeded
    assert succeeded is not None
    enough, failed = run(shell, "yes | head -n 2", timeout=20), run(shell, "false | cat")
    assert ("exit_codes" in enough, succeeded(enough)) == (False, True)
    assert ("exit_codes" in failed, succeeded(failed)) == (True, False)


def test_commands_get_no_input(shell: FunctionToolset[Any]) -> None:
    assert run(shell, "cat", timeout=20)["stdout"] == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permission")
def test_a_file_without_the_permission_to_run_is_called_that(shell: FunctionToolset[Any], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ToolError, match=r"the file '\./notes\.txt' can't be run: it is not executable"):
        run(shell, "./notes.txt")


def test_a_missing_program_is_a_failed_result(shell: FunctionToolset[Any]) -> None:
    with pytest.raises(ToolError, match="there is no program 'no-such-program'"):
        run(shell, "no-such-program")
    with pytest.raises(ToolError, match="there is no program 'no-such-program'"):
        run(shell, "echo x | no-such-program")


def test_a_file_that_is_not_executable_is_a_failed_result(shell: FunctionToolset[Any], tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x00\x01")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(ToolError, match="odd could not be started"):
        run(shell, "./odd")


def test_undecodable_bytes_are_replaced(shell: FunctionToolset[Any]) -> None:
    code = 'import sys; sys.stdout.buffer.write(b"a\\xffb")'
    assert run(shell, python(code))["stdout"] == "a\ufffdb"


@pytest.mark.slow
def test_long_output_is_cut_in_the_middle_with_bounded_memory(shell: FunctionToolset[Any]) -> None:
    line = "x" * 1000
    code = f'import sys; [sys.stdout.write("{line}") for _ in range(40000)]; print("end")'
    tracemalloc.start()
    try:
        result = run(shell, python(code))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result["truncated"]
    assert result["stdout"].startswith("xxx")
    assert result["stdout"].endswith("xend\n")
    assert "of 40000004 bytes left out" in result["stdout"]
    assert len(result["stdout"]) < 70_000
    assert peak < 8_000_000


def test_endless_output_ends_the_command(shell: FunctionToolset[Any]) -> None:
    with pytest.raises(ToolError, match="printed more than 64 MiB and was stopped") as caught:
        run(shell, "yes 0123456789012345678901234567890123456789")
    assert len(caught.value.message) < 70_000


def timed_out(shell: FunctionToolset[Any], command: str) -> list[str]:
    """Return the output of a command that timed out, retrying because it may print late on a busy machine."""
    for seconds in (1, 5, 25):
        with pytest.raises(ToolError, match=f"^the command timed out after {seconds} s and was stopped") as caught:
            run(shell, command, timeout=seconds)
        if "stdout:" in caught.value.message:
            return caught.value.message.partition("stdout:")[2].split()
    pytest.fail(f"it says nothing: {command}")


def test_a_timeout_ends_the_command_and_returns_its_output(shell: FunctionToolset[Any]) -> None:
    words = timed_out(shell, python("import os, time; print(os.getpid(), flush=True); time.sleep(60)"))
    assert is_gone(int(words[0]))


@pytest.mark.slow
def test_a_terminated_command_leaves_no_event_loop_warnings(shell: FunctionToolset[Any]) -> None:
    complaints: list[Any] = []

    async def end_it() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        with pytest.raises(ToolError, match="timed out"):
            await arun(shell, "sleep 60 | sleep 60", timeout=0.1)
        gc.collect()

    asyncio.run(end_it())
    assert complaints == []


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stay = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"]
child = subprocess.Popen(stay)
away = subprocess.Popen(stay, start_new_session=True)
print(os.getpid(), child.pid, away.pid, flush=True)
open(sys.argv[1], "w").close()
time.sleep(60)
"""


@pytest.mark.slow
def test_a_timeout_leaves_no_process_behind_whatever_it_ignores(shell: FunctionToolset[Any], tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    pids = [int(pid) for pid in timed_out(shell, f"{PYTHON} stubborn.py ready")[:3]]
    assert len(pids) == 3
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.slow
def test_a_cancelled_call_leaves_no_process_behind(shell: FunctionToolset[Any], tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(
        STUBBORN.replace("print(", "print(file=open('pids', 'w'), *(").replace("flush=True)", ")); sys.stdout.flush()")
    )

    async def cancel_it() -> None:
        task = asyncio.ensure_future(arun(shell, f"{PYTHON} stubborn.py ready", timeout=60))
        while not (tmp_path / "ready").exists():  # noqa: ASYNC110 (another process says when)
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().replace(",", " ").split()]
    assert len(pids) == 3
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.slow
def test_background_processes_of_a_command_do_not_delay_it_and_are_killed(shell: FunctionToolset[Any]) -> None:
    code = 'import subprocess; print(subprocess.Popen(["sleep", "60"]).pid)'
    started = time.monotonic()
    result = run(shell, python(code), timeout=50)
    assert time.monotonic() - started < 40
    assert is_gone(int(result["stdout"]))


def test_commands_run_concurrently(shell: FunctionToolset[Any]) -> None:
    code = 'import os, time; open("{0}", "w").close()\nwhile not os.path.exists("{1}"): time.sleep(0.01)'

    async def both() -> list[dict[str, Any]]:
        return await asyncio.gather(*(arun(shell, python(code.format(*names)), timeout=30) for names in ("ab", "ba")))

    # Each waits for the other.
    assert [result["exit_code"] for result in asyncio.run(both())] == [0, 0]


@pytest.mark.parametrize("seconds", [0, -1, 1e9, "inf", "nan"])
def test_a_timeout_must_be_a_positive_number_of_seconds(shell: FunctionToolset[Any], seconds: object) -> None:
    with pytest.raises(ValidationError):
        run(shell, "ls", timeout=seconds)


def test_commands_see_only_listed_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("FAVOURITE", "green")
    monkeypatch.setenv("SITE", "https://ann:secret@example.org")
    toolset = configured(tmp_path, "shell", allow=["*"], env=["FAVOURITE", "SITE"], sandbox=OFF)
    names = {line.partition("=")[0] for line in run(toolset, "env")["stdout"].splitlines()}
    assert "FAVOURITE" in names
    assert not names & {"OPENAI_API_KEY", "SITE", "HOME", "USER"}
    assert names <= {"PATH", "TERM", "LANG", "LANGUAGE", "TZ", "FAVOURITE", "LLM_DO_COMMAND", "LLM_DO_LIFELINE"} | {
        name for name in names if name.startswith("LC_")
    }


@each_row(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "GH_TOKEN",
        "DB_PASSWORD",
        "PGPASS",
        "SSH_AUTH_SOCK",
        "MY_PAT",
        "session_id",
        "SENTRY_DSN",
    ],
)
def test_names_of_secrets_are_recognized(name: str) -> None:
    assert is_secret(name)
    assert shell_environment("/bin", [name], {name: "x"}) == {"TERM": "dumb", "PATH": "/bin"}


@each_row(
    "value", ["sk-proj-abcdefghijkl", "ghp_abcdefghijklmnop", "AKIAABCDEFGHIJKLMNOP", "-----BEGIN KEY", "pg://a:b@c"]
)
def test_values_of_secrets_are_recognized(value: str) -> None:
    assert shell_environment("/bin", ["PLAIN"], {"PLAIN": value}) == {"TERM": "dumb", "PATH": "/bin"}


def test_the_search_path_excludes_the_project(tmp_path: Path) -> None:
    (tmp_path / "project" / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project" / "bin")
    given = os.pathsep.join([".", "", "bin", str(tmp_path / "project/bin"), str(tmp_path / "link"), "/usr/bin"])
    assert trusted_path(tmp_path / "project", {"PATH": given}) == "/usr/bin"


def test_a_variable_with_relative_search_paths_finds_no_program_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "true").write_text("#!/bin/sh\ntouch marker\n")
    (tmp_path / "true").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".::{tmp_path.name}:{os.environ['PATH']}")
    assert run(configured(tmp_path, allow=["true"], env=["PATH"]), "true")["exit_code"] == 0
    assert not (tmp_path / "marker").exists()


def test_a_truncated_stream_is_cut_between_characters() -> None:
    capture = Capture(limit=8, most=10_000)
    for piece in ("äöü" * 5, "x", "äöü" * 5):
        capture.feed(piece.encode())
    assert capture.text() == "äö\n[... 53 of 61 bytes left out ...]\nöü"
    assert "\ufffd" not in "".join(_cut(text, limit) for text in ("aé€😀" * 9,) for limit in range(2, 40))


def _cut(text: str, limit: int) -> str:
    capture = Capture(limit=limit, most=10_000)
    for byte in text.encode():
        capture.feed(bytes([byte]))
    return capture.text()


def test_a_short_stream_is_kept_unchanged() -> None:
    for size in range(9):
        capture = Capture(limit=8, most=100)
        for _ in range(size):
            capture.feed(b"a")
        assert (capture.text(), capture.truncated) == ("a" * size, False)


@pytest.mark.parametrize(
    ("command", "asked"),
    [("no-such-program x", 0), ("ls | no-such-program", 0), ("./absent.sh", 0), ("make; ./made", 1)],
)
def test_no_one_is_asked_about_a_program_that_does_not_exist(tmp_path: Path, command: str, asked: int) -> None:
    person = Answers(["deny"] * asked)
    spec = agent("main", script(call("shell", command=command), "done"), toolsets=["sh"])
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell"})}
    result = carry_out(Runtime(project_of([spec], root=tmp_path, toolsets=toolsets), approvals=person))

    assert result.status == "completed"
    assert len(person.asked) == asked
