"""What a chat remembers from turn to turn: a thread, or the last result if nothing is recorded."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import RunFilter
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import shell_word
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.project.project import Project
    from llm_do.runtime.record.results import ExecutionContext, RunResult
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.session.run_options import EntryOptions

__all__ = ["Memory"]


class Memory:
    """The conversation so far.

    Args:
        project: The project.
        options: The options of its runs, which may name a thread and a user.
        record: Whether it is kept in a thread.
        same: Options with which other commands find the same project, for what is suggested.
    """

    def __init__(self, project: Project, options: EntryOptions, *, record: bool, same: str) -> None:
        self._project = project
        self._options = options
        self._same = same
        self._user = options.get("user_id")
        self._requested = options.get("thread_id")
        self._keeps = project.record and record
        self.thread: str | None = None
        self._context: ExecutionContext | None = None
        self._marks: list[int | ExecutionContext | None] = []

    async def open(self, *, last: bool) -> str:
        """Start or continue; returns a line that says which."""
        if not self._keeps:
            if last:
                raise UsageError("there is nothing recorded to continue", hint="Leave out --no-record.")
            return "this conversation is not recorded"
        if last:
            known = await self._store().threads(self._user, limit=1)
            if not known:
                raise UsageError("there is no conversation to continue", hint="Start one with `llm-do chat`.")
            self._requested = known[0].id
        self.thread = self._requested or f"chat-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        length = await self._length() if self._requested else 0
        return f"thread {self.thread}" + (f", {with_count(length, 'message')}" if length else "")

    async def switch(self, thread: str) -> int:
        """Continue another thread; returns the number of its messages."""
        if not self._keeps:
            raise UsageError("this conversation has no thread", hint="Leave out --no-record.")
        self.thread = self._requested = thread
        self._marks.clear()
        return await self._length()

    async def waiting(self) -> str | None:
        """What is said of a durable run on the thread that has stopped, and takes no turn until it is dealt with."""
        if self.thread is None or self.thread != self._requested:
            return None  # nothing has run on a new thread
        store = self._store()
        await store.recover()
        filter = RunFilter(self.thread, ("stopped", "suspended"), user_id=self._user)
        found = await store.runs(filter=filter, limit=1)
        if not found:
            return None
        id = shell_word(short_run_id(found[0].id))
        why = "waits for an answer" if found[0].status == "suspended" else "was stopped"
        return (
            f"run {id} on this thread {why}, and no turn can follow before it has ended: "
            f"continue it with `llm-do resume{self._same} {id}`, or drop it with `llm-do runs drop{self._same} {id}`"
        )

    async def mark(self) -> None:
        """Remember where the next turn starts, for `undo`."""
        self._marks.append(self._context if self.thread is None else await self._length())

    def options(self) -> EntryOptions:
        """The options of the next turn's run."""
        if self.thread is not None:
            return {**self._options, "thread_id": self.thread}
        return {**self._options, "execution_context": self._context}

    def keep(self, result: RunResult) -> None:
        """Take a turn's result, good or bad: its history can be continued."""
        if self.thread is None and result.execution_context.messages:
            self._context = result.execution_context

    async def undo(self) -> bool:
        """Undo the last turn; False if there is none."""
        if not self._marks:
            return False
        mark = self._marks.pop()
        if self.thread is None:
            self._context = mark if not isinstance(mark, int) else None
        elif isinstance(mark, int):
            from llm_do.threads.managers.pydantic_conversations import Conversations

            record = await self._store().thread(self.thread, self._user)
            if record is not None and record.length > mark:
                conversations = Conversations(self._store(), self._user)
                await conversations.branch(self.thread, at=mark, expected_revision=record.revision)
        return True

    async def messages(self) -> list[ModelMessage]:
        """The messages of the conversation."""
        if self.thread is None:
            return list(self._context.messages) if self._context is not None else []
        record = await self._store().thread(self.thread, self._user)
        kept = await self._store().history(record.head) if record is not None else []
        return [each.message for each in kept]

    async def state(self) -> dict[str, Any]:
        """The state of the thread and of the toolkits, as JSON data."""
        data: dict[str, Any] = {"thread": self.thread}
        record = await self._store().thread(self.thread, self._user) if self.thread is not None else None
        if record is not None:
            data |= {"messages": record.length, "state": record.state, "toolkits": dict(record.toolkits)}
        elif self._context is not None:
            data |= {key: value for key, value in self._context.to_dict().items() if key != "messages"}
            data["messages"] = len(self._context.messages)
        return data

    async def _length(self) -> int:
        record = await self._store().thread(self.thread, self._user) if self.thread is not None else None
        return record.length if record is not None else 0

    def _store(self) -> ThreadStore:
        from llm_do.threads.opened_stores import open_store

        # A store without a reference to it is closed.
        self._opened = open_store(self._project)
        return self._opened
