"""What a worker does while its store can't be reached."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, Runtime, StoreError
from llm_do.durable import worker as worker_module
from llm_do.durable.input_runs import InputRuns
from llm_do.durable.worker import Worker
from llm_do.runtime.record.store.batches import BatchRecord
from tests.durable.test_workers import do, root, write_inputs

__all__ = ["root"]


class Outage:
    """The batches of a store that can't be reached for a while."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self.lasts = False
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    async def open(self) -> list[BatchRecord]:
        if self.lasts:
            self.asked += 1
            raise StoreError("the store can't be reached")
        return await self._batches.open()


def test_a_store_is_reported_as_reachable_once_it_has_answered_even_without_room(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "AGAIN", 600)  # the place of the run that has lost its store stays taken
    monkeypatch.setattr(worker_module, "LATEST", 0.01)
    write_inputs(root, "a", "b")
    do(root, "map", "in.jsonl", "--batch", "words", "--detach")
    lines: list[str] = []

    async def work() -> None:
        runtime = Runtime(Project.load(root), approvals="approve_all")
        store = Outage(runtime.shared.recorder().batches())
        failed: Any = pytest.fail
        options: dict[str, Any] = {"concurrency": 1, "notice": lines.append, "on_failure": failed}
        worker = Worker(session=runtime, store=store, **options)  # type: ignore[arg-type]

        async def loses_its_store(*_: object) -> None:
            store.lasts = True
            raise StoreError("the store can't be reached")

        monkeypatch.setattr(InputRuns, "carry_out", loses_its_store)
        working = asyncio.ensure_future(worker.work())
        async with asyncio.timeout(60):
            while store.asked < 3:  # noqa: ASYNC110 (the worker is what is waited for)
                await asyncio.sleep(0.01)
            assert lines == ["the store can't be reached; trying again"]
            store.lasts = False
            while len(lines) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert worker.counts.running == 1
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await runtime.aclose()

    asyncio.run(work())
    assert lines[1:] == ["the store can be reached again"]
