"""`PendingCall`: a tool call that waits for its decision, with what its toolset can say of it.

A toolset's functions are foreign code: where one fails, it allows nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import ToolError
from llm_do.policy.arguments import resolve_by_text
from llm_do.policy.values import Decision, Resolved, ToolCallInfo
from llm_do.project.project import Project
from llm_do.project.registry import Registry
from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.approval.identical_calls import IdenticalCalls
from llm_do.runtime.steps.run_questions import StepQuestions
from llm_do.runtime.tools.approval_requirement import ApprovalRequirement
from llm_do.runtime.tools.traits import Preview, ToolTraits
from llm_do.text.canonical_json import canonical_json
from llm_do.text.exception_text import exception_text

__all__ = ["BoundToFailError", "PendingCall", "makers_of"]

log = logging.getLogger("llm_do.approvals")

DESCRIBE_SECONDS = 10.0
"""How long a toolset may take for a text; other questions wait meanwhile."""


def _ignore_event(kind: object, **_: object) -> None:
    """Events of a call outside a run."""


class BoundToFailError(ToolError):
    """A call would fail, whatever a person says about it."""


@frozen
class PendingCall:
    """A tool call that waits for its decision.

    Args:
        tool_name: The tool as the model knows it, prefix included.
        traits: The tool's traits.
        read: The validated arguments as they are now, as JSON data; a copy each time, since deciding and asking run
            foreign code, which must not change what the tool gets.
        agent: Name of the agent whose model asks.
        path: Its call path.
        depth: Its depth.
        makers: Names of the agents that made it.
        requirement: The approval that the tool itself requires for these arguments.
        run_id: The run.
        call_id: The agent's call.
        tool_call_id: The tool call.
        identical: The calls of its response, those that are the same among them.
        emit: Emits an event of the agent's call.
        warn: Warns whoever watches the run.
        waiting: Surrounds the wait for a person's answer.
        schema: The JSON Schema of its arguments.
        questions: In a durable run, the questions about it, which are kept.
    """

    tool_name: str
    traits: ToolTraits
    read: Callable[[], Mapping[str, Any]]
    agent: str
    path: str
    depth: int = 1
    makers: tuple[str, ...] = ()
    requirement: ApprovalRequirement | None = None
    run_id: str = ""
    call_id: str = ""
    tool_call_id: str = ""
    identical: IdenticalCalls = field(default_factory=IdenticalCalls)
    emit: Callable[..., None] = _ignore_event
    warn: Callable[[str], None] = log.warning
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    questions: StepQuestions | None = None

    def info(self) -> ToolCallInfo:
        """The call as rules see it, with its arguments as they are now."""
        traits, args = self.traits, self.read()
        return ToolCallInfo(
            tool_name=self.tool_name,
            args=args,
            agent=self.agent,
            path=self.path,
            depth=self.depth,
            toolset=traits.toolset,
            tool=traits.tool or self.tool_name,
            kind=traits.facts.kind,
            primary=traits.facts.primary,
            resolved=resolve_by_text(traits.facts, args) if traits.resolve is None else _resolve(traits.resolve, args),
            makers=self.makers,
            reads=tuple(traits.facts.reads),
            writes=tuple(traits.facts.writes),
            new_tool=traits.new_tool,
            new_arguments=traits.new_arguments,
            restrictive=_resolve(traits.restrict, args),
        )

    def own_decision(self, info: ToolCallInfo) -> Decision | None:
        """The stricter of the toolset's own decision and the required approval."""
        required = self.requirement() if self.requirement is not None else None
        own = self._toolset_decision(info)
        if own is None or required is None or own.effect == "allow":
            return required if required is not None else own
        if own.effect == "deny" or required.effect == "deny":
            return own if own.effect == "deny" else required
        return replace(own, required=True)

    def _toolset_decision(self, info: ToolCallInfo) -> Decision | None:
        facts = self.traits.facts
        default = Decision(facts.default, facts.reason) if facts.default is not None else None
        if self.traits.decide is None:
            return default
        try:
            return self.traits.decide(info) or default
        except BaseException as error:  # noqa: BLE001 (what fails must fail closed)
            reraise_if_cancelled(error)
            return Decision("deny", f"its toolset failed to judge the call, {exception_text(error)}")

    @property
    def identical_count(self) -> int:
        """How many identical calls a question is about; calls without effects are joined silently."""
        return 1 if self.traits.facts.repeatable else self.identical.count(self.tool_call_id)

    def settle(self, digest: str, answer: ApprovalDecision) -> None:
        """Take the answer for this call, and let it hold for the identical ones if that is what it says."""
        others = self.identical.count(self.tool_call_id) - 1
        self.identical.leave(self.tool_call_id)
        if answer.answer in ("all", "deny", "unanswered") or (answer.answer == "once" and self.traits.facts.repeatable):
            self.identical.grant(digest, answer, others)

    def answered(self, digest: str) -> ApprovalDecision | None:
        """An answer for an identical call that holds for this one too; it is used up."""
        answer = self.identical.take(digest)
        if answer is not None:
            self.identical.leave(self.tool_call_id)
        return answer

    async def check(self, info: ToolCallInfo) -> None:
        """Raise `BoundToFailError` if the tool can tell that the call would fail, so that no one is asked about it."""
        if self.traits.check is None:
            return
        try:
            async with asyncio.timeout(DESCRIBE_SECONDS):
                await run_in_worker(self.traits.check, info.args)
        except ToolError as error:
            raise BoundToFailError(error.message, hint=error.hint) from error
        except BaseException as error:  # noqa: BLE001 (the question is asked without it)
            reraise_if_cancelled(error)

    async def preview(self, info: ToolCallInfo) -> Preview | None:
        """What the call would change, made in a worker thread, since it reads files; None if its tool doesn't say."""
        if self.traits.preview is None:
            return None
        try:
            async with asyncio.timeout(DESCRIBE_SECONDS):
                return await run_in_worker(self.traits.preview, info.args)
        except BaseException as error:  # noqa: BLE001 (the question is asked without its diff)
            reraise_if_cancelled(error)
            return Preview(f"({exception_text(error)})", "")

    async def request(
        self,
        id: str,
        info: ToolCallInfo,
        decision: Decision,
        digest: str,
        accepted: tuple[Answer, ...],
        preview: Preview | None,
    ) -> ApprovalRequest:
        """The question that a person is asked."""
        lasting = () if decision.person_only else ("session", "always")
        count = self.identical_count
        return ApprovalRequest(
            id=id,
            run_id=self.run_id,
            call_id=self.call_id,
            tool_call_id=self.tool_call_id,
            agent=info.agent,
            agent_path=info.path,
            tool_name=info.tool_name,
            args=info.args,
            reason=decision.reason,
            rule=decision.rule,
            description=await _describe(self.traits.describe, info.args) or "",
            diff=preview.diff if preview is not None else None,
            digest=digest,
            call=info,
            person_only=decision.person_only,
            identical=count,
            defaults=default_arguments(self.schema, info.args),
            in_diff=preview.shown if preview is not None and preview.diff else (),
            answers=tuple(
                each
                for each in accepted
                if (each not in ("session", "always") or each in lasting) and (each != "all" or count > 1)
            ),
        )


