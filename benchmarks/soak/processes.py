"""The processes of a soak: they are started, watched, stopped for a while, and killed."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = ["Killer", "Place", "Series", "leftovers", "sample"]

LLM_DO = [sys.executable, "-m", "llm_do"]


@dataclass
class Place:
    """Where a soak happens, and what has been started there.

    Args:
        folder: The soak's folder, which has the project, the processes' output and their temporary files.
        environment: The processes' environment.
        store: The option that names the store.
    """

    folder: Path
    environment: dict[str, str]
    store: list[str]
    stopping: threading.Event = field(default_factory=threading.Event)
    faults: list[str] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    killable: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    steady: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.folder / "project"

    def start(
        self, name: str, *words: str, out: IO[str] | int = subprocess.PIPE, steady: bool = False
    ) -> subprocess.Popen[str]:
        """Start a command on the store; a steady one is watched and never killed, any other may be killed."""
        with (self.folder / f"{name}.err").open("a") as said:
            process = subprocess.Popen(
                [*LLM_DO, *words, *self.store],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=said,
                text=True,
            )
        with self.lock:
            self.started[name] += 1
            if steady:
                self.steady[name] = process.pid
            else:
                self.killable[name] = process
        return process

    def spare(self, name: str) -> None:
        """Kill a process no longer."""
        with self.lock:
            self.killable.pop(name, None)

    def run_threads(self, tasks: Sequence[tuple[str, Callable[[], None]]]) -> list[threading.Thread]:
        """Run functions in threads; what one of them raises is a fault of the soak."""

        def run(name: str, task: Callable[[], None]) -> None:
            try:
                task()
            except Exception as error:  # noqa: BLE001
                self.faults.append(f"{name}: {type(error).__name__}: {error}")

        threads = [threading.Thread(target=run, args=task, name=task[0], daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        return threads


class Killer:
    """Kills one process after the other, or stops it for some seconds."""

    def __init__(self, place: Place, pause: float, seed: int) -> None:
        self.place = place
        self.pause = pause
        self.done: Counter[str] = Counter()
        self._chance = random.Random(seed)

    def run(self) -> None:
        """Go on until the soak stops."""
        while not self.place.stopping.wait(self._chance.uniform(0.5, 1.5) * self.pause):
            with self.place.lock:
                running = [each for each in self.place.killable.items() if each[1].poll() is None]
            if not running:
                continue
            name, process = self._chance.choice(running)
            if self._chance.random() < 0.35:
                process.send_signal(signal.SIGSTOP)
                self.place.stopping.wait(self._chance.uniform(1, 6))
                process.send_signal(signal.SIGCONT)
                self.done[f"{name} stopped"] += 1
            else:
                process.kill()
                self.done[f"{name} killed"] += 1


@dataclass
class Series:
    """What was measured of one thing over time."""

    values: list[float] = field(default_factory=list)

    def ends(self) -> tuple[float, float]:
        """The medians of the second fifth and of the last one: the first is warming up."""
        fifth = max(len(self.values) // 5, 1)
        early = self.values[fifth : 2 * fifth] or self.values
        return statistics.median(early), statistics.median(self.values[-fifth:])

    def grows(self, factor: float, more: float) -> bool:
        """Whether it is more at the end than a factor and an amount allow."""
        early, late = self.ends()
        return late > early * factor + more


def sample(place: Place, found: dict[str, Series]) -> None:
    """Measure the steady processes and the store's files."""
    for name, process in list(place.steady.items()):
        folder = Path(f"/proc/{process}")
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            values = {
                "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
                "fds": len(os.listdir(folder / "fd")),  # noqa: PTH208
                "threads": int(status["Threads"]),
            }
        except (OSError, KeyError):
            place.faults.append(f"{name} has ended by itself; its output is in {name}.err")
            del place.steady[name]
            continue
        for key, value in values.items():
            found.setdefault(f"{name} {key}", Series()).values.append(value)
    wal = place.root / ".llm-do" / "state.db-wal"
    if wal.exists():
        found.setdefault("store wal_mb", Series()).values.append(wal.stat().st_size / 2**20)


def leftovers(folder: Path, mark: str, *, patience: float = 20) -> tuple[list[str], list[str]]:
    """List what is left in the folder for temporary files, and the processes that still run."""
    until = time.monotonic() + patience
    while (processes := _marked(folder, mark)) and time.monotonic() < until:
        time.sleep(0.5)
    return sorted(each.name for each in (folder / "tmp").iterdir()), processes


def _marked(folder: Path, mark: str) -> list[str]:
    wanted = f"{mark}={folder}".encode()
    found: list[str] = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            try:
                if wanted in (each / "environ").read_bytes().split(b"\0"):
                    words = (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found.append(f"{each.name} {' '.join(words)}")
            except OSError:
                continue
    return found
