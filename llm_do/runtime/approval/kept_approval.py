"""`KeptApproval`: the question about one call of a durable run, kept until it is answered in this process or another.

The answer is bound to the step, to the call's arguments, and to the content that its diff was made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.approval.pending_call import PendingCall
from llm_do.runtime.record.events.tool_events import ApprovalRequestedEvent, ApprovalResolvedEvent
from llm_do.runtime.record.store.stored_questions import QuestionRow
from llm_do.runtime.steps.run_questions import AskHere, OpenQuestion, StepQuestions, is_withdrawn
from llm_do.runtime.tools.traits import Preview
from llm_do.text.canonical_json import digest as digest_of

__all__ = ["KeptApproval", "answer_data", "covers_identical", "decision_of"]

_PLAIN = tuple(field.name for field in fields(ApprovalRequest) if field.name not in ("id", "call", "number", "total"))
"""The fields of a request that are kept."""


class KeptApproval:
    """The question about one call.

    Args:
        call: The call.
        kept: The questions about its step.
        info: The call as rules see it.
        decision: What made policy ask.
        digest: The digest of the call.
        accepted: The answers that are accepted.
    """

    def __init__(
        self,
        call: PendingCall,
        kept: StepQuestions,
        info: ToolCallInfo,
        decision: Decision,
        digest: str,
        accepted: tuple[Answer, ...],
    ) -> None:
        self.call = call
        self._kept = kept
        self._run = kept.run
        self.info = info
        self.decision = decision
        self.digest = digest
        self._accepted = accepted
        self._preview: Preview | None = None
        self._request: ApprovalRequest | None = None
        self.asked: OpenQuestion | None = None

    @property
    def basis(self) -> str | None:
        """What the shown change was made from."""
        return (self._preview.basis or None) if self._preview is not None else None

    @property
    def _shown(self) -> str:
        return digest_of([self.digest, self.basis])

    async def answered(self) -> dict[str, Any] | None:
        """The answer that has been given to exactly this question, or for all calls that are the same."""
        self._preview = await self.call.preview(self.info)
        row = self._run.find(self._kept.step, self._shown)
        if row is None or row.answer is None:
            covering = self._covering()
            if covering is None:
                return None
            await self.put()
            assert self.asked is not None
            row = await self._run.settle(self.asked.row, covering)
        self.asked = OpenQuestion(row)
        return self._run.answer(row)

    def _covering(self) -> dict[str, Any] | None:
        """The answer to the same call of the same response, if it holds for this one too."""
        for row in self._run.answered():
            if row.kind != "approval" or row.key.startswith(f"{self._kept.step}/") or is_withdrawn(row):
                continue
            request, answer = self._run.request(row), self._run.answer(row)
            same = request.get("response") == self._kept.response and request.get("digest") == self.digest
            if same and answer is not None and covers_identical(request, answer):
                return {**answer, "answer": "deny" if answer["answer"] == "deny" else "once"}
        return None

    async def put(self) -> None:
        """Keep the question, if it isn't, and emit that it is asked."""
        row = self._run.find(self._kept.step, self._shown)
        request = await self.call.request("", self.info, self.decision, self.digest, self._accepted, self._preview)
        if row is None:
            await self._kept.live()
            data = {name: getattr(request, name) for name in _PLAIN}
            data |= {
                "response": self._kept.response,
                "basis": self.basis,
                "joined": self.call.traits.facts.repeatable,
                "answers": [each for each in request.answers if each != "unanswered"],
            }
            row = self._run.put(self._kept.step, self._shown, "approval", data)
        self._request = replace(request, id=row.id, kept=True)
        if self.asked is None:
            self.asked = OpenQuestion(row)
        elif self.asked.row.key != row.key:
            self._run.replace(self.asked, row)
        self._emit_requested(row)

    async def refresh(self) -> ApprovalRequest:
        """What a person is shown when the question's turn comes; it is another question if the content has changed."""
        preview = await self.call.preview(self.info)
        if (preview.basis if preview is not None else "") != (self.basis or ""):
            self._preview = preview
            await self.put()
        assert self._request is not None
        return self._request

    async def wait(self, ask: AskHere | None) -> dict[str, Any]:
        """Wait for the answer, given by whoever is asked here, or elsewhere."""
        assert self.asked is not None
        row = await self._run.resolve(self.asked, ask)
        self.asked.row = row
        answer = self._run.answer(row)
        assert answer is not None
        return answer

    async def settle(self, answer: ApprovalDecision) -> ApprovalDecision:
        """Keep a person's answer; returns the one that counts, which another process may have given before."""
        if answer.answer == "unanswered" or self.asked is None:
            return answer
        row = await self._run.settle(self.asked.row, answer_data(answer))
        return decision_of(self._run.answer(row) or {})

    def note(self, decision: Decision) -> None:
        """Keep what allowed a call that is no step: when the run is resumed, the call is made again."""
        for row in self._asked_before():
            self._run.withdraw(row)
            self._emit_cancelled(row)
        if not self._kept.is_step and decision.effect == "allow":
            request = {"agent_path": self.info.path, "tool_name": self.info.tool_name, "args": self.info.args}
            answer = {"answer": "once", "source": decision.source, "reason": decision.reason}
            self._run.put(self._kept.step, self._shown, "approval", {**request, "recorded": True}, answer)

    def close(self) -> None:
        """Ask no longer: the call has ended otherwise."""
        if self.asked is not None:
            self._run.withdraw(self.asked.row)

    def use(self) -> None:
        """Use the answer."""
        if self.asked is not None:
            self._run.use(self.asked.row)

    # -- events: each question has one that it was asked and one that it was answered, once over all attempts

    def emit_resolved(self, effect: str, by: str) -> None:
        """Emit how the question was answered."""
        if self.asked is not None:
            self._emit_requested(self.asked.row)
            self._emit(self.asked.row, 2, ApprovalResolvedEvent, decision=effect, by=by)

    def _emit_requested(self, row: QuestionRow) -> None:
        for before in self._asked_before(row):
            self._emit_cancelled(before)
        self._emit(row, 1, ApprovalRequestedEvent, **self._asked_data())

    def _asked_before(self, row: QuestionRow | None = None) -> list[QuestionRow]:
        """The questions about the call that were asked before one of them, or all that were asked."""
        rows = [each for each in self._run.of_step(self._kept.step) if row is None or each.number < row.number]
        return [each for each in rows if "recorded" not in self._run.request(each)]

    def _emit_cancelled(self, row: QuestionRow) -> None:
        self._emit(row, 1, ApprovalRequestedEvent, **self._asked_data())
        self._emit(row, 2, ApprovalResolvedEvent, decision="deny", by="cancelled")

    def _asked_data(self) -> dict[str, Any]:
        return {"args": self.info.args, "rule": self.decision.rule, "reason": self.decision.reason}

    def _emit(self, row: QuestionRow, stage: int, kind: Any, **data: Any) -> None:
        if self._run.events.get(row.key, 0) < stage:
            self._run.events[row.key] = stage
            self.call.emit(kind, tool_call_id=self.call.tool_call_id, tool_name=self.info.tool_name, **data)


def answer_data(answer: ApprovalDecision) -> dict[str, Any]:
    """An answer as JSON data."""
    return {"answer": answer.answer, "note": answer.note, "pattern": answer.pattern}


def decision_of(data: Mapping[str, Any]) -> ApprovalDecision:
    """The answer that `answer_data` made; one that was withdrawn isn't one."""
    return ApprovalDecision(data["answer"], note=data.get("note") or "", pattern=data.get("pattern"))


def covers_identical(request: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether an answer is for all identical calls of the response."""
    return answer["answer"] in ("all", "deny") or (answer["answer"] == "once" and bool(request.get("joined")))