def default_arguments(schema: Mapping[str, Any], args: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of arguments that have the default value of their JSON Schema.

    Example:
        >>> schema = {"properties": {"to": {}, "copy": {"default": False}, "count": {"default": 1}}}
        >>> default_arguments(schema, {"to": "ann", "copy": False, "count": True})
        ('copy',)
    """
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return tuple(name for name, value in args.items() if _is_same(value, properties.get(name)))


def _is_same(value: object, schema: Mapping[str, Any] | bool | None) -> bool:
    """Whether a value is a schema's default, as JSON data: in Python, `True` equals 1."""
    try:
        return (
            isinstance(schema, Mapping)
            and "default" in schema
            and canonical_json(value) == canonical_json(schema["default"])
        )
    except TypeError:
        return False


def makers_of(project: Project, registry: Registry, path: str) -> tuple[str, ...]:
    """Who made the agent at the end of a call path, and who made that one, up to an agent that people wrote."""
    if project.generated_agents_dir is None:
        return ()
    names = path.split("/")
    makers: list[str] = []
    while len(names) > 1:
        spec = registry.agent(names.pop())
        if spec is None or not project.is_generated(spec):
            break
        makers.append(names[-1])
    return tuple(makers)


def _resolve(
    function: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None, args: Mapping[str, Any]
) -> Mapping[str, Resolved]:
    """What arguments stand for. One that can't be resolved is None, which no rule allows and every denial matches."""
    if function is None:
        return {}
    try:
        return function(args)
    except BaseException as error:  # noqa: BLE001 (a toolset that fails must not widen what is allowed)
        reraise_if_cancelled(error)
        return dict.fromkeys(args)


async def _describe(function: Callable[[Mapping[str, Any]], str] | None, args: Mapping[str, Any]) -> str | None:
    """A toolset's text for a question, made in a worker thread, since it may read files.

    A toolset that fails or takes too long doesn't stop the question.
    """
    if function is None:
        return None
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            return str(await run_in_worker(function, args))
    except BaseException as error:  # noqa: BLE001 (the question is asked without its text)
        reraise_if_cancelled(error)
        return f"({exception_text(error)})"
