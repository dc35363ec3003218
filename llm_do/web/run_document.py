"""`run_document`: a recorded run as one plain JSON document, which the page draws from, in a file and served.

Events and messages are as the record has them, so secrets are redacted already. A message that many requests have in
common is in the document once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.exchanges import Exchange
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.ui.approval.changed_files import changed_rows
from llm_do.ui.live.sent_requests import SentRequests

__all__ = ["VERSION", "document_text", "run_document", "stored_document"]

VERSION = 1
"""The version of the document's form."""

MOST_DIGITS = 2**53
"""Numbers from here on are not exact in JavaScript."""

_LONG_NUMBER = re.compile(r"[\s:,\[]-?\d{16,}[\s,}\]]|NaN|Infinity")
"""What may be a number that a browser can't read exactly, or not at all."""

_ACTIVE = re.compile("[<>&\u007f-\u009f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that could end a script element, begin a comment in one, or change on their way through a file."""


def run_document(
    run: RunRecord,
    observations: Iterable[Observation],
    exchanges: Sequence[Exchange],
    *,
    project: str = "",
    files: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Describe a recorded run.

    Args:
        run: The run.
        observations: Its events.
        exchanges: Its exchanges.
        project: The name of its project.
        files: The files that it changed, as `changed_rows` returns them.

    Returns:
        `run` as `llm-do runs list --format json` has it; `events`; `files`; `requests`, each with the index of its
        `setup` in `setups`, and of its last message in `messages`, where each message names the one before it.

    Example:
        >>> run_document(RunRecord("7f3a", "completed", "main", None, None, 0.0), [], [])["requests"]
        []
    """
    requests, events = _Requests(), [dict(each.data) for each in observations]
    return {
        "version": VERSION,
        "project": project,
        "run": {**run.to_dict(), "attempt": run.attempt},
        "events": events,
        "files": [*files],
        "requests": requests.read(SentRequests(exchanges, events)),
        "setups": requests.setups,
        "messages": requests.messages,
    }


async def stored_document(
    store: SqlStore, run: RunRecord, *, project: str = "", root: Path | None = None
) -> dict[str, Any]:
    """Describe a run of a store, and of the project of that name in a folder, where the files are that it changed."""
    recorded = await store.observations(Filter(run_id=run.id))
    files = await run_in_worker(changed_rows, root, run.id) if root is not None else ()
    return run_document(run, recorded, await store.exchanges(run.id), project=project, files=files)


class _Requests:
    """The requests of a run; setups and messages that they have in common are kept once."""

    def __init__(self) -> None:
        self.setups: list[Any] = []
        self.messages: list[tuple[int, Any]] = []
        self._setups: dict[str, int] = {}
        self._messages: dict[str, int] = {}

    def read(self, requests: SentRequests) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for data, exchange in zip(requests.to_data(), requests.exchanges, strict=True):
            del data["new"]
            sent, last = exchange.sent, -1
            for digest, message in zip(sent.digests, sent.messages, strict=True):
                if digest not in self._messages:
                    self._messages[digest] = len(self.messages)
                    self.messages.append((last, message))
                last = self._messages[digest]
            times = {"begun": exchange.begun, "first_token": exchange.first_token, "ended": exchange.ended}
            found.append({**data, **times, "setup": self._setup(sent.setup), "last_message": last})
        return found

    def _setup(self, setup: Any) -> int:
        text = json.dumps(setup)
        if text not in self._setups:
            self._setups[text] = len(self.setups)
            self.setups.append(setup)
        return self._setups[text]


def document_text(data: object) -> str:
    r"""JSON data as text that may stand in a script element, whatever strings it holds.

    Numbers that a browser can't read exactly become `{"$number": "..."}`.

    Example:
        >>> print(document_text({"text": "</script><!--", "id": 12345678901234567890}))
        {"text":"\u003c/script\u003e\u003c!--","id":{"$number":"12345678901234567890"}}
    """
    text = _dump(data)
    if _LONG_NUMBER.search(text):
        text = _dump(_exact(data))
    return _ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _dump(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _exact(data: object) -> object:
    """Data whose numbers a browser reads as they are."""
    if isinstance(data, dict):
        return {key: _exact(value) for key, value in cast("dict[str, object]", data).items()}
    if isinstance(data, list | tuple):
        return [_exact(value) for value in cast("list[object]", data)]
    if isinstance(data, float) and not math.isfinite(data):
        return {"$number": str(data)}
    if isinstance(data, int) and not isinstance(data, bool) and abs(data) > MOST_DIGITS:
        return {"$number": str(data)}
    return data
