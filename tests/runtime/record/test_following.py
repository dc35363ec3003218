"""Following a run: its events as they are recorded, by whichever process, from any number on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime
from llm_do.errors import UsageError
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import call, script

AGENT = "---\nname: main\nmodel: script:answers.yaml\ntools: [wait]\n---\nGo.\n"
TOOLS = "import time\n\n\ndef wait() -> str:\n    time.sleep(60)\n    return 'done'\n\n\nTOOLS = [wait]\n"


def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def test_a_run_is_followed_while_it_waits_and_until_it_ends(tmp_path: Path) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def person(request: ApprovalRequest) -> ApprovalDecision:
        asked.set()
        await answered.wait()
        return ApprovalDecision("once")

    async def main() -> tuple[list[Any], list[Any], list[Any]]:
        spec = agent("main", script(call("send", to="ann"), "done"), tools=[send])
        runtime = runtime_of([spec], root=tmp_path, approvals=person, options={"record": True})
        ear = heard(runtime)
        running = asyncio.ensure_future(runtime.execute("go", run_id="r1"))
        await asked.wait()
        seen: list[Any] = []
        async for event in runtime.follow("r1"):
            seen.append(event)
            if event.type == "approval_requested":
                answered.set()
        await running
        rest = [event async for event in runtime.follow("r1", after=4)]
        await runtime.aclose()
        return seen, rest, ear.events

    seen, rest, emitted = asyncio.run(main())

    assert [each.to_dict() for each in seen] == [each.to_dict() for each in emitted if each.type != "text"]
    assert seen[-1].type == "run_finished"
    assert [each.seq for each in rest] == list(range(5, len(seen)))


def test_a_run_that_does_not_exist_cannot_be_followed(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = runtime_of([agent("main", script("done"))], root=tmp_path, options={"record": True})
        result = await runtime.execute("go")
        for unknown in ("nothing", result.run_id[:8]):
            with pytest.raises(UsageError, match="there is no run"):
                await anext(runtime.follow(unknown))
        await runtime.aclose()

    asyncio.run(main())


@pytest.mark.slow
def test_a_run_of_another_process_is_followed_until_that_is_killed(tmp_path: Path) -> None:
    for name, text in {"main.agent": AGENT, "tools.py": TOOLS, "answers.yaml": "- tools: [{name: wait}]\n"}.items():
        (tmp_path / name).write_text(text)
    words = [sys.executable, "-m", "llm_do.cli", "run", str(tmp_path), "go", "--approve-all"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def main() -> list[Any]:
        runtime = Runtime(Project.load(tmp_path))
        store = runtime.shared.recorder().store()
        while not (runs := await store.runs(limit=1)):  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.05)
        seen: list[Any] = []
        async for event in runtime.follow(runs[0].id):
            seen.append(event)
            if event.type == "tool_call":
                process.send_signal(signal.SIGKILL)
                process.wait(30)
        await runtime.aclose()
        return seen

    seen = asyncio.run(main())

    assert [each.seq for each in seen] == list(range(len(seen)))
    assert (seen[-1].type, seen[-1].status) == ("run_failed", "interrupted")
