"""Another library's event loop, such as trio's, is told from asyncio's before anything begins."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from llm_do import Runtime, UsageError, run
from tests.support.runs import agent, project_of
from tests.support.scripted import script
from tests.support.tables import each_row


async def _all_events(runtime: Runtime) -> Any:
    return [event async for event in runtime.stream("go")]


WAYS: dict[str, Callable[[Runtime], Coroutine[Any, Any, Any]]] = {
    "run": lambda runtime: runtime.run("go"),
    "execute": lambda runtime: runtime.execute("go"),
    "stream": _all_events,
    "shortcut": lambda runtime: run(runtime.project, "go"),
}


@each_row("way", WAYS)
def test_a_run_outside_asyncio_says_that_it_needs_it(way: str) -> None:
    coroutine = WAYS[way](Runtime(project_of([agent("main", script("done"))])))
    with pytest.raises(UsageError, match="a run needs asyncio's event loop, and none is running here") as caught:
        coroutine.send(None)  # as trio resumes a task
    assert "trio.to_thread.run_sync" in str(caught.value.hint)
    assert caught.value.__cause__ is None
