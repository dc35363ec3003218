"""Requests by HTTP in a durable run: one that reads is made again after a stop, one that changes something isn't."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_do import RunResult, Runtime
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.session.runtime_config import RuntimeConfig
from llm_do.threads import SqliteStore
from tests.durable.test_resumed_runs import StoppingStore, store_path
from tests.support.history import results_of
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script
from tests.support.web_server import Page, Received, Site, serve_pages


def runtime_for(root: Path, site: Site, store: SqliteStore) -> Runtime:
    config = {"type": "http", "private": [f"127.0.0.1:{site.port}"], "timeout": 120}
    calls = [
        call("http_get", url=f"{site.url}/read"),
        call("http_request", method="POST", url=f"{site.url}/write", body="x"),
    ]
    spec = agent("main", script(*calls, "done"), toolsets=[ToolsetRef("api", prefix="")])
    project = project_of([spec], root=root, toolsets={"api": BuiltinToolset("api", config)})
    options: dict[str, Any] = {"approvals": "approve_all", "durable": True, "retry_delay": 0.0, "store": store}
    return Runtime(project, config=RuntimeConfig.of(project, **options))


async def stopped_and_resumed(root: Path, stop_at: str) -> tuple[RunResult, list[str]]:
    """Lose the run's process while a request is on its way, then continue the run; returns the requests, too."""
    store = StoppingStore(store_path(root), 0, after=False)
    loop = asyncio.get_running_loop()

    def stop(name: str) -> Callable[[Received], Page]:
        def page(_: Received) -> Page:
            if name == stop_at and not store.lost:
                store.lost = True
                loop.call_soon_threadsafe(runtime.interrupt)
            return Page(name.encode())

        return page

    with serve_pages({"/read": stop("read"), "/write": stop("write")}) as site:
        runtime = runtime_for(root, site, store)
        await runtime.execute("go", run_id="r")
        await runtime.aclose()
        await store.aclose()
        again = SqliteStore(store_path(root))
        runtime = runtime_for(root, site, again)
        try:
            return await runtime.execute_again("r", in_flight="done"), site.targets
        finally:
            await runtime.aclose()
            await again.aclose()


def test_a_get_is_repeated_after_a_stop(tmp_path: Path) -> None:
    result, targets = asyncio.run(stopped_and_resumed(tmp_path, "read"))
    assert result.status == "completed", result.error
    assert targets == ["/read", "/read", "/write"]


def test_a_post_is_not_repeated_after_a_stop(tmp_path: Path) -> None:
    result, targets = asyncio.run(stopped_and_resumed(tmp_path, "write"))
    assert result.status == "completed", result.error
    assert targets == ["/read", "/write"]
    assert "a person has made sure that it was carried out" in results_of(result.messages)[-1][2]
