"""Machines that lack something: memory, open files, a current folder. Each has an error that says so."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import LLM_DO, REPOSITORY, Ended, environment, run_forked, write_project
from tests.cli.process.import_forks import run_with_faults

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process are Linux's here")

MODULE = [sys.executable, "-m", "llm_do"]
MEGABYTE = 1 << 20


def run_limited(
    args: list[str], cwd: Path, *, prepare: Callable[[], None] = lambda: None, program: list[str] = LLM_DO, **env: str
) -> Ended:
    """Run `llm-do` after a function that changes the new process."""
    ended = subprocess.run(
        [*program, *args],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        env=environment(LLM_DO_TRUST="1", **env),
        preexec_fn=prepare,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def limit(kind: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (value, value))


@pytest.mark.parametrize("command", [["run", "x"], ["check"]])
def test_a_lack_of_memory_is_what_the_error_says(tmp_path: Path, command: list[str]) -> None:
    ended = run_limited(command, write_project(tmp_path), prepare=limit(resource.RLIMIT_AS, 30 * MEGABYTE))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: there isn't enough memory. Close other programs, or raise the limit: `ulimit ")


def test_a_lack_of_memory_while_hashes_are_imported_shows_no_traceback() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('hashlib', '_hashlib', '_blake2', '_sha3', '_md5')))\n"
        "del sys.modules['hashlib']\n"
        "from llm_do._startup.process import hasten_imports\n"
        "try:\n"
        "    hasten_imports()\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ended.stderr == ""


def test_native_code_that_fails_without_a_reason_lacks_memory_where_there_is_none_to_look_up_the_limit() -> None:
    code = (
        "import sys\n"
        "class Full:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'resource':\n"
        "            raise ImportError('resource.so: failed to map segment from shared object')\n"
        "sys.modules.pop('resource', None)\n"
        "sys.meta_path.insert(0, Full())\n"
        "from llm_do._machine_limits import find_limit\n"
        "print(find_limit(SystemError('error return without exception set')))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout

    assert "enough memory" in said


def test_native_code_that_fails_without_a_reason_lacks_memory_only_where_that_is_limited() -> None:
    code = (
        "from llm_do._machine_limits import find_limit\n"
        "print(find_limit(SystemError('error return without exception set')))"
    )
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=prepare).stdout
        for prepare in (limit(resource.RLIMIT_AS, 4_000 * MEGABYTE), None)
    ]
    assert "there isn't enough memory" in said[0]
    assert said[1] == "None\n"


LIMITS = {
    "MemoryError()": "there isn't enough memory. Close",
    'RuntimeError("can\'t start new thread")': "no more processes or threads can be started. End other processes",
    "OSError(errno.EMFILE, 'Too many open files', 'x.py')": "too many files are open. Raise the limit",
    "OSError(errno.EIO, 'Input/output error', 'x.py')": "x.py: the disk can't be read or written. Look at",
    "BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))": "no more processes or threads can be started. End",
    "ImportError('libx.so.1: failed to map segment from shared object')": "there isn't enough memory. Close",
    "ImportError('libx.so.1: cannot open shared object file: Error 24')": "too many files are open. Raise",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("module", ["typer", "llm_do.cli.commands.run", "llm_do.assembly"])
def test_what_a_machine_lacks_is_what_the_error_says(tmp_path: Path, module: str) -> None:
    faults = {error: f"import errno, os\nraise {error}" for error in LIMITS}
    root = write_project(tmp_path / "project")
    for error, ended in run_with_faults(tmp_path / "faults", root, module, faults, ["run", "x"]).items():
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"error: {LIMITS[error]}")
        assert ended.err.count("\n") == 1


def test_an_incomplete_installation_is_what_the_error_says(tmp_path: Path) -> None:
    faults = {"missing": "raise ImportError('no module x')"}
    ended = run_with_faults(tmp_path / "faults", tmp_path, "typer", faults, ["run", "x"])["missing"]

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == ("error: llm-do can't be started: ImportError: no module x. Is the installation complete?\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize(("command", "number"), [("run", 6), ("run", 7), ("run", 8), ("check", 5), ("check", 6)])
def test_too_few_open_files_are_what_the_error_says(tmp_path: Path, command: str, number: int) -> None:
    args = [command, "x"] if command == "run" else [command]
    ended = run_limited(args, write_project(tmp_path), prepare=limit(resource.RLIMIT_NOFILE, number))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        "error: too many files are open. Raise the limit of open files: `ulimit -n` shows a shell's, "
        "`ulimit -n 1024` sets it.\n"
    )


@pytest.mark.slow
def test_neither_an_agent_nor_a_store_is_blamed_for_too_few_open_files(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project")
    faults = {
        str(each): f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({each}, {each}))"
        for each in range(12, 20)
    }
    # Only what follows this import opens as many files.
    ended = run_with_faults(tmp_path / "faults", root, "llm_do.assembly", faults, ["run", "x"])
    said = [each.err for each in ended.values()]

    assert not [text for text in said if "can't be built" in text or "itself failed" in text or "moving it" in text]
    assert [text for text in said if "state.db can't be opened: Too many open files. Raise the limit" in text]


def gone(folder: Path) -> Callable[[], None]:
    """Change to a folder and delete it."""

    def prepare() -> None:
        folder.mkdir()
        os.chdir(folder)
        folder.rmdir()

    return prepare


IN_CURRENT_FOLDER = "---\nname: main\nmodel: script:answers.yaml\ntoolsets: [filesystem_cwd]\n---\nHelp.\n"
DELETED = "error: the current folder has been deleted. Change to a folder that exists.\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", [LLM_DO, MODULE])
@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["init"], 1, DELETED),
        (["run", "{root}", "x"], 1, DELETED.replace("deleted", "deleted (main)")),
        (["check"], 2, "error: the current folder can't be read: No such file or directory. Change to a folder that "),
    ],
)
def test_a_deleted_current_folder_is_what_the_error_says(
    tmp_path: Path, program: list[str], args: list[str], code: int, text: str
) -> None:
    root = write_project(tmp_path / "project", agent=IN_CURRENT_FOLDER)
    words = [word.format(root=root) for word in args]
    ended = run_limited(words, REPOSITORY, prepare=gone(tmp_path / "gone"), program=program)

    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(text)


@pytest.mark.sample(2)
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["--show-completion", "bash"]])
def test_help_that_cannot_be_printed_says_so(tmp_path: Path, args: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        program = [*LLM_DO, *args]
        variables = environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        ended = subprocess.run(
            program, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=60, env=variables, check=False
        )

    assert ended.returncode == 1
    assert ended.stderr.decode() == (
        "error: the result can't be written to stdout: No space left on device. Send it somewhere else.\n"
    )


@pytest.mark.slow
def test_a_project_that_does_not_fit_on_the_disk_leaves_no_files(tmp_path: Path) -> None:
    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    # Python would leave compiled files cut short.
    failed = run_limited(["init", "desk"], tmp_path, prepare=prepare, PYTHONDONTWRITEBYTECODE="1")
    left = [path for path in (tmp_path / "desk").rglob("*") if path.is_file()]

    assert (failed.code, failed.out, left) == (2, "", [])
    assert "can't be written: File too large" in failed.err
    assert run_limited(["init", "desk"], tmp_path).code == 0


@pytest.mark.slow
def test_a_python_without_docstrings_is_refused(tmp_path: Path) -> None:
    ended = run_limited(["run", "x"], write_project(tmp_path), PYTHONOPTIMIZE="2")

    assert (ended.code, ended.out) == (2, "")
    assert "this Python has no docstrings (-OO, or PYTHONOPTIMIZE=2)" in ended.err


NOT_UTF8 = os.fsdecode(b"desk\xff")


@pytest.mark.slow
def test_a_project_in_a_folder_whose_name_is_not_utf8_runs_in_every_way(tmp_path: Path) -> None:
    root = write_project(tmp_path / NOT_UTF8, inputs='"a"\n"b"\n')
    (root / os.fsdecode(b"more\xfe.py")).write_text("x = 1\n", encoding="utf-8")
    ways = [["run", "x"], ["run", "x", "--thread", "t"], ["run", "x", "--durable"], ["map", ".", "inputs"]]

    for ended in (run_limited(ways[0], root), *(run_forked(*args, cwd=root) for args in ways[1:])):
        assert ended.code == 0, ended.err
        assert "answer to" in ended.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_command_that_is_suggested_for_such_a_folder_can_be_copied(tmp_path: Path) -> None:
    answers = """
        - tools: [{name: send, args: {to: bob}}]
        - text: over
    """
    for name in (NOT_UTF8, "it's \\new\u202e"):
        write_project(tmp_path / name, answers)
        waits = run_forked("run", name, "x", "--durable", cwd=tmp_path)
        (resume,) = re.findall(r"Then: llm-do (resume .*)", waits.err)
        said = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {resume}"], capture_output=True, check=True, cwd=tmp_path
        ).stdout
        words = [os.fsdecode(word) for word in said.split(b"\0")[:-1]]
        ended = run_forked(*words, "--approve-all", cwd=tmp_path)

        assert (waits.code, ended.code, ended.out) == (5, 0, "over\n"), (resume, ended.err)


def test_a_durable_run_that_fails_in_such_a_folder_keeps_its_error(tmp_path: Path) -> None:
    root = write_project(tmp_path / NOT_UTF8, answers="- text: hi\n  expect: something else")
    failed = run_forked("run", "x", "--durable", cwd=root)
    (run_id,) = re.findall(r"run (\w+) is durable", failed.err)
    again = run_forked("resume", run_id, cwd=root)

    assert (failed.code, again.code) == (7, 7)
    assert "expects 'something else'" in failed.err
    assert "expects 'something else'" in again.err


@pytest.mark.parametrize("options", [[], ["--as-begun"]])
def test_a_project_whose_folder_is_moved_continues_its_durable_runs(tmp_path: Path, options: list[str]) -> None:
    answers = """
        - tools: [{name: send, args: {to: bob}}]
        - text: over
    """
    root = write_project(tmp_path / "before", answers)
    waits = run_forked("run", "x", "--durable", cwd=root)
    (run_id,) = re.findall(r"run (\w+) is durable", waits.err)
    moved = root.rename(tmp_path / "after")
    ended = run_forked("resume", run_id, "--approve-all", *options, cwd=moved)

    assert (waits.code, ended.code, ended.out) == (5, 0, "over\n"), ended.err


# A user of a container whom no file of users names, without HOME.
NO_HOME = "import os, pwd, sys\ndef unknown(*_): raise KeyError\npwd.getpwuid = unknown\nos.environ.pop('HOME', None)\n"


@pytest.mark.slow
def test_a_user_without_a_home_folder_runs_commands_and_sees_what_there_is(tmp_path: Path) -> None:
    answers = """
        - tools: [{name: shell, args: {command: ls}}]
        - text: over
    """
    agent = "---\nname: main\nmodel: script:answers.yaml\ntoolsets: [shell_file_ops]\n---\nHelp.\n"
    root = write_project(tmp_path / "project", answers, agent=agent)
    without = [sys.executable, "-c", f"{NO_HOME}\nfrom llm_do.cli import main\nsys.exit(main())"]
    variables = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "LLM_DO_CACHE"))

    for args in (["run", "x", "--approve-all"], ["doctor"], ["models"], ["init", str(tmp_path / "new")]):
        ended = subprocess.run(
            [*without, *args],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(LLM_DO_TRUST="1", **variables),
        )
        assert (ended.returncode, "itself failed" in ended.stderr, "raised" in ended.stderr) == (0, False, False), (
            ended.stderr
        )
