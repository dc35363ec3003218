"""`Approver`: decides about tool calls, and has questions answered by what was saved, by the mode or by a person.

The decision itself is `llm_do.policy.decision`, a pure function; what is here does its reading, asking and bookkeeping.
"""

from __future__ import annotations

import asyncio
import datetime
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from llm_do.concurrency.event_loops import PerLoop
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import AbortedError, StoreError
from llm_do.formats.lock import FILE, Lock, call_entry, rule_entry
from llm_do.policy.decision import answer_automatically, decide, deny_without_approver
from llm_do.policy.digest import call_digest
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import Pattern, PatternError
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import CALLS, Decision, Effect, ToolCallInfo
from llm_do.project.faults import find_fault
from llm_do.project.project import RuntimeSettings, carried_approval
from llm_do.runtime.approval import saved_approvals
from llm_do.runtime.approval.broker import (
    ApprovalDecision,
    ApprovalMode,
    ApprovalRequest,
    Broker,
    Question,
    RunApprovalPolicy,
)
from llm_do.runtime.approval.kept_answers import answer_frozen, answer_kept, lasting_answers
from llm_do.runtime.approval.kept_approval import KeptApproval
from llm_do.runtime.approval.pending_call import PendingCall
from llm_do.runtime.approval.person_answers import granted, person_decision
from llm_do.runtime.approval.saved_approvals import SavedApprovals
from llm_do.runtime.record.events.tool_events import ApprovalRequestedEvent, ApprovalResolvedEvent
from llm_do.runtime.steps.run_questions import StepQuestions
from llm_do.runtime.tools.traits import Preview

__all__ = ["ANSWERED", "TRIES", "Approver", "denial_text"]

ANSWERED = frozenset({"remembered", "option", "mode", "person"})
"""The sources of decisions that answer a question."""

TRIES = 3
"""How often a call is decided about whose arguments change meanwhile, before it is denied."""

POLICY_SECONDS = 1.0
"""How long a project's policy function may take; longer is a rejection."""

_EFFECTS: Mapping[str, Effect] = {"approve": "allow", "reject": "deny", "prompt": "ask"}
"""What a policy function may return."""


