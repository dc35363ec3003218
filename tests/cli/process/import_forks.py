"""A command that meets each of several faults at the moment when it is about to import a module.

What comes before that moment is the same for all, so one process runs until there and forks for each fault.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.cli_processes import Ended, environment

__all__ = ["run_with_faults"]

BEFORE_LOOP = {"llm_do.assembly": "llm_do.ui.live.display"}
"""Modules imported in an event loop, which a fork couldn't go on with, and where it is made instead."""

PROGRAM = """\
import os, sys
FAULTS = {faults!r}
FOLDER = {folder!r}
MODULE = {module!r}
FORK_AT = {fork_at!r}


class Faulty:
    fault = None

    def find_spec(self, module, *_):
        if module == FORK_AT and self.fault is None:
            self.fork()
        if module == MODULE:
            exec(self.fault)

    def fork(self):
        assert len(os.listdir("/proc/self/task")) == 1, "a fork would have no other threads"
        for fault in FAULTS:
            child = os.fork()
            if child == 0:
                self.fault = fault
                return
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with open(f"{{FOLDER}}/ends", "a") as ends:
                print(code, *[os.stat(f"{{FOLDER}}/{{name}}").st_size for name in ("out", "err")], file=ends)
        os._exit(0)


import llm_do.cli
sys.meta_path.insert(0, Faulty())
llm_do.cli.main()
"""


def run_with_faults(
    folder: Path, root: Path, module: str, faults: Mapping[str, str], words: Sequence[str]
) -> dict[str, Ended]:
    """Run `llm-do` in a project, once with each fault.

    Args:
        folder: Where the program and what it writes are kept; it is made.
        root: The project.
        module: The module whose import meets the fault.
        faults: Name to code that runs each time the module is looked for.
        words: The arguments.
    """
    folder.mkdir()
    program, streams = folder / "program.py", (folder / "out", folder / "err")
    fork_at = BEFORE_LOOP.get(module, module)
    program.write_text(
        PROGRAM.format(faults=list(faults.values()), folder=str(folder), module=module, fork_at=fork_at),
        encoding="utf-8",
    )
    with streams[0].open("ab") as out, streams[1].open("ab") as err:
        subprocess.run(
            [sys.executable, str(program), *words],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            timeout=60,
            env=environment(LLM_DO_TRUST="1"),
        )
    assert (folder / "ends").exists(), f"{fork_at} was never imported: {streams[1].read_text()}"
    # The command has kept its streams' descriptors, so all write to the same files, one after the other.
    texts, ended, begins = [each.read_bytes() for each in streams], [], [0, 0]
    for line in (folder / "ends").read_text().splitlines():
        code, *sizes = map(int, line.split())
        ended.append(Ended(code, *(texts[each][begins[each] : sizes[each]].decode() for each in range(2))))
        begins = sizes
    return dict(zip(faults, ended, strict=True))
