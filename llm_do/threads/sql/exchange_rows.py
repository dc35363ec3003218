"""The SQL of exchanges: objects that are stored once and count their uses, and what requests have used.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from llm_do.errors import StoreError
from llm_do.runtime.record.exchanges import Exchange, RequestPlace
from llm_do.runtime.record.store.store_writes import Batch, ExchangeRow, HistoryNode, SpentRow, StoredObject
from llm_do.text.exception_text import first_fault
from llm_do.threads.sql.database import Database
from llm_do.threads.store.stored_exchanges import exchange_from, facts_and_setup

if TYPE_CHECKING:
    from llm_do.project.project import RecordSettings
    from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["drop_beyond", "forget", "read", "write"]

T = TypeVar("T")

DIGEST = 32
"""Bytes of a digest."""

OVERHEAD = 100
"""Bytes that an object takes in addition to its text, in the table and its index."""

DAY = 86_400.0

MOST_EXPIRED = 5
"""Runs whose exchanges are dropped for their age at the end of one run, which waits for it."""

MOST_VALUES = 500
"""Values of one statement: not every SQLite takes more than 999."""

_SPEND = """
INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, agent, model) DO UPDATE SET
  requests = spent.requests + excluded.requests,
  input_tokens = spent.input_tokens + excluded.input_tokens,
  output_tokens = spent.output_tokens + excluded.output_tokens,
  total_tokens = spent.total_tokens + excluded.total_tokens,
  cost = CASE
    WHEN spent.cost IS NULL AND spent.total_tokens > 0 OR excluded.cost IS NULL AND excluded.total_tokens > 0 THEN NULL
    ELSE coalesce(spent.cost + excluded.cost, spent.cost, excluded.cost)
  END
"""


def write(db: Database, batch: Batch) -> None:
    """Write the exchanges of a batch, and what its run has used; the sums are in the run's row."""
    if batch.exchanges:
        size = sum(_insert(db, batch.run_id, row) for row in batch.exchanges)
        _resize(db, size)
    if batch.spent:
        db.executemany(_SPEND, [_spent_values(batch.run_id, row) for row in batch.spent])


def _spent_values(run_id: str, row: SpentRow) -> tuple[object, ...]:
    used = row.usage
    counts = (used.requests, used.input_tokens, used.output_tokens, used.total_tokens, used.cost_usd)
    return (run_id, row.agent, row.model, *counts)


# -- objects


def _insert(db: Database, run_id: str, row: ExchangeRow) -> int:
    """Insert an exchange, and return how many bytes it adds."""
    place = row.place
    size = _use(db, row.setup) + _use_history(db, row.before, row.nodes)
    db.execute(
        "INSERT INTO exchanges VALUES (?, (SELECT coalesce(max(number), 0) + 1 FROM exchanges WHERE run = ?),"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            run_id,
            place.call_id,
            place.path,
            place.agent,
            place.number,
            place.attempt,
            place.purpose,
            row.model,
            row.setup.digest,
            row.head,
            row.begun,
            row.ended,
            row.first_token,
            row.data,
        ),
    )
    return size + _exchange_size(row.data)


def _exchange_size(answer: str) -> int:
    return len(answer) + 3 * OVERHEAD


def _use(db: Database, item: StoredObject) -> int:
    """Count one more use of an object, which is inserted if it is new; return how many bytes that adds."""
    if _count_use(db, item.digest):
        return 0
    return _add(db, item.digest, item.body, [link.digest for link in item.links]) + sum(
        _use(db, link) for link in item.links
    )


def _use_history(db: Database, before: bytes, nodes: Sequence[HistoryNode]) -> int:
    """Count one more use of a history: that before `nodes`, followed by theirs. What isn't stored yet is inserted."""
    size = 0
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if _count_use(db, node.digest):
            return size
        message = _message_object(node)
        parent = nodes[number - 1].digest if number else before
        size += _add(db, node.digest, "", [message.digest, parent] if parent else [message.digest])
        size += _use(db, message)
    if before:
        _count_use(db, before)
    return size


def _message_object(node: HistoryNode) -> StoredObject:
    from llm_do.runtime.record.canonical_messages import canonical_text  # heavy, as requests are

    body = canonical_text(node.message)
    return StoredObject(hashlib.sha256(body.encode("utf-8", "backslashreplace")).digest(), body)


def _count_use(db: Database, digest: bytes) -> bool:
    """Count one more use of an object; False if it isn't stored."""
    return db.execute("UPDATE objects SET uses = uses + 1 WHERE digest = ?", (digest,)).rowcount > 0


def _add(db: Database, digest: bytes, body: str, links: Sequence[bytes]) -> int:
    joined = b"".join(links)
    db.execute("INSERT INTO objects VALUES (?, 1, ?, ?)", (digest, joined, body))
    return _object_size(body, joined)


def _object_size(body: str, links: bytes) -> int:
    return len(body) + len(links) + OVERHEAD


def _release(db: Database, digests: Iterable[bytes]) -> int:
    """Take back uses of objects, delete what isn't used any more, and return how many bytes that frees."""
    size, released = 0, Counter(digest for digest in digests if digest)
    while released:
        freed: Counter[bytes] = Counter()
        for some in _portions(list(released)):
            found = db.execute(
                f"SELECT digest, uses, links, length(body) FROM objects WHERE digest IN ({_marks(some)})", some
            ).fetchall()
            rows = [(bytes(digest), uses, bytes(links), length) for digest, uses, links, length in found]
            shared = [(released[digest], digest) for digest, uses, *_ in rows if uses > released[digest]]
            unused = [row for row in rows if row[1] <= released[row[0]]]
            if shared:
                db.executemany("UPDATE objects SET uses = uses - ? WHERE digest = ?", shared)
            if unused:
                digests = [row[0] for row in unused]
                db.execute(f"DELETE FROM objects WHERE digest IN ({_marks(digests)})", digests)
            for _, _, links, length in unused:
                size += length + len(links) + OVERHEAD
                freed.update(_links(links))
        released = freed
    return size


