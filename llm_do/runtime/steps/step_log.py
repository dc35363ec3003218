"""`StepLog`: what an attempt at a durable run knows of earlier ones, and what it has done itself.

A step that was finished in an earlier attempt answers out of the log. One that wasn't is *live*, and no live step
begins before every finished one has been replayed: else a branch could overtake another one that is still being
replayed, and code that isn't the same twice would go unnoticed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from llm_do.errors import ReplayError
from llm_do.runtime.record.store.store_writes import LargeStep, StepKind, StepRow
from llm_do.runtime.record.store.stored_questions import call_text
from llm_do.runtime.record.store.unreadable_data import reading
from llm_do.runtime.steps.inner_calls import is_below
from llm_do.runtime.steps.rehearsal import Rehearsal
from llm_do.text.json_data import json_text
from llm_do.text.large_data.conversion import is_large, json_parts

__all__ = ["PATIENCE", "StepLog", "replay_error"]


def _forget(row: StepRow | LargeStep) -> None:
    """Keep nothing."""


PATIENCE = 5.0
"""Seconds without any progress after which what hasn't been replayed is taken for what the code no longer comes to."""


class StepLog:
    """The steps of one attempt.

    Args:
        run_id: The run.
        rows: The steps of earlier attempts.
        keep: Queues a step for the store's next batch.
        written: Waits until what is queued is on disk.
        seal: Hides the secrets of a step's data.
        unseal: Puts them back.
        rehearsal: What the run leaves for a replay that follows at once, or that replay; None in any other run.
    """

    def __init__(
        self,
        run_id: str,
        rows: Iterable[StepRow],
        keep: Callable[[StepRow | LargeStep], None],
        written: Callable[[], Awaitable[None]],
        seal: Callable[[str], str],
        unseal: Callable[[str], str],
        rehearsal: Rehearsal | None = None,
    ) -> None:
        self._run_id = run_id
        self.rehearsal = rehearsal
        self._known = {row.key: row for row in rows if row.kind != "call"}
        self._children: dict[tuple[str, str, str], list[str]] = {}
        self._inner: dict[str, list[str]] = {}
        self._numbers: set[str] = set()
        for row in rows:
            if row.kind == "call":
                with reading(f"step {row.key} of run {run_id}"):
                    note = json.loads(row.data)
                    self._children.setdefault((note["parent"], note["name"], note["input"]), []).append(row.key)
                    self._inner.setdefault(note["step"], []).append(row.key)
                self._numbers.add(row.key)
        self._remaining = {row.key for row in self._known.values() if row.done}
        self._moved = asyncio.Event()
        self._used: dict[str, int] = {}
        self._keep = keep
        self._written = written
        self._unwritten = False
        self._seal = seal
        self._unseal = unseal

    @property
    def replays(self) -> bool:
        """Whether steps of earlier attempts haven't been replayed yet."""
        return bool(self._remaining)

    def puts_off_writing(self) -> bool:
        """Whether what is queued needn't be on disk yet: what is replayed is, and `live` waits for the rest."""
        self._unwritten |= self.replays
        return self.replays

    @property
    def done(self) -> int:
        """How many steps earlier attempts have finished."""
        return sum(row.done for row in self._known.values())

    def unfinished(self, kind: StepKind) -> dict[str, Any]:
        """The data of the steps of a kind that were in flight when the run was stopped, by key."""
        return {row.key: self._read(row) for row in self._known.values() if row.kind == kind and not row.done}

    def replay(self, key: str) -> Mapping[str, Any] | None:
        """What a step came to in an earlier attempt; None if it hasn't ended."""
        row = self._known.get(key)
        if row is None or not row.done:
            return None
        self._remaining.discard(key)
        self._moved.set()
        return self._read(row)

    def in_flight(self, key: str) -> Mapping[str, Any] | None:
        """What was kept of a step that had begun when the run was stopped; None if it hadn't begun, or had ended."""
        row = self._known.get(key)
        return None if row is None or row.done else self._read(row)

    async def live(self, key: str, what: Callable[[], str]) -> None:
        """Wait until every finished step has been replayed, so that a step may begin; `what` describes it.

        Those of calls that the step's own code made, before the run was stopped, are replayed by that code.

        Raises:
            ReplayError: The code no longer comes to some of them, or the step is new in a replay of the whole run.
        """
        if self.rehearsal is not None and self.rehearsal.replays:
            await self._refuse(what, self.rehearsal)
        own = self._inner.get(key, ())
        while any(not is_below(each, own) for each in self._remaining):
            self._moved.clear()
            before = len(self._remaining)
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._moved.wait()
            except TimeoutError:
                if len(self._remaining) == before:
                    raise self.unreached() from None
        if self._unwritten:
            self._unwritten = False
            await self._written()

    async def _refuse(self, what: Callable[[], str], rehearsal: Rehearsal) -> None:
        """Refuse a step that the whole run didn't come to, unless it is cancelled first, as it may have been then."""
        while rehearsal.cancelled:
            self._moved.clear()
            try:
                async with asyncio.timeout(rehearsal.patience):
                    await self._moved.wait()
            except TimeoutError:
                break
        raise replay_error(self._run_id, f"it comes to {what()}, which it didn't before")

    def drop_inner(self, key: str) -> list[Mapping[str, Any]]:
        """Count the steps of calls that a step's code made as replayed, since it doesn't run again.

        Returns:
            What the requests among them came to.
        """
        own = self._inner.get(key, ())
        made = [row for name, row in self._known.items() if name in self._remaining and is_below(name, own)]
        self.drop_below(own)
        return [self._read(row) for row in made if row.kind == "request"]

    def close(self) -> None:
        """Keep nothing more: the attempt is suspended, and what its code does while it ends isn't what happened."""
        self._keep = _forget

    async def begin(self, key: str, kind: StepKind, data: Mapping[str, Any]) -> None:
        """Keep that a step begins; returns once it is on disk."""
        self._keep(self._row(key, kind, data, done=False))
        await self._written()

    def end(self, key: str, kind: StepKind, data: Mapping[str, Any]) -> None:
        """Keep what a step has come to, with the events and states of the same moment.

        It is written soon, and before anything that follows from it: a request waits for what is queued, and so does a
        tool with effects.
        """
        self._keep(self._row(key, kind, data, done=True))

    async def finish(self, key: str, kind: StepKind, data: Mapping[str, Any]) -> None:
        """Keep what a step has come to; returns once it is on disk, for code that may do anything then."""
        self.end(key, kind, data)
        await self._written()

    def drop_below(self, calls: Collection[str]) -> None:
        """Count the steps of calls that a step made itself as replayed: they aren't made again."""
        if calls:
            self._remaining = {key for key in self._remaining if not is_below(key, calls)}
            self._moved.set()

    def numbered(self, base: str) -> str:
        """A key for what happens one after the other at the same place: the first, the second and so on."""
        key = self._next_key(base)
        self._used[base] = self._used.get(base, 0) + 1
        return key

    def has_finished(self, base: str) -> bool:
        """Whether the step that gets the next key of a place has been finished by an earlier attempt."""
        row = self._known.get(self._next_key(base))
        return row is not None and row.done

    def _next_key(self, base: str) -> str:
        number = self._used.get(base, 0) + 1
        return base if number == 1 else f"{base}/{number}"

    def child(self, parent: str, name: str, input: object, digest: str, number: int, step: str) -> tuple[str, int]:
        """The id of a call that Python makes: that of an earlier attempt if it was the same call, else a new one.

        Calls are found by what they are, not by their order, since the order of branches that run at the same time
        depends on the time.

        Args:
            parent: The caller's id.
            name: What is called.
            input: Its input as JSON data.
            digest: The digest of the input.
            number: The number that the caller has counted up to.
            step: The key of the step whose code makes the call; empty if it is none's.

        Returns:
            The key within the caller, and the number up to which the caller has counted now.

        Raises:
            ReplayError: The call is new in a replay of the whole run.
        """
        rehearsal = self.rehearsal
        known = self._children.get((parent, name, digest))
        if known:
            call_id = known.pop(0)
        else:
            if rehearsal is not None and rehearsal.replays and not rehearsal.cancelled:
                difference, block = rehearsal.explain_call(parent, name, input)
                raise replay_error(self._run_id, f"it {difference}", block=block)
            number += 1
            while f"{parent}.{number}" in self._numbers:
                number += 1
            call_id = f"{parent}.{number}"
            self._numbers.add(call_id)
            note = json.dumps({"parent": parent, "name": name, "input": digest, "step": step})
            self._keep(StepRow(call_id, "call", done=True, data=note))
        if rehearsal is not None:
            rehearsal.note_call(parent, name, call_id, input)
        return call_id.removeprefix(f"{parent}."), number

    def _row(self, key: str, kind: StepKind, data: Mapping[str, Any], *, done: bool) -> StepRow | LargeStep:
        if is_large(data):
            return LargeStep(key, kind, done, lambda: self._seal("".join(json_parts(data))))
        return StepRow(key, kind, done, self._seal(json_text(data)))

    def _read(self, row: StepRow) -> Any:
        with reading(f"step {row.key} of run {self._run_id}"):
            return json.loads(self._unseal(row.data))

    def unreached(self) -> ReplayError:
        """The error of a run whose code no longer comes to steps that were finished."""
        count = len(self._remaining)
        steps = "a step that was finished" if count == 1 else f"{count} steps that were finished, the first of them"
        first = _describe(min(self._remaining), self._known, self._read).removeprefix(f"{self._run_id}.")
        return replay_error(self._run_id, f"it no longer comes to {steps}{':' if count == 1 else ''} {first}")


