"""Workers whose runs an engine hands out: whatever it forgets or repeats, the rows of the store decide."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_do import Project, Runtime
from llm_do.durable import engine_worker
from llm_do.durable.engine_worker import EngineWorker, QueuedRun
from llm_do.durable.input_runs import InputRuns
from llm_do.errors import UsageError
from llm_do.runtime.record.store.batches import BatchStore
from llm_do.threads.sqlite.owners import LockFiles
from tests.cli.cli_processes import LLM_DO, environment
from tests.cli.test_missing_extras import BLOCKER
from tests.durable.test_workers import AGAIN, do, effects, outputs, root, write_inputs
from tests.durable.worker_process import WorkerProcess, wait_until

if TYPE_CHECKING:
    from tests.support.postgres import Server

__all__ = ["root"]

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")]


class CarelessEngine:
    """An engine that forgets every third entry, and starts every second one twice."""

    def __init__(self) -> None:
        self.entries: dict[str, QueuedRun] = {"lost": QueuedRun("words-1", "lost", "a-process-that-is-gone")}
        self.dropped: list[str] = []
        self.put_again = 0
        self.processes: list[str] = []
        self._carry_out: Callable[[str], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, process: str, carry_out: Callable[[str], Awaitable[None]]) -> None:
        self.processes.append(process)
        self._carry_out = carry_out

    async def queued(self) -> list[QueuedRun]:
        return list(self.entries.values())

    async def put(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self.put_again += 1
            if self.put_again % 3 == 0:
                continue
            item = f"{run_id}/{self.put_again}"
            self.entries[item] = QueuedRun(run_id, item, self.processes[-1])
            for _ in range(1 + self.put_again % 2):
                task = asyncio.ensure_future(self._work(item, run_id))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _work(self, item: str, run_id: str) -> None:
        assert self._carry_out is not None
        await self._carry_out(run_id)
        self.entries.pop(item, None)

    async def drop(self, items: Collection[str]) -> None:
        self.dropped += items
        for item in items:
            del self.entries[item]

    async def stop(self) -> None:
        await asyncio.gather(*self._tasks)


def session(root: Path) -> Runtime:
    return Runtime(Project.load(root), approvals="approve_all")


@pytest.mark.slow
def test_the_rows_decide_whatever_the_engine_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # where the tool has its effects
    monkeypatch.setattr(engine_worker, "EVERY", 0.02)
    words = [f"w{number}" for number in range(12)]
    write_inputs(root, *words, "bad")
    do(root, "map", "in.jsonl", "--batch", "words", "--detach")
    engine = CarelessEngine()

    async def work() -> Any:
        runtime = session(root)
        options: dict[str, Any] = {"notice": pytest.fail, "on_failure": lambda *_: None, "until_empty": True}
        worker = EngineWorker(
            engine, session=runtime, store=runtime.shared.recorder().batches(), concurrency=4, **options
        )
        await worker.check()
        await worker.work()
        await runtime.aclose()
        return worker.counts

    counts = asyncio.run(work())
    assert (counts.completed, counts.failed, counts.running) == (12, 1, 0)
    assert engine.dropped == ["lost"]
    assert engine.put_again > 13
    assert effects(root) == Counter(words)
    assert outputs(do(root, "map", "in.jsonl", "--batch", "words")) == [*(word.upper() for word in words), None]


class RacingStore:
    """The batches of a store in which another process has a run for a moment, and is killed.

    Args:
        batches: The batches.
        sql: Carries out a statement.
    """

    def __init__(self, batches: BatchStore, sql: Callable[[str], Awaitable[None]]) -> None:
        self._batches = batches
        self._sql = sql

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    async def items(self, *args: Any, **options: Any) -> Any:
        await self._sql("UPDATE runs SET status = 'stopped', attempt = attempt + 1, owner = ''")
        return await self._batches.items(*args, **options)


def test_a_run_that_others_had_for_a_moment_is_left_and_found_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    write_inputs(root, "a")
    do(root, "map", "in.jsonl", "--batch", "words", "--detach")

    async def work() -> None:
        first = session(root)
        store = first.shared.recorder().store()
        batches = first.shared.recorder().batches()
        batch = await batches.batch("words")
        assert batch is not None
        runs = InputRuns(first, batches, batch, accept_changes=True)
        first.on("tool_call", lambda event: first.interrupt())
        (claim,) = (await batches.take("words", 1)).inputs
        with pytest.raises(Exception, match="interrupted"):
            await runs.carry_out(claim)
        (left,) = await batches.left("words")
        assert (left.attempt, await batches.find("words-1")) == (1, ("words", left))

        async def sql(statement: str) -> None:
            await store._worker.write(lambda db: db.execute(statement))  # type: ignore[attr-defined]

        again = session(root)
        other = LockFiles(root / ".llm-do" / "owners", "another process")
        await sql(f"UPDATE runs SET status = 'running', owner = '{other.claim()}'")
        racing: Any = RacingStore(batches, sql)
        assert await InputRuns(again, racing, batch, accept_changes=True).carry_out(left) is None
        # What can't be continued although nobody else had it is an error, as ever.
        await sql("UPDATE runs SET attempt = 0")
        (odd,) = await batches.items("words", after=0, most=1)
        with pytest.raises(UsageError, match="can't be resumed"):
            await InputRuns(again, batches, batch, accept_changes=True).carry_out(odd)
        assert await batches.gone({other.own, "nobody"}) == {"nobody"}
        other.release()
        await again.aclose()
        await first.aclose()

    asyncio.run(work())


def test_options_of_engines_that_do_not_fit_are_refused(root: Path) -> None:
    def refused(*options: str) -> str:
        ended = do(root, "worker", *options)
        assert (ended.code, ended.out) == (2, "")
        return ended.err

    assert "--total is a limit over all workers, which only an engine knows of. Add `--engine dbos`" in refused(
        "--total", "3"
    )
    assert "--per-minute is a limit over all workers" in refused("--per-minute", "3")
    assert "'--total': 0 is " in refused("--engine", "dbos", "--total", "0")
    assert "'celery'" in refused("--engine", "celery")
    assert "`--engine dbos` needs a store in PostgreSQL" in refused("--engine", "dbos")


@pytest.mark.slow
def test_an_engine_that_is_not_installed_is_said(root: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(modules=["dbos"]))
    ended = subprocess.run(
        [*LLM_DO, "worker", "--engine", "dbos", "--store", "postgresql://127.0.0.1:1/jobs"],
        cwd=root,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2, ended.stderr
    assert "`--engine dbos` needs the extra `dbos`, which isn't installed. Install it with `" in ended.stderr
    assert "[dbos]" in ended.stderr


# -- DBOS


@pytest.fixture
def server(own_server: Server) -> Server:
    """A server of its own, since DBOS's connections are counted."""
    pytest.importorskip("dbos")
    return own_server


