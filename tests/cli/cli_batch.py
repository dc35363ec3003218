"""Runs the command line many times over, each time in a fork: a program for `cli_processes.run_many`.

It reads a call from each line of stdin, as JSON, and prints how it ended. A start would cost a second of imports each.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from llm_do.cli import main

COMMANDS = ("app", "check", "diagnostics", "dryrun", "init", "inputs", "running", "session")
HEAVY = ("llm_do.models.script", "llm_do.threads.recorder", "llm_do.cli.stored", "llm_do.project.linker", "llm_do.spec.editor_schema", "llm_do.spec.render")


def call(args: list[str], cwd: str, stdin: str) -> dict[str, Any]:
    """Run once, and say how it ended."""
    # Not a TemporaryDirectory, which a child would take away when it ends.
    folder = tempfile.mkdtemp()
    files = [Path(folder, name) for name in ("in", "out", "err")]
    files[0].write_bytes(stdin.encode("latin-1"))
    child = os.fork()
    if child == 0:
        begin(args, cwd, files if stdin else [Path(os.devnull), *files[1:]])
    _, status = os.waitpid(child, 0)
    out, err = (file.read_text(encoding="utf-8") for file in files[1:])
    shutil.rmtree(folder)
    return {"code": os.waitstatus_to_exitcode(status), "out": out, "err": err}


def begin(args: list[str], cwd: str, files: list[Path]) -> None:
    """Become the command line."""
    os.chdir(cwd)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["llm-do", *args]
    main()


if __name__ == "__main__":
    for name in (*HEAVY, *(f"llm_do.cli.{command}" for command in COMMANDS)):
        import_module(name)
    for line in sys.stdin:
        print(json.dumps(call(**json.loads(line))), flush=True)
