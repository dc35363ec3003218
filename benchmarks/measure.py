"""Measurement for benchmarks (interleaved, by median processor time) and the figures in their report.

On a busy machine, absolute times mean little and ratios within one run mean much, so every quoted figure is a ratio.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Figure",
    "as_a_service",
    "environment",
    "interleaved",
    "interleaved_processes",
    "peak_memory",
    "python",
    "read_report",
    "typical",
]

NAME = 50
"""The width of the name column in the report."""

WORSE = 1.1
"""A ratio that has grown by more than this factor is a defect."""


@dataclass(frozen=True)
class Figure:
    """One line of the report.

    Args:
        name: What was measured.
        value: The figure, a ratio unless `unit` says otherwise.
        target: The maximum allowed.
        unit: `x` for a ratio, or a unit such as `ms`.
        detail: The absolute figures behind it, on this machine.
    """

    name: str
    value: float
    target: float | None = None
    unit: str = "x"
    detail: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > NAME or len(self.unit) > 3:
            raise ValueError(f"{self.name!r} in {self.unit!r} is too long for a line of the report")

    @property
    def met(self) -> bool:
        """Whether the figure meets its target."""
        return self.target is None or self.value <= self.target

    def worse_than(self, before: Figure | None) -> bool:
        """Check whether a ratio has become worse than in the report; absolute figures of two machines don't compare."""
        return before is not None and self.unit == "x" and self.value > before.value * WORSE

    def __str__(self) -> str:
        target = "" if self.target is None else f"<= {self.target:g}{self.unit}"
        verdict = "" if self.target is None else ("met" if self.met else "MISSED")
        return f"{self.name:{NAME}} {self.value:9.3f}{self.unit:3} {target:12} {verdict:7} {self.detail}"


def read_report(text: str) -> list[Figure]:
    """Parse the figures of a report.

    Args:
        text: A description of the machine, an empty line, and a line for each figure.
    """
    figures: list[Figure] = []
    for line in text.splitlines()[2:]:
        name, rest = line[:NAME].rstrip(), line[NAME + 1 :]
        unit = rest[9:12].rstrip()
        target = rest[13:25].removeprefix("<=").strip().removesuffix(unit.strip())
        figures.append(Figure(name, float(rest[:9]), float(target) if target else None, unit, rest[34:]))
    return figures


def environment() -> dict[str, str]:
    """Return the environment of a measured process, with bytecode caching on, as users have it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYDANTIC_AI_NO_BANNER": "1", "OPENAI_API_KEY": "benchmark"}


def cpu_of(
    command: Sequence[str], extra: dict[str, str] | None = None, *, code: int = 0, folder: Path | None = None
) -> float:
    """Measure the processor seconds, user and system, of a process, in a folder if one is given.

    Raises:
        RuntimeError: The process exited with another code than `code`.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {**environment(), **(extra or {})}
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleaved_processes(
    ours: Sequence[str],
    reference: Sequence[str],
    *,
    rounds: int = 7,
    extra: dict[str, str] | None = None,
    code: int = 0,
    folder: Path | None = None,
) -> tuple[float, float]:
    """Measure the processor seconds of two commands, run alternately after a warm-up; ours exits with `code`."""
    pairs = [
        (cpu_of(ours, extra, code=code, folder=folder), cpu_of(reference, extra, folder=folder))
        for _ in range(rounds + 1)
    ][1:]
    return typical(pairs)


def typical(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the times of a typical pair: the median of the second ones, and its product with the median of the ratios.

    The times of a pair are measured one right after the other. A machine that changes its speed in the course of a
    measurement changes the ratio of two medians, and hardly the median of the ratios.

    Args:
        pairs: The times of ours and of what it is compared with.

    Example:
        >>> typical([(1.0, 2.0), (9.0, 12.0), (4.0, 4.0)])
        (3.0, 4.0)
    """
    other = statistics.median(other for _, other in pairs)
    return other * statistics.median(one / other for one, other in pairs), other


def peak_memory(command: Sequence[str], extra: dict[str, str] | None = None) -> float:
    """Measure the peak memory of a process in MB."""
    code = (
        "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=-3,stderr=-3,check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    environ = {**environment(), **(extra or {})}
    done = subprocess.run([python(), "-c", code, *command], capture_output=True, text=True, env=environ, check=True)
    return int(done.stdout) / 1024


def interleaved(
    ours: Callable[[], Coroutine[Any, Any, object]],
    reference: Callable[[], Coroutine[Any, Any, object]],
    *,
    rounds: int = 7,
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, float]:
    """Measure the seconds of two coroutines, run alternately on one event loop after a warm-up each.

    Each of the two is the first in every other round.
    """

    async def timed(work: Callable[[], Coroutine[Any, Any, object]]) -> float:
        gc.collect()
        begun = clock()
        await work()
        return clock() - begun

    async def both() -> tuple[float, float]:
        pairs: list[tuple[float, float]] = []
        for number in range(rounds + 1):
            if number % 2:
                pairs.append((await timed(ours), await timed(reference)))
            else:
                other = await timed(reference)
                pairs.append((await timed(ours), other))
        return typical(pairs[1:])

    return asyncio.run(both())


@contextmanager
def as_a_service() -> Iterator[None]:
    """Configure garbage collection as docs/embedding.md advises for a service: rare, with existing objects frozen."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(30_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def python() -> str:
    """Return the interpreter that runs the benchmarks."""
    return sys.executable