def queue(root: Path, server: Server, *words: str) -> list[str]:
    """Put inputs on the queue of a store; returns the options of its workers."""
    url = server.url("jobs")
    write_inputs(root, *words)
    assert do(root, "map", "in.jsonl", "--batch", "words", "--detach", "--store", url).code == 0
    return ["--store", url]


def end(worker: WorkerProcess) -> str:
    worker.send_signal(signal.SIGTERM)
    said = worker.wait_for_end()
    assert worker.returncode == 0, said
    assert "Traceback" not in said
    return said


@pytest.mark.slow
def test_workers_of_dbos_that_are_killed_repeat_nothing_and_lose_nothing(root: Path, server: Server) -> None:
    count = 200
    store = queue(root, server, *(f"w{number}" for number in range(count)))
    options = ["--engine", "dbos", "--total", "9", "--concurrency", "6", "--exit-when-empty", *store]
    workers = [WorkerProcess(root, *options) for _ in range(2)]
    for index in (0, 1, 0):
        before = effects(root).total()
        wait_until(lambda before=before: effects(root).total() > before + 30)
        workers[index].kill()
        workers[index].wait_for_end()
        workers[index] = WorkerProcess(root, *options)
        if index:  # DBOS forgets everything that is on its queue
            server.query("DELETE FROM jobs_dbos.workflow_status WHERE status = 'ENQUEUED'")
    for worker in workers:
        said = worker.wait_for_end()
        assert worker.returncode == 0, said
        assert "Traceback" not in said
    assert set(effects(root).values()) == {1}

    told = {each["run_id"] for each in json.loads(do(root, "approvals", "pending", "--format", "json", *store).out)}
    ended = do(root, "map", "in.jsonl", "--batch", "words", "--in-flight", "fail", "--approve-all", *store)
    assert len(ended.out.splitlines()) == count
    missing = {f"words-{at + 1}" for at in range(count) if not effects(root)[f"w{at}"]}
    assert missing <= told
    assert {f"words-{at + 1}" for at, text in enumerate(outputs(ended)) if text != f"W{at}"} == told


@pytest.mark.slow
def test_limits_hold_over_all_workers_of_dbos(root: Path, server: Server) -> None:
    store = queue(root, server, *(f"long{number}" for number in range(8)))
    options = ["--engine", "dbos", "--total", "3", *store]
    workers = [WorkerProcess(root, *options) for _ in range(2)]
    wait_until(lambda: effects(root).total() == 3)
    time.sleep(3)  # several looks of each
    assert effects(root).total() == 3

    # What a killed worker had makes room: its calls are asked about, and others begin.
    workers[0].kill()
    workers[0].wait_for_end()
    asked = partial(do, root, "approvals", "pending", "--format", "json", *store)
    wait_until(lambda: effects(root).total() - len(json.loads(asked().out)) == 3)
    (root / "go").touch()
    wait_until(lambda: effects(root).total() == 8)
    assert set(effects(root).values()) == {1}
    said = end(workers[1])
    assert "3 in all workers" in said


@pytest.mark.slow
def test_runs_begin_at_the_rate_that_dbos_lets_them(root: Path, server: Server) -> None:
    store = queue(root, server, *(f"w{number}" for number in range(8)))
    worker = WorkerProcess(root, "--engine", "dbos", "--per-minute", "4", *store)
    wait_until(lambda: effects(root).total() == 4)
    time.sleep(3)
    assert effects(root).total() == 4
    end(worker)
    # A worker without an engine carries out the rest.
    assert do(root, "worker", "--approve-all", "--exit-when-empty", *store).code == 0
    ended = do(root, "map", "in.jsonl", "--batch", "words", *store)
    assert outputs(ended) == [f"W{number}" for number in range(8)]


@pytest.mark.slow
def test_workers_of_dbos_outlive_a_restart_of_the_database(root: Path, server: Server) -> None:
    store = queue(root, server, *(f"w{number}" for number in range(60)))
    worker = WorkerProcess(root, "--engine", "dbos", "--concurrency", "2", *store)
    wait_until(lambda: effects(root).total() > 5)
    server.control("stop", "-m", "fast")
    worker.wait_for("; trying again")
    assert AGAIN not in worker.output
    server.control("start")
    worker.wait_for(AGAIN)
    waiting: list[object] = []

    def is_done() -> bool:
        waiting[:] = json.loads(do(root, "approvals", "pending", "--format", "json", *store).out)
        return effects(root).total() + len(waiting) >= 60

    wait_until(is_done)
    end(worker)
    assert set(effects(root).values()) == {1}
