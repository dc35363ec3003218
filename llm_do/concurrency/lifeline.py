"""The lifeline: a small process that ends what this one has started, and removes its temporary folders, should this one
be killed.

A signal that can be handled is handled, but nothing can be done about SIGKILL, a crash or the system running out of
memory. So a shell waits at the end of a pipe that only this process holds open. If the pipe closes without a word, the
shell terminates, then kills, every process with our mark in its environment, which children inherit from children, and
removes the folders that it was told of and that nobody has removed since.

On Linux only, where `/proc` shows the environment of processes; elsewhere nothing is started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

__all__ = [
    "MARK",
    "cut_lifeline",
    "find_marked",
    "guarded_environment",
    "keep_if_killed",
    "kill_marked",
    "lifeline_process",
    "remove_if_killed",
]

MARK = "LLM_DO_LIFELINE"
"""The environment variable that marks a process's descendants."""

_SHELL = "/bin/sh"
_SCRIPT = """\
cd /
trap '' HUP INT TERM
round=30
while read -r word folder; do
  case $word in
    guard) round=0 ;;
    remove) set -- "$@" "$folder" ;;
    keep)
      for each do
        shift
        [ "$each" = "$folder" ] || set -- "$@" "$each"
      done ;;
    *) round=30; break ;;
  esac
done
while [ $round -lt 30 ]; do
  files=$(grep -lsF "$0" /proc/[0-9]*/environ)
  [ -n "$files" ] || break
  [ $round -lt 5 ] && signal=TERM || signal=KILL
  for file in $files; do
    process=${file#/proc/}
    kill -$signal "${process%/environ}" 2>/dev/null
  done
  sleep 0.1
  round=$((round + 1))
done
for folder do
  rm -rf -- "$folder"
done
"""

_lock = threading.Lock()
_token = ""
_pipe: int | None = None
_process: int | None = None


def guarded_environment() -> dict[str, str]:
    """Return what a process that is about to be started needs in its environment so that it can't outlive this one.

    The lifeline is started with the first such process.
    """
    if not sys.platform.startswith("linux"):
        return {}
    with _lock:
        _say(b"guard")
        return {MARK: _token}


def remove_if_killed(folder: Path) -> None:
    """Remove a temporary folder if this process is killed; the caller removes it in every other case.

    Args:
        folder: Its absolute path.
    """
    if not sys.platform.startswith("linux") or "\n" in str(folder):
        return
    with _lock:
        _say(b"remove " + os.fsencode(folder))


def keep_if_killed(folder: Path) -> None:
    """Take back what `remove_if_killed` was told of a folder, once the caller has removed it."""
    with _lock:
        if _pipe is not None and "\n" not in str(folder):
            _say(b"keep " + os.fsencode(folder))


def cut_lifeline() -> None:
    """This process ends in order: what it has started, and not ended, is meant to stay."""
    global _pipe
    with _lock:
        if _pipe is not None:
            _say(b"ended")
            os.close(_pipe)
            _pipe = None


def kill_marked() -> None:
    """Kill every process that carries this process's mark."""
    for process in find_marked(f"{MARK}={_token}") if _token else ():
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def lifeline_process() -> int | None:
    """Return the id of the shell, if there is one: it isn't to be ended with what this process has started."""
    return _process


def find_marked(mark: str) -> list[int]:
    """Return the processes that were started with a variable, `NAME=VALUE`, in their environment."""
    if not sys.platform.startswith("linux"):
        return []
    marker = mark.encode()
    found: list[int] = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    if marker in Path(entry.path, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
    return found


def _say(line: bytes) -> None:
    """Tell the shell something, which is started with the first line."""
    if _pipe is None:
        _start()
    if _pipe is not None:
        with contextlib.suppress(OSError):  # someone has ended the shell
            os.write(_pipe, line + b"\n")


def _start() -> None:
    global _token, _pipe, _process
    _token = os.urandom(16).hex()
    reads, writes = os.pipe()
    try:
        null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)
        _process = os.posix_spawn(
            _SHELL,
            ["sh", "-c", _SCRIPT, f"{MARK}={_token}"],
            {"PATH": "/usr/bin:/bin"},
            file_actions=[(os.POSIX_SPAWN_DUP2, reads, 0), *null],
            setsid=True,
        )
    except (OSError, NotImplementedError):  # no shell, or a C library without it: signals are still handled
        os.close(writes)
        return
    finally:
        os.close(reads)
    _pipe = writes


def _forget() -> None:
    """In a fork: the lifeline is the parent's, and must not be held by a child that outlives it."""
    global _pipe, _token, _lock, _process
    if _pipe is not None:
        os.close(_pipe)
    _pipe, _token, _lock, _process = None, "", threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
