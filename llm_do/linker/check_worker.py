"""The process that `llm_do.linker.subprocess_check` starts: links, writes what it found into a file, and exits.

A watchdog that needs nothing of Python ends it when one file takes too long, and writes where it was.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO

from llm_do._machine_limits import find_limit
from llm_do._startup.compiled_texts import keep_compiled_texts, save_compiled_texts
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.errors import LlmDoError
from llm_do.linker.linker import check_project
from llm_do.linker.python.python_files import Watch
from llm_do.linker.sources.project_root import locate_project
from llm_do.linker.subprocess_check import run_task
from llm_do.linker.test_linker import check_with_tests

__all__ = ["main"]


def main(request: Mapping[str, Any]) -> NoReturn:
    """Link and write the answer."""
    folder, own, leave = Path(request["folder"]), os.getpid(), os._exit
    trace = Path(folder, "trace").open("w", encoding="utf-8")  # noqa: SIM115 (open until the end, whatever the end is)
    faulthandler.enable(trace)
    seconds: float = request["seconds"]

    def exit_seen(code: int) -> NoReturn:
        faulthandler.dump_traceback(trace, all_threads=False)
        leave(code)

    sys.argv[1:] = []
    refused = {file: Diagnostic.from_dict(found) for file, found in request["refused"].items()}
    watch = Watch(refused, lambda label: _begin(folder, label, seconds, trace))
    try:
        keep_compiled_texts()
        import_module("pydantic_ai.toolsets")  # every project with Python files needs it; its time is not the files'
        save_compiled_texts()
        os._exit = exit_seen
        check = check_with_tests if request["tests"] else check_project
        located = replace(locate_project(Path(request["project"])), env_file=request["env_file"])
        report = check(located, watch=watch)
        data = run_task(report, request["task"], request["options"])
        answer = {"diagnostics": [item.to_dict() for item in report.diagnostics], "data": data}
    except LlmDoError as error:
        answer = {"error": error.message, "hint": error.hint}
    except Exception as error:  # noqa: BLE001 (reported by the parent process, which a person started)
        limit = find_limit(error)
        answer = {"limit": limit} if limit is not None else {"fault": traceback.format_exc()}
    faulthandler.cancel_dump_traceback_later()
    if os.getpid() == own:  # a file may have forked, and both come here
        partial = folder / "partial"
        partial.write_text(json.dumps(answer), encoding="utf-8")
        partial.replace(folder / "answer")
    with contextlib.suppress(Exception):  # a file may have closed or replaced it
        sys.stdout.flush()
    leave(0)


def _begin(folder: Path, label: str, seconds: float, trace: TextIO) -> None:
    Path(folder, "file").write_text(label, encoding="utf-8", errors="backslashreplace")
    faulthandler.dump_traceback_later(seconds, exit=True, file=trace)
