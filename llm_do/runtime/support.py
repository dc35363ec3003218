"""What `Runtime` needs done once or elsewhere: builders per project, policy from a project, loops and threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from llm_do.errors import UsageError
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.rules import Policy, option_rules
from llm_do.runtime.build import AgentBuilder

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.config import RuntimeConfig

__all__ = ["builder_of", "end_task", "patterns_of", "policy_of", "run_blocking"]

T = TypeVar("T")

_builders: WeakKeyDictionary[Project, AgentBuilder] = WeakKeyDictionary()
_lock = threading.Lock()


def builder_of(project: Project) -> AgentBuilder:
    """The builder that all runtimes of a project share, so that agents are built once per project."""
    with _lock:
        builder = _builders.get(project)
        if builder is None:
            builder = _builders[project] = AgentBuilder(project, project.registry)
        return builder


def patterns_of(texts: Sequence[str], option: str) -> tuple[Pattern, ...]:
    """The patterns of a command line option.

    Raises:
        UsageError: One is no pattern.
    """
    try:
        return tuple(parse_pattern(text) for text in texts)
    except PatternError as error:
        raise UsageError(f"{option}: {error}", hint="A pattern is TOOL, TOOL(GLOB) or TOOL(name=GLOB).") from error


def policy_of(project: Project, config: RuntimeConfig) -> tuple[Policy, Callable[..., Any] | None]:
    """A project's policy with the session's `deny` patterns in it, and its policy function.

    Raises:
        UsageError: A `deny` pattern is no pattern.
    """
    patterns_of(config.deny, "--deny")
    return project.policy.plus(option_rules("deny", config.deny)), project.policy_function


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however often the waiting itself is cancelled."""
    again = False
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            again = True
    if not task.cancelled():
        task.exception()
    if again:
        raise asyncio.CancelledError


def run_blocking(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from code that isn't async, in a thread of its own where a loop is running.

    Args:
        begin: Makes the coroutine.

    Returns:
        Its result.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(asyncio.run(begin()))
        except BaseException as error:  # noqa: BLE001 (carried to the thread that waits)
            done.set_exception(error)

    threading.Thread(target=work, name="llm-do-run", daemon=True).start()
    return done.result()
