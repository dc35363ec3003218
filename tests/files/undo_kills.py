"""Kills a process at each system call that changes a disk, and undoes what it did; prints how often."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from llm_do.files.changes.keeping import kept_by
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.files.changes.run_keeper import RunKeeper
from llm_do.files.changes.undo_plan import left_to_undo, plan_undo
from llm_do.files.changes.undoing import undo
from llm_do.files.root import Root

CHANGING = ("fsync", "rename", "unlink", "mkdir", "write", "rmdir")


def tree(root: Path) -> dict[str, str]:
    """Everything below a folder but llm-do's own."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        if ".llm-do" not in path.parts and not path.name.endswith(".tmp"):
            text = "folder" if path.is_dir() else path.read_text()
            found[str(path.relative_to(root))] = f"-> {path.readlink()}" if path.is_symlink() else text
    return found


def work(root: Path) -> None:
    """What is killed."""
    below = Root(root)
    with kept_by(RunKeeper(root, "run")):
        below.write("a", b"one")
        below.write("a", b"two")
        below.write("new/deep/b", b"x")
        below.move("link", "new/link")
        below.delete("c")
        below.write("c/d", b"y")
        below.move("a", "e")


def begin(root: Path) -> None:
    """What is there before."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "a").write_text("before a")
    (root / "c").write_text("before c")
    (root / "link").symlink_to("a")


def killed_at(root: Path, number: int) -> bool:
    """Work in a child that is killed at a call; returns whether it was."""
    child = os.fork()
    if child == 0:
        left = number

        def counting(act: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return act(*args, **options)

            return call

        for name in CHANGING:
            setattr(os, name, counting(getattr(os, name)))
        work(root)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main(root: Path) -> int:
    """Kill at each call, until one lives to its end."""
    number = 0
    while True:
        begin(root)
        before = tree(root)
        killed = killed_at(root, number)
        records = KeptFolder(root).records()
        if records:
            plan = plan_undo(root, records[0], left_to_undo(records)["run"], trusted=True)
            assert not plan.those("changed", "refused", "unkept"), (number, plan)
            assert not undo(root, plan, "undo").failed, number
        assert tree(root) == before, (number, tree(root), before)
        if not killed:
            return number
        number += 1


if __name__ == "__main__":
    print(main(Path(sys.argv[1]) / "project"))