def replay_error(
    run_id: str, difference: str, *, agent_path: str | None = None, block: str | None = None
) -> ReplayError:
    """The error of a run that isn't the same again; `difference` says what isn't, with `it` for the run's code."""
    error = ReplayError(
        f"run {run_id} can't be resumed: {difference}",
        hint="What decides which calls are made must be the same again: let times, random numbers, files and requests"
        " go through `ctx.step`, and don't change the code meanwhile.",
        agent_path=agent_path,
        block=block,
    )
    error.difference = difference
    return error


_REQUEST = re.compile(r"/r(\d+)(?:/[a-z_]+)?(?:/\d+)?$")
_CODE = re.compile(r"/s/(.+)/[0-9a-f]{16}(?:/\d+)?$", re.DOTALL)


def _describe(key: str, known: Mapping[str, StepRow], read: Callable[[StepRow], Any]) -> str:
    """A finished step as people know it, such as `request 2 of main/writer`; its key if it was kept without a path."""
    row = known[key]
    data = read(row)
    path = data.get("path")
    if path is None:
        return key
    if row.kind == "tool":
        outcome = data["outcome"]
        return f"the call {call_text({**outcome, 'args': outcome['args'] or {}})} of {path}"
    if row.kind == "request" and (found := _REQUEST.search(key)):
        return f"request {found[1]} of {path}"
    if row.kind == "code" and (found := _CODE.search(key)):
        return f"the step {found[1]!r} of {path}"
    return f"the call of {path}"
