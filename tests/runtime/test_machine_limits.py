"""What the machine lacks is said as such: no tool, hook or entry of a project is blamed for it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from llm_do import CallContext, Runtime
from llm_do.project.faults import find_fault
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def threadless(a: int = 0) -> int:
    """Add."""
    raise RuntimeError("can't start new thread")


def full(input: object, ctx: CallContext) -> int:
    raise ValueError("not saved") from OSError(errno.ENOSPC, "No space left on device", "kept.txt")


def failing_hook(agent: object) -> None:
    raise MemoryError


LACKING: dict[str, tuple[Callable[[], Runtime], str, str]] = {
    "a tool": (
        lambda: runtime_of([agent("main", script(call("threadless"), "fin"), tools=[threadless])]),
        "no more processes or threads can be started",
        "End other processes",
    ),
    "a tool whose failure ends the run": (
        lambda: runtime_of(
            [agent("main", script(call("threadless"), "fin"), tools=[threadless])], on_tool_error="raise"
        ),
        "no more processes or threads can be started",
        "End other processes",
    ),
    "an entry": (lambda: runtime_of([], full), "kept.txt: no space is left on the disk", "Free some space."),
    "a hook": (
        lambda: runtime_of([agent("main", script("x"), hooks=[("start", failing_hook)])]),
        "there isn't enough memory",
        "Close other programs",
    ),
}


@each_row("kind", LACKING)
def test_nobody_is_blamed_for_what_the_machine_lacks(kind: str) -> None:
    make, message, hint = LACKING[kind]
    (record,) = carry_out(make()).errors

    assert (record.message, record.file) == (message, None)
    assert record.hint is not None
    assert record.hint.startswith(hint)


def greedy(a: int = 0) -> list[int]:
    """Fill the memory."""
    return [a] * 10**15


def greedy_entry(input: object, ctx: CallContext) -> list[int]:
    return greedy()


def endless(input: object, ctx: CallContext) -> int:
    return endless(input, ctx)


OWN: dict[str, tuple[Callable[..., Runtime], Callable[..., object], int]] = {
    "an entry that needs too much memory": (lambda **of: runtime_of([], greedy_entry, **of), greedy, 2),
    "a tool that needs too much memory": (
        lambda **of: runtime_of(
            [agent("main", script(call("greedy"), "fin"), tools=[greedy])], on_tool_error="raise", **of
        ),
        greedy,
        2,
    ),
    "an entry that a full disk stops": (lambda **of: runtime_of([], full, **of), full, 1),
    "an entry that starts too many threads": (
        lambda **of: runtime_of([], lambda input, ctx: threadless(), **of),
        threadless,
        2,
    ),
    "an entry that calls itself for ever": (lambda **of: runtime_of([], endless, **of), endless, 1),
}


@each_row("kind", OWN)
def test_the_line_of_the_project_that_meets_a_limit_is_named(kind: str) -> None:
    make, function, below = OWN[kind]
    (record,) = carry_out(make(root=Path(__file__).parent)).errors

    assert (record.file, record.line) == (Path(__file__).name, function.__code__.co_firstlineno + below)


def test_a_model_reads_what_the_machine_lacks() -> None:
    result = carry_out(runtime_of([agent("main", script(call("threadless"), "fin"), tools=[threadless])]))

    assert results_of(result.messages)[0][2] == "no more processes or threads can be started"


def test_a_file_that_would_block_is_the_projects_own_matter() -> None:
    assert find_fault(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")).limit is None
