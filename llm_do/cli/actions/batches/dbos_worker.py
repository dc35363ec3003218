"""A worker whose runs DBOS hands out: its queue is that of the project's files, in the database of the store."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from llm_do._extras import has_extra, missing_extra
from llm_do.errors import UsageError
from llm_do.threads.postgres.target import target_of

if TYPE_CHECKING:
    from llm_do.cli.actions.batches.worker_action import EngineOptions
    from llm_do.durable.engine_worker import EngineWorker

__all__ = ["dbos_worker"]


def dbos_worker(engine: EngineOptions, options: dict[str, Any]) -> EngineWorker:
    """Create the worker.

    Args:
        engine: Its limits.
        options: Those of `llm_do.durable.worker.Worker`.

    Raises:
        UsageError: The store isn't in PostgreSQL, or DBOS isn't installed.
    """
    url = options["session"].project.threads.store
    if not url.startswith("postgresql://"):
        raise UsageError(
            "`--engine dbos` needs a store in PostgreSQL, where DBOS keeps its tables, too",
            hint="Name one with `--store postgresql://...`, or leave out --engine: workers share any store without it.",
        )
    target = target_of(url)
    from llm_do.durable.batch_start import project_texts
    from llm_do.durable.engine_worker import EngineWorker

    if not has_extra("dbos"):
        missing = missing_extra("dbos", "`--engine dbos`")
        raise UsageError(missing.message, hint=missing.hint)
    from llm_do.durable.dbos_engine import DbosEngine, EngineLimits

    concurrency = options["concurrency"]
    here = concurrency if engine.total is None else min(concurrency, engine.total)
    # The same for every worker of the same files, models and batch, whatever the order in which it found them.
    work = [*(json.loads(text) for text in project_texts(options["session"])), options["batch"]]
    queue = f"llm-do-{hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:16]}"
    limits = EngineLimits(here, engine.total, engine.per_minute)
    carrier = DbosEngine(target.parameters, target.schema, queue, limits)
    return EngineWorker(carrier, **options)
