"""How work on a batch starts: a new batch is kept, and one that has the id already is continued if it is the same.

A batch is the same if its inputs, its entry, the project's files and the models are.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.errors import UsageError
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.batches import BatchInput, BatchRecord
from llm_do.runtime.session.entries import entry_for
from llm_do.runtime.session.mapped_inputs import BatchBudget
from llm_do.runtime.session.project_snapshots import file_digests
from llm_do.runtime.steps.sealed_secrets import Seal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from llm_do.durable.json_lines import JsonLines, Scan
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.batches import BatchStore

__all__ = [
    "BatchOptions",
    "batch_changes",
    "check_batch_id",
    "check_recorded",
    "default_id",
    "project_texts",
    "put_inputs",
    "start_batch",
]

CONCURRENCY = 20
"""Runs at once, unless something else is asked for."""

PUT_AT_ONCE = 500
"""Inputs that one transaction puts on the queue."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@frozen
class BatchOptions:
    """How a batch is worked on.

    Args:
        id: Its id.
        entry: What is run, by name; None for the project's own entry.
        concurrency: Runs at once in this process; None for 20.
        budget: What they may cost; None for what the batch has been begun with.
        retry: Whether inputs whose runs have failed get new runs.
        accept_changes: Whether to continue although the project's files or the models have changed.
    """

    id: str
    entry: str | None = None
    concurrency: int | None = None
    budget: BatchBudget | None = None
    retry: bool = False
    accept_changes: bool = False

    def __post_init__(self) -> None:
        for name, (is_right, described, hint) in _KINDS.items():
            value: object = getattr(self, name)
            if value is not None and not is_right(value):
                raise UsageError(f"{name} must be {described}, not {value!r}", hint=hint)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_KINDS: dict[str, tuple[Callable[[object], bool], str, str]] = {
    "concurrency": (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
        "1 or more, a whole number",
        "20 is the default.",
    ),
    "budget": (
        lambda value: isinstance(value, BatchBudget),
        "a BatchBudget",
        "Write BatchBudget(total_usd=5, each_usd=0.05), or leave it out for no limit.",
    ),
    "retry": (_is_flag, "True or False", "False is the default."),
    "accept_changes": (_is_flag, "True or False", "False is the default."),
}


def check_batch_id(batch_id: str) -> None:
    """Raise `UsageError` for an id that can't be the beginning of runs' ids.

    Example:
        >>> check_batch_id("receipts-2026.11")
    """
    if not isinstance(batch_id, str) or _ID.fullmatch(batch_id) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"{batch_id!r} can't be a batch's id",
            hint="Use letters, digits, `-`, `_` and `.`, beginning with a letter or digit, 64 characters at most.",
        )


def default_id(source: str, entry: str | None) -> str:
    """The id of a batch that has no name: the same for the same source and entry."""
    return hashlib.sha256(f"{source}\n{entry or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


async def start_batch(
    session: Session, store: BatchStore, options: BatchOptions, scan: Scan, source: str
) -> BatchRecord:
    """Keep a new batch, or find the one to continue.

    Args:
        session: The session.
        store: Where batches are kept.
        options: How it is worked on.
        scan: What its inputs are.
        source: The name of the inputs in messages.

    Raises:
        UsageError: The batch was begun with other inputs, another entry, or another project.
    """
    check_batch_id(options.id)
    check_recorded(session)
    entry = entry_for(session.project, session.registry, options.entry, [], None)
    concurrency = CONCURRENCY if options.concurrency is None else options.concurrency
    budget = options.budget or BatchBudget()
    asked = BatchRecord(
        options.id,
        entry.name,
        options.entry,
        scan.digest,
        scan.total,
        *project_texts(session),
        budget.total_usd,
        budget.each_usd,
        concurrency,
        time.time(),
    )
    if options.retry and await store.batch(options.id) is None:
        raise UsageError(
            f"there is no batch {options.id!r} whose inputs could be run again",
            hint=f"Leave out {option_name('--retry', 'retry=True')} to begin it, or name the batch that you mean with "
            f"{option_name('--batch')}.",
        )
    kept = await store.begin(asked)
    if kept == asked:
        return kept
    _check_same(kept, asked, source)
    if not options.accept_changes:
        _check_unchanged(kept, asked)
    if options.budget is None:
        asked = replace(asked, budget=kept.budget, budget_each=kept.budget_each)
    batch = replace(asked, created=kept.created, used=kept.used)
    await store.update(batch)
    if options.retry:
        await store.retry(batch.id)
    return batch


async def put_inputs(store: BatchStore, batch_id: str, source: JsonLines, *, after: int) -> AsyncIterator[int]:
    """Put the inputs on the queue that come after a place, and yield their number after each transaction."""
    seal = Seal(redactor().secrets)
    remaining: Iterator[tuple[int, str]] = ((at, text) for at, text in source if at > after)
    while chunk := await asyncio.to_thread(lambda: list(islice(remaining, PUT_AT_ONCE))):
        await store.put(batch_id, [BatchInput(at, seal.close(text)) for at, text in chunk])
        yield len(chunk)


def project_texts(session: Session) -> tuple[str, str]:
    """What a batch keeps of the project and of the options of the session that begins it, as JSON texts."""
    options = json.dumps(_deciding_options(session.config.kept_options))
    return json.dumps(file_digests(session.project)), options


def check_recorded(session: Session) -> None:
    """Raise `UsageError` for a session that keeps nothing on disk."""
    project, config = session.project, session.config
    own = not project.record and config.store is None
    if config.record is False or own or (project.threads.store == "memory" and config.store is None):
        raise UsageError(
            "the runs of a batch are kept on disk, and nothing is recorded here",
            hint="Leave out "
            f"{option_name('--no-record', 'record=False')}, `record: false` and `threads.store: memory`.",
        )


def _deciding_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that decide what a run answers; limits and permissions may change while a batch is worked on."""
    return {name: options[name] for name in ("model", "models", "max_steps")}


def _check_same(kept: BatchRecord, asked: BatchRecord, source: str) -> None:
    if (kept.entry, kept.name) != (asked.entry, asked.name):
        names = [each.entry or f"the project's entry {each.name}" for each in (kept, asked)]
        raise UsageError(
            f"batch {kept.id} runs {names[0]}, not {names[1]}",
            hint=f"Give the other entry a batch of its own: {option_name('--batch NAME', 'batch=NAME')}.",
        )
    if kept.inputs != asked.inputs:
        counts = f" ({kept.total:,} then, {asked.total:,} now)" if kept.total != asked.total else ""
        raise UsageError(
            f"{source} has other inputs than batch {kept.id} was begun with{counts}",
            hint="Restore it to continue that batch, or begin another one: "
            f"{option_name('--batch NAME', 'batch=NAME')}.",
        )


def _check_unchanged(kept: BatchRecord, asked: BatchRecord) -> None:
    changed = batch_changes(kept, asked.project, asked.options)
    if changed:
        raise UsageError(
            f"what batch {kept.id} was begun with has changed: {', '.join(changed)}",
            hint="Undo the changes, or continue with them: "
            f"{option_name('--accept-changes', 'accept_changes=True')}. Inputs that have results keep them; add"
            f" `{option_name('--retry failed', 'retry=True')}` to run those again that failed.",
        )


def batch_changes(kept: BatchRecord, project: str, options: str) -> list[str]:
    """The files and options that aren't those that a batch was begun with."""
    before, now = json.loads(kept.project), json.loads(project)
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    before, now = json.loads(kept.options), json.loads(options)
    return changed + [name for name in now if before.get(name) != now[name]]
