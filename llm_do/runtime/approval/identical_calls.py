"""`IdenticalCalls`: the calls of one response that are the same, and answers that hold for more than one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from llm_do.runtime.approval.broker import ApprovalDecision

__all__ = ["IdenticalCalls"]


@dataclass(slots=True)
class _Grant:
    answer: ApprovalDecision
    left: int


@dataclass(slots=True, eq=False)
class IdenticalCalls:
    """The tool calls of a response that haven't been decided about, and what was answered for several at once.

    An answer is bound to the digest that was asked about: a call whose arguments have changed since isn't covered.
    """

    _waiting: dict[str, str] = field(default_factory=dict[str, str])
    _grants: dict[str, _Grant] = field(default_factory=dict[str, _Grant])

    def begin(self, calls: Iterable[tuple[str, str]]) -> None:
        """Begin a response, with the id of each call and what makes it the same as another one."""
        self._waiting = dict(calls)
        self._grants = {}

    def count(self, tool_call_id: str) -> int:
        """How many calls that are the same as this one still wait, itself included."""
        same = self._waiting.get(tool_call_id)
        return 1 if same is None else sum(each == same for each in self._waiting.values())

    def leave(self, tool_call_id: str) -> None:
        """Note that a call waits no longer."""
        self._waiting.pop(tool_call_id, None)

    def grant(self, digest: str, answer: ApprovalDecision, calls: int) -> None:
        """Let an answer hold for further calls with this digest."""
        if calls > 0:
            self._grants[digest] = _Grant(answer, calls)

    def take(self, digest: str) -> ApprovalDecision | None:
        """Use an answer that was given for a call with this digest, if there is one left."""
        grant = self._grants.get(digest)
        if grant is None:
            return None
        grant.left -= 1
        if grant.left == 0:
            del self._grants[digest]
        return grant.answer