def _portions(items: list[T]) -> Iterator[list[T]]:
    """Split values into as many as one statement takes."""
    return (items[at : at + MOST_VALUES] for at in range(0, len(items), MOST_VALUES))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _links(joined: bytes) -> list[bytes]:
    return [joined[at : at + DIGEST] for at in range(0, len(joined), DIGEST)]


def _resize(db: Database, size: int) -> None:
    db.execute("UPDATE exchange_size SET bytes = CASE WHEN bytes + ? > 0 THEN bytes + ? ELSE 0 END", (size, size))


# -- dropping


def forget(db: Database, runs: Iterable[str]) -> None:
    """Delete the exchanges of runs, and what their requests have used."""
    for some in _portions(list(runs)):
        _drop(db, some)
        db.execute(f"DELETE FROM spent WHERE run IN ({_marks(some)})", some)


def drop_beyond(db: Database, limits: RecordSettings, now: float) -> None:
    """Drop the exchanges that are too old, and those of the oldest runs while all together are too large."""
    oldest = "SELECT id FROM runs WHERE exchanges > 0 AND dropped IS NULL AND status <> 'running'"
    expired, most = f"{oldest} AND started < ? ORDER BY started LIMIT", limits.max_mb * 1_000_000
    before = now - limits.keep_days * DAY
    size, first = db.execute(f"SELECT bytes, ({expired} 1) FROM exchange_size", (before,)).fetchone()
    if first is None and size <= most:
        return
    for (run,) in db.execute(f"{expired} ?", (before, MOST_EXPIRED)).fetchall():
        _drop(db, [run], "keep_days")
    while db.execute("SELECT bytes FROM exchange_size").fetchone()[0] > most:
        found = db.execute(f"{oldest} ORDER BY started LIMIT 1").fetchone()
        if found is None:
            return
        _drop(db, [found[0]], "max_mb")


def _drop(db: Database, runs: list[str], reason: str = "") -> None:
    where = f"run IN ({_marks(runs)})"
    kept = db.execute(f"SELECT setup, history, answer FROM exchanges WHERE {where}", runs).fetchall()
    if kept:
        db.execute(f"DELETE FROM exchanges WHERE {where}", runs)
        size = _release(db, (bytes(digest) for row in kept for digest in row[:2]))
        _resize(db, -size - sum(_exchange_size(row[2]) for row in kept))
    if reason:
        db.execute(f"UPDATE runs SET dropped = ? WHERE id IN ({_marks(runs)})", [reason, *runs])


# -- reading


def read(db: Database, run_id: str) -> list[Exchange]:
    """Read the exchanges of a run."""
    found = db.execute(
        "SELECT call, path, agent, request, attempt, purpose, model, setup, history, begun, ended, first_token, answer"
        " FROM exchanges WHERE run = ? ORDER BY number",
        (run_id,),
    ).fetchall()
    objects = _Objects(db)
    exchanges: list[Exchange] = []
    try:
        for row in found:
            facts, setup = objects.setup(row[7])
            sent = objects.sent(setup, row[8])
            exchanges.append(exchange_from(RequestPlace(run_id, *row[:6]), row[6], sent, row[12], row[9:12], facts))
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"what run {run_id!r} sent can't be read: {first_fault(error)[:200]}",
            hint="It was written by another version, or it is damaged.",
        ) from error
    return exchanges


class _Objects:
    """Reads objects, each once."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._setups: dict[bytes, tuple[Any, dict[str, Any]]] = {}
        self._nodes: dict[bytes, tuple[bytes, Any]] = {}
        self._messages: dict[bytes, Any] = {}

    def setup(self, digest: bytes) -> tuple[Any, dict[str, Any]]:
        found = self._setups.get(digest)
        if found is None:
            links, body = self._object(digest)
            found = facts_and_setup(body, [self._object(link)[1] for link in links])
            self._setups[digest] = found
        return found

    def sent(self, setup: dict[str, Any], head: bytes) -> SentRequest:
        from llm_do.runtime.record.canonical_messages import canonical_text
        from llm_do.runtime.record.sent_request import SentRequest, request_key

        digests: list[str] = []
        messages: list[Any] = []
        digest = head
        while digest:
            if digest not in self._nodes:
                links, _ = self._object(digest)
                self._nodes[digest] = links[1] if len(links) > 1 else b"", self._message(links[0])
            digests.append(digest.hex())
            digest, message = self._nodes[digest]
            messages.append(message)
        digests.reverse()
        messages.reverse()
        key = request_key(canonical_text(setup), head.hex())
        return SentRequest(setup, messages, key, digests)

    def _message(self, digest: bytes) -> Any:
        if digest not in self._messages:
            self._messages[digest] = json.loads(self._object(digest)[1])
        return self._messages[digest]

    def _object(self, digest: bytes) -> tuple[list[bytes], str]:
        row = self._db.execute("SELECT links, body FROM objects WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise StoreError(
                "a part of what a model was sent is missing from the store", hint="The store is damaged, or was edited."
            )
        return _links(row[0]), row[1]
