"""Documents of runs for tests of the page, and a real Chromium that shows them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest
from llm_do.threads import memory_store
from llm_do.web.run_document import stored_document
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script

CHROMIUM = "/usr/bin/chromium"
SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium, or skip where it isn't installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright isn't installed")
    found = CHROMIUM if shutil.which(CHROMIUM) else shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium isn't installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visitors(browser: Any, url: str, key: str) -> Iterator[Callable[..., Any]]:
    """Open pages of a server, each as a person of their own; at the end, no page may have had a fault."""
    faults: list[str] = []
    contexts: list[Any] = []

    def visit(path: str = "/", key: str = key) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{url}{path}#key={key}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []


def send(to: str, text: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def look(place: str) -> str:
    """Look at a place."""
    if place == "cellar":
        raise ValueError("the cellar is locked")
    return f"{place} is fine"


async def _allow(request: ApprovalRequest) -> ApprovalDecision:
    await asyncio.sleep(0.05)
    return ApprovalDecision("once")


def letters_document() -> dict[str, Any]:
    """A run with two requests, a failed call, a nested agent and a question that a person answered."""
    helper = agent("helper", script("The helper looked."))
    turns = script(
        [call("look", place="hall"), call("look", place="cellar")],
        call("helper", input="Look too."),
        call("send", to="ann", text="All is well."),
        "The letter is out.",
    )
    lead = agent("lead", turns, instructions="You write letters.", tools=[send, look], toolsets=[helper])
    return run_to_document([lead, helper], "Write to ann.", options={"allow": ["look", "helper"]}, approvals=_allow)


def run_to_document(specs: list[Any], input: Any, **fields: Any) -> dict[str, Any]:
    """Run agents, and describe what is recorded."""
    store = memory_store()
    options = {**fields.pop("options", {}), "store": store, "record": True}
    runtime = runtime_of(specs, options=options, **fields)

    async def go() -> dict[str, Any]:
        result = await runtime.execute(input)
        await runtime.aclose()
        record = await store.run(result.run_id)
        assert record is not None
        return await stored_document(store, record)

    # Playwright has an event loop in the thread of the tests.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, go()).result()


def event(seq: int, type: str, time: float, call: str = "r.1", **fields: Any) -> dict[str, Any]:
    """An event of a made-up run."""
    parent = call.rpartition(".")[0] or None
    base = {"type": type, "seq": seq, "time": time, "run_id": "r", "call_id": call, "parent_call_id": parent}
    return {**base, "agent_name": "main", "path": "main", "depth": 1, **fields}


def document_of(events: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    """The document of a made-up run."""
    run = {
        "run_id": "r", "status": status, "entry": "main", "thread_id": None, "user_id": None, "started": 1000.0,
        "finished": None, "models": ["test"], "usage": None, "exchanges": 0, "exchanges_dropped": None, "attempt": 0,
    }  # fmt: skip
    return {
        "version": 1,
        "project": "",
        "run": run,
        "events": events,
        "files": [],
        "requests": [],
        "setups": [],
        "messages": [],
    }


def long_document(count: int) -> dict[str, Any]:
    """A run of so many events."""
    events = [event(0, "run_started", 1000.0, "r", entry="main", input={"input": "go"})]
    events.append(event(1, "call_started", 1000.0, input={"input": "go"}, label=""))
    while len(events) < count - 2:
        seq, time = len(events), 1000.0 + len(events) / 100
        named = {"tool_name": "look", "tool_call_id": f"t{seq}"}
        events.append(event(seq, "tool_call", time, **named, args={"place": f"room {seq}"}))
        ended = {"status": "success", "result": "fine", "duration": 0.01, "size": 4, "waited": 0.0, "args": None}
        events.append(event(seq + 1, "tool_result", time + 0.01, **named, **ended, error=None, decision=None))
    last = events[-1]["time"]
    events.append(event(len(events), "call_finished", last, status="completed", output="done"))
    events.append(event(len(events), "run_finished", last, "r", status="completed", output="done"))
    return document_of(events)


def work_of(page: Any) -> Callable[[], float]:
    """What tells how many seconds of processor time the page's thread has used so far."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def work() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "ThreadTime")

    return work
