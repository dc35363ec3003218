"""`DbosEngine`: DBOS starts runs by their ids, with its limits on how many run at once and how many begin a minute.

Only the public interface of `dbos` is used, here and nowhere else. A run is a workflow without steps: DBOS knows when
and where it runs, and the store what it does. DBOS's own recovery isn't used, since it runs what has a row of its own
again; entries of processes that are gone are cancelled, and their runs put on the queue anew by `EngineWorker`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from llm_do._startup.frozen import frozen
from llm_do.durable.engine_worker import QueuedRun
from llm_do.errors import StoreError

if TYPE_CHECKING:
    from dbos import DBOSConfig

__all__ = ["DbosEngine", "EngineLimits"]

T = TypeVar("T")

POLL = 0.2
"""Seconds between two looks of DBOS at its queue: it starts no more than there is room for at each."""

PATIENCE = 20.0
"""Seconds for what DBOS does with its tables, which it tries again for as long as they can't be reached."""

_ACTIVE = ["ENQUEUED", "PENDING"]


@frozen
class EngineLimits:
    """Limits that hold for all workers of a queue.

    Args:
        here: Runs at once in one process.
        total: Runs at once in all processes; None for no limit.
        per_minute: Runs that begin within a minute; None for no limit.
    """

    here: int
    total: int | None = None
    per_minute: int | None = None


class _Hands:
    """What carries out the runs that DBOS starts, on threads of its own."""

    loop: asyncio.AbstractEventLoop | None = None
    carry_out: Callable[[str], Awaitable[None]] | None = None


_hands = _Hands()
_start = threading.Lock()


@cache
def _workflow() -> Callable[[str], None]:
    """What DBOS starts, which it has to know before it is launched."""
    from dbos import DBOS

    return DBOS.workflow(name="llm-do run")(_run)


def _run(run_id: str) -> None:
    loop, carry_out = _hands.loop, _hands.carry_out
    if loop is None or carry_out is None:
        return

    async def work() -> None:
        await carry_out(run_id)

    asyncio.run_coroutine_threadsafe(work(), loop).result()


class DbosEngine:
    """One queue of DBOS, in a schema beside the store's.

    Args:
        parameters: What connections to the database are opened with.
        schema: The schema of the store.
        queue: The queue's name.
        limits: What holds for all of its workers, until one is started with others.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        schema: str,
        queue: str,
        limits: EngineLimits,
    ) -> None:
        self._parameters = dict(parameters)
        self._schema = f"{schema}_dbos"
        self._queue = queue
        self._limits = limits

    async def start(self, process: str, carry_out: Callable[[str], Awaitable[None]]) -> None:
        """Begin to take runs from the queue.

        Raises:
            StoreError: DBOS's tables can't be reached or created.
        """
        _hands.loop, _hands.carry_out = asyncio.get_running_loop(), carry_out
        await self._do(lambda: self._launch(process), seconds=3 * PATIENCE)

    async def queued(self) -> list[QueuedRun]:
        """Return what is on the queue, and what processes were told to carry out."""
        from dbos import DBOS

        found = await self._do(
            lambda: DBOS.list_workflows(queue_name=self._queue, status=_ACTIVE, load_input=False, load_output=False)
        )
        return [
            QueuedRun(each.deduplication_id, each.workflow_id, each.executor_id if each.status == "PENDING" else None)
            for each in found
            if each.deduplication_id is not None
        ]

    async def put(self, run_ids: Sequence[str]) -> None:
        """Put runs on the queue, unless they are there."""
        from dbos import DBOS, SetEnqueueOptions, error

        def put() -> None:
            for run_id in run_ids:
                with SetEnqueueOptions(deduplication_id=run_id):
                    try:
                        DBOS.enqueue_workflow(self._queue, _workflow(), run_id)
                    except error.DBOSQueueDeduplicatedError:
                        continue  # another worker was faster

        await self._do(put)

    async def drop(self, items: Collection[str]) -> None:
        """Cancel workflows of processes that are gone."""
        from dbos import DBOS

        await self._do(lambda: DBOS.cancel_workflows(list(items)))

    async def stop(self) -> None:
        """Take nothing more."""
        from dbos import DBOS

        _hands.carry_out = None
        await self._do(lambda: DBOS.destroy(workflow_completion_timeout_sec=0), seconds=3 * PATIENCE)

    def _launch(self, process: str) -> None:
        from dbos import DBOS

        with _start:
            _workflow()
            config: DBOSConfig = {
                "name": "llm-do",
                "system_database_url": self._url(),
                "dbos_system_schema": self._schema,
                "application_version": "1",
                "executor_id": process,
                "log_level": "CRITICAL",
                "use_listen_notify": False,
            }
            DBOS(config=config)
            DBOS.listen_queues([self._queue])
            DBOS.launch()
            self._declare()

    def _declare(self) -> None:
        from dbos import DBOS

        limits, per_minute = self._limits, self._limits.per_minute
        DBOS.register_queue(
            self._queue,
            worker_concurrency=limits.here,
            global_concurrency=limits.total,
            limiter={"limit": per_minute, "period": 60.0} if per_minute is not None else None,
            polling_interval_sec=POLL,
            on_conflict="always_update",
        )

    def _url(self) -> str:
        from sqlalchemy import URL

        known = {name: str(value) for name, value in self._parameters.items()}
        names = {"user": "username", "password": "password", "dbname": "database"}
        parts: dict[str, Any] = {part: known.pop(name, None) for name, part in names.items()}
        url = URL.create("postgresql+psycopg", **parts, query=known)
        return url.render_as_string(hide_password=False)

    async def _do(self, job: Callable[[], T], seconds: float = PATIENCE) -> T:
        from dbos import error as dbos_error
        from sqlalchemy.exc import SQLAlchemyError

        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(job)
        except TimeoutError:
            raise StoreError(
                f"DBOS's tables in the schema {self._schema} can't be reached", hint="Check that the database answers."
            ) from None
        except (SQLAlchemyError, dbos_error.DBOSException) as error:
            raise StoreError(
                f"DBOS can't use its tables in the schema {self._schema}: {error}",
                hint="Check that the database's user may create and change tables in that schema.",
            ) from error
