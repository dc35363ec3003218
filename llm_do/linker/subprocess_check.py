"""Linking in a subprocess, so that a project's Python files can hang, exit or crash without harm.

Only what inspects projects pays for it (`check_project`, `graph`, `tools`), and only for those that have Python files;
`Project.load` links where it is called. What happens in that process is in `llm_do.linker.check_worker`.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from llm_do._bounded_files import read_bounded_text
from llm_do._startup.code_access import is_open
from llm_do._startup.frozen import frozen
from llm_do.concurrency.lifeline import cut_lifeline, guarded_environment
from llm_do.concurrency.temporary_folders import temporary_folder
from llm_do.diagnostics.codes import python as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.errors import LlmDoError, UsageError
from llm_do.linker.analysis.survey import LeftOut
from llm_do.linker.linker import LinkReport, check_project
from llm_do.linker.sources.project_files import ProjectFiles, read_project
from llm_do.linker.sources.project_root import locate_project
from llm_do.linker.test_linker import TestedProject, check_with_tests

__all__ = ["CheckResult", "check_in_subprocess", "run_task"]

SECONDS = 30.0
"""How long the import of one file may take."""

_ATTEMPTS = 10
_GRACE = 5.0
_START = (
    "import json,sys;request=json.loads(sys.argv[1]);sys.path[:]=request['path'];"
    "from llm_do.linker.check_worker import main;main(request)"
)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in ', re.MULTILINE)
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


@frozen
class CheckResult:
    """What linking found.

    Args:
        diagnostics: Everything, sorted by place.
        root: The folder that the diagnostics' paths are relative to.
        data: What the task made of the project; None when it doesn't link, or there was no task.
        left_out: What is missing because the folder is closed.
        files: The project's files as they were read.
    """

    diagnostics: tuple[Diagnostic, ...]
    root: Path
    data: Any = None
    left_out: LeftOut | None = None
    files: ProjectFiles | None = None

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return any(item.severity == "error" for item in self.diagnostics)


@dataclass(slots=True)
class _End:
    """How the process ended without an answer.

    Args:
        file: The file that was being imported, empty when all were.
        trace: Where it was, as `faulthandler` writes it.
        code: Its exit code, None when it had to be killed.
    """

    file: str
    trace: str
    code: int | None


def check_in_subprocess(
    path: Path,
    task: str | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    seconds: float = SECONDS,
    tests: bool = False,
    env_file: str | None = None,
) -> CheckResult:
    """Link the project at `path` and report, on its `tests` too if asked, whatever its Python files do.

    A folder that is closed is linked as text, without a subprocess.
    """
    located = replace(locate_project(path), env_file=env_file)
    files = read_project(located)
    if not files.readable or not files.python or not is_open(located.root):
        report = check_with_tests(files) if tests else check_project(files)
        data = run_task(report, task, options or {})
        return CheckResult(report.diagnostics, report.root, data, report.left_out, files)
    refused: dict[str, Diagnostic] = {}
    for _ in range(_ATTEMPTS):
        request = {
            "path": sys.path,
            "project": str(path.absolute()),
            "env_file": env_file,
            "task": task,
            "options": options or {},
            "seconds": seconds,
            "tests": tests,
            "refused": {file: item.to_dict() for file, item in refused.items()},
        }
        answer = _ask(request, located.root, seconds * (len(files.python) + 1) + _GRACE)
        if not isinstance(answer, _End):
            return replace(answer, files=files)
        file, found = _blame(answer, located.root, seconds)
        if file in refused:
            break
        refused[file] = found
    return CheckResult((*files.diagnostics, *refused.values()), located.root, files=files)


def run_task(report: LinkReport | TestedProject, task: str | None, options: Mapping[str, Any]) -> Any:
    """Call a task with a linked project."""
    if task is None or report.project is None:
        return None
    module, _, name = task.partition(":")
    return getattr(import_module(module), name)(report.project, **options)


def _ask(request: Mapping[str, Any], root: Path, limit: float) -> CheckResult | _End:
    with temporary_folder("check") as folder:
        code = _run(json.dumps({**request, "folder": str(folder)}), limit)
        answer = _read(folder / "answer")
        if answer:
            return _checked(json.loads(answer), root)
        return _End(_read(folder / "file"), _read(folder / "trace"), code)


def _checked(answer: Mapping[str, Any], root: Path) -> CheckResult:
    if "error" in answer:
        raise UsageError(answer["error"], hint=answer["hint"])
    if "limit" in answer:
        raise LlmDoError(answer["limit"][0], hint=answer["limit"][1])
    if "fault" in answer:
        raise RuntimeError(f"linking failed in its subprocess:\n{answer['fault']}")
    return CheckResult(tuple(map(Diagnostic.from_dict, answer["diagnostics"])), root, answer["data"])


def _run(request: str, limit: float) -> int | None:
    """Run the process; its stdout is our stderr, as results go to stdout and nothing else does."""
    _cut_lifeline_at_end()
    process = subprocess.Popen(
        [sys.executable, "-P", "-X", "utf8", "-c", _START, request],
        env={**os.environ, **guarded_environment()},  # code that hangs mustn't outlive a process that is killed
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(OSError):  # whatever it started goes with it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@cache
def _cut_lifeline_at_end() -> None:
    """At an orderly end there is nothing to look for: the process has been waited for."""
    atexit.register(cut_lifeline)


def _read(path: Path) -> str:
    try:
        return read_bounded_text(path, errors="replace")
    except OSError:
        return ""


def _blame(end: _End, root: Path, seconds: float) -> tuple[str, Diagnostic]:
    """The file to blame, absolute, and its diagnostic."""
    file, line = _nearest_frame(end.trace, root) or (str(root / end.file) if end.file else "", 1)
    place = Location(file_label(root, Path(file)) if file else "project.json", line)
    first = end.trace.partition("\n")[0]
    if first.startswith("Timeout") or end.code is None:
        return file, problems.import_timed_out(seconds).at(place)
    return file, _explain_end(first, end.code).at(place)


def _explain_end(trace: str, code: int) -> Problem:
    if trace.startswith("Fatal Python error: "):
        return problems.import_crashed(trace.removeprefix("Fatal Python error: ").lower())
    return problems.import_killed(_signal(-code)) if code < 0 else problems.import_left(code)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _nearest_frame(trace: str, root: Path) -> tuple[str, int] | None:
    """The project's innermost frame: of the thread that imports, if it is there, else of any."""
    threads = trace.split("\n\n")
    for thread in sorted(threads, key=lambda text: "check_worker.py" not in text):
        for frame in _FRAME.finditer(thread):
            file = _ESCAPED.sub(lambda found: chr(int(next(filter(None, found.groups())), 16)), frame["file"])
            if file.startswith(f"{root}{os.sep}") and os.path.isfile(file):
                return file, int(frame["line"])
    return None