class Approver:
    """Decides about tool calls for a session, and remembers what a person allowed for that long.

    Args:
        policy: The rules.
        approvals: The mode, and the callback that asks a person.
        function: The project's policy function.
        options: Patterns of calls that are allowed when policy asks.
        settings: When calls of agents and flows require approval.
        root: The project's folder, where answers for good are saved; None saves none.
        lock: The project's lock, whose approvals answer questions too.
        frozen: Whether the lock alone answers.
    """

    def __init__(
        self,
        policy: Policy,
        approvals: RunApprovalPolicy,
        *,
        function: Callable[..., object] | None = None,
        options: Sequence[Pattern] = (),
        settings: RuntimeSettings | None = None,
        root: Path | None = None,
        lock: Lock | None = None,
        frozen: bool = False,
    ) -> None:
        self.policy = policy
        self.saved = SavedApprovals()
        self.session_digests: set[str] = set()
        self.session_rules: list[Rule] = []
        self.granted: list[dict[str, Any]] | None = None
        self._lock = lock or Lock()
        self._frozen = frozen
        self._mode: ApprovalMode = "prompt" if frozen else approvals.mode
        self._function = function
        self.options = () if frozen else tuple(options)
        self.listed_agents: set[str] = set()
        self._settings = settings or RuntimeSettings()
        self._root = root
        callback = None if frozen else approvals.approval_callback
        self._accepted = approvals.accepted
        self._brokers = (
            None if callback is None else PerLoop(partial(Broker, callback, itertools.count(1), self._accepted))
        )
        self.forget()

    def forget(self) -> None:
        """Forget the session's answers, and read the saved ones anew."""
        self.session_digests.clear()
        self.session_rules.clear()
        if self._root is not None and not self._frozen:
            self.saved = saved_approvals.load_saved_approvals(self._root)

    async def approve(self, call: PendingCall) -> tuple[Decision, ToolCallInfo]:
        """Decide about a call and have a question answered; returns the decision and the call it holds for.

        What is approved is what runs: where other code ran meanwhile and changed the arguments, or the content whose
        change was shown, it is decided again.

        Raises:
            BoundToFailError: The call needs approval, and would fail with it.
        """
        for _ in range(TRIES):
            info = call.info()
            waits = self._function is not None or call.requirement is not None
            digest = call_digest(info) if waits else ""
            decision = await self.decide(call, info)
            if decision.effect == "ask":
                await call.check(info)
                waits, digest = True, digest or call_digest(info)
                decision = await self._answer(call, info, decision, digest)
            if decision.effect == "deny" or not waits:
                return decision, info
            again = call.info()
            same = call_digest(again) == digest and again.restrictive == info.restrictive
            if same and (decision.basis is None or await self._same_basis(call, again, decision.basis)):
                return decision, again
        reason = f"{call.tool_name} is denied: what it would do changed each time it was decided about"
        return Decision("deny", reason, source="blocked"), call.info()

    async def _same_basis(self, call: PendingCall, info: ToolCallInfo, basis: str) -> bool:
        preview = await call.preview(info)
        return preview is not None and preview.basis == basis

    async def decide(self, call: PendingCall, info: ToolCallInfo) -> Decision:
        """Decide about a call by everything that has a say in it."""
        kind = call.traits.facts.kind
        effect, fault = await self._function_effect(call, info)
        decision = decide(
            info,
            self.policy,
            metadata=call.traits.approval or carried_approval(self._settings, info.tool, kind),
            toolset=call.own_decision(info),
            function=effect,
            calls_require_approval=kind in CALLS and _requires_approval(self._settings, info),
            default_reason=call.traits.facts.reason,
        )
        if fault is None or decision.source != "policy":
            return decision
        # There was no decision: the run ends as one in which no one could be asked.
        return replace(decision, reason=f"{info.tool_name} is denied: {fault}", source="unattended")

    def automatic_answer(
        self, info: ToolCallInfo, decision: Decision, digest: str, kept: StepQuestions | None = None
    ) -> Decision | None:
        """What answers a question without a person: a saved or locked answer, an option, the mode; None for nothing.

        Answers for the session hold for a durable run as long as it lasts, in whichever process.
        """
        today = datetime.datetime.now(tz=datetime.UTC).date()
        saved = {**self._lock.digests(today), **self.saved.digests}
        digests, rules = lasting_answers(kept)
        return answer_automatically(
            decision,
            remembered=digest in self.session_digests or digest in saved or digest in digests,
            options=self.options,
            mode=self._mode,
            call=info,
            rules=(*self.session_rules, *rules, *self.saved.rules, *self._lock.rules(today)),
            place=saved.get(digest),
        )

    async def _function_effect(self, call: PendingCall, info: ToolCallInfo) -> tuple[Effect | None, str | None]:
        """What the project's policy function decides, and its fault: raising, hanging or nonsense is a rejection."""
        if self._function is None:
            return None, None
        name = self.policy.function_name
        timer = asyncio.timeout(POLICY_SECONDS)
        try:
            async with timer:
                result: object = await call_function(self._function, info)
        except BaseException as error:  # noqa: BLE001 (a policy that fails must fail closed)
            reraise_if_cancelled(error)
            if isinstance(error, TimeoutError) and timer.expired():
                fault = f"{name} took longer than {POLICY_SECONDS:g} s"
            else:
                found = find_fault(error, self._root)
                fault = f"{found.after(f'{name} raised')}{found.place}"
        else:
            if result is None or (isinstance(result, str) and result in _EFFECTS):
                return (None if result is None else _EFFECTS[result]), None
            known = ", ".join(map(repr, _EFFECTS))
            fault = f"{name} returned {result!r}, which is none of {known} or None"
        call.warn(f"{fault}; the call of {info.tool_name} is denied")
        return "deny", fault

    async def _answer(self, call: PendingCall, info: ToolCallInfo, decision: Decision, digest: str) -> Decision:
        """Have a question answered: by a saved answer, an option, the mode, or a person."""
        if call.questions is not None:
            kept = KeptApproval(call, call.questions, info, decision, digest, self._accepted)
            if self._frozen:
                return await answer_frozen(
                    kept,
                    lambda: self.automatic_answer(info, decision, digest) or _unanswered(decision, info, frozen=True),
                )
            return await answer_kept(
                kept,
                self._brokers.get() if self._brokers is not None else None,
                lambda: self.automatic_answer(info, decision, digest, call.questions),
                lambda answer: self._keep(call, info, decision, digest, answer),
            )
        answered = self.automatic_answer(info, decision, digest)
        if answered is not None:
            return answered
        if self._brokers is None:
            return _unanswered(decision, info, frozen=self._frozen)
        broker = self._brokers.get()
        shown: list[Preview] = []

        async def request() -> ApprovalRequest:
            preview = await call.preview(info)
            if preview is not None:
                shown.append(preview)
            return await call.request(broker.next_id(), info, decision, digest, self._accepted, preview)

        question = Question(
            key=(call.run_id, info.path, digest),
            known=lambda: call.answered(digest) or self.automatic_answer(info, decision, digest),
            request=request,
            keep=lambda answer: self._keep(call, info, decision, digest, answer),
        )
        named: dict[str, Any] = {"tool_call_id": call.tool_call_id, "tool_name": info.tool_name}
        call.emit(ApprovalRequestedEvent, **named, args=info.args, rule=decision.rule, reason=decision.reason)
        effect, by = "deny", "cancelled"
        try:
            with call.waiting():
                answer = await broker.ask(question)
            result = answer if isinstance(answer, Decision) else person_decision(info, decision, answer)
            if shown and result.effect == "allow" and result.source == "person":
                result = replace(result, basis=shown[-1].basis or None)
            effect, by = result.effect, result.source
            return result
        except AbortedError:
            by = "person"
            raise
        finally:
            call.emit(ApprovalResolvedEvent, **named, decision=effect, by=by)

    def _keep(
        self, call: PendingCall, info: ToolCallInfo, decision: Decision, digest: str, answer: ApprovalDecision
    ) -> None:
        """Keep an answer for identical calls, for the session, or for good; one that can't be saved still holds for the
        session."""
        call.settle(digest, answer)
        if answer.answer in ("once", "all") and not decision.person_only:
            self._remember(call_entry(info))
        if answer.answer not in ("session", "always") or decision.person_only:
            return
        root = self._root if answer.answer == "always" else None
        pattern = None
        if answer.pattern is not None:
            try:
                pattern = granted(answer.pattern, info.path)
            except PatternError as error:
                call.warn(f"the rule {answer.pattern!r} can't be read, and is not kept: {error.message}")
                return
            if not matches(pattern, info):
                call.warn(f"the rule {answer.pattern!r} doesn't allow the call it was given for, and is not kept")
                return
        self._remember(call_entry(info) if pattern is None else rule_entry(pattern, info.path))
        if pattern is None:
            self.session_digests.add(digest)
        else:
            place = "this session" if root is None else "an answer for good"
            self.session_rules.append(Rule("allow", pattern, pattern.text, place=place))
        if root is None:
            return
        try:
            if pattern is None:
                saved_approvals.add_call(root, info)
            else:
                saved_approvals.add_rule(root, pattern.text)
        except StoreError as error:
            call.warn(f"the answer holds for this session only: {error.message}")

    def _remember(self, entry: dict[str, Any] | None) -> None:
        """Keep what a person has allowed as the entry of a lock, each once, if `granted` is set to a list."""
        if self.granted is not None and entry is not None and entry not in self.granted:
            self.granted.append(entry)


def denial_text(decision: Decision) -> str:
    """What the model reads of a denial."""
    return f"{decision.reason}. Do not retry this call."


def _requires_approval(settings: RuntimeSettings, info: ToolCallInfo) -> bool:
    """Whether the project asks about this call of an agent or flow, or about handing over to one."""
    own = settings.agent_approval_overrides.get(info.tool)
    calls = settings.agent_calls_require_approval
    files = settings.agent_attachments_require_approval
    if own is not None:
        calls = calls if own.calls_require_approval is None else own.calls_require_approval
        files = files if own.attachments_require_approval is None else own.attachments_require_approval
    return calls or (files and bool(info.args.get("attachments")))


def _unanswered(decision: Decision, info: ToolCallInfo, *, frozen: bool) -> Decision:
    """The denial of a call that no one can be asked about, with the entry of a lock that would allow it."""
    denied = deny_without_approver(decision, info)
    if decision.person_only:
        return denied
    if frozen:
        reason = f"{info.tool_name} is denied: the run is frozen, and {FILE} has no approval for it"
        denied = replace(denied, reason=reason)
    return replace(denied, needed=call_entry(info))
