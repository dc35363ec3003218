"""Approvals that tools require with PydanticAI's own means: `approval_required(...)` and raising `ApprovalRequired`.

The requirement of a wrapper or a validator is known before anything runs and is part of the decision; one that a
tool's body raises needs a question of its own. `llm_do.runtime.approval.approver` makes the decisions.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.toolsets import ApprovalRequiredToolset, PrefixedToolset, RenamedToolset, WrapperToolset

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.policy.values import Decision
from llm_do.text.canonical_json import canonical_json
from llm_do.text.exception_text import exception_text
from llm_do.text.json_data import arguments_data

if TYPE_CHECKING:
    from llm_do.project.tools.toolset_wrappers import Level
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = [
    "CURRENT_APPROVALS",
    "DEFERRED_REASON",
    "ApprovalRequirement",
    "CallApprovals",
    "ValidatorRequirement",
    "defer_requirement",
    "mark_approved",
    "required_by_error",
    "required_by_wrappers",
    "wrapper_requirement",
]

ApprovalRequirement = Callable[[], Decision | None]
"""The approval that a tool requires for one call's arguments; None from it requires none."""

DEFERRED_REASON = (
    "the tool raised PydanticAI's CallDeferred, which is not supported here; "
    "the project's `approvals` say which calls need a person's approval"
)

MAX_REASON = 1000
"""Maximum length of a tool's reason, in characters."""

_PASSING = (WrapperToolset, PrefixedToolset, RenamedToolset, ApprovalRequiredToolset)
"""Toolsets whose `call_tool` requires no approval of its own."""


def wrapper_requirement(
    levels: Sequence[Level],
) -> Callable[[RunContext[Any], ToolDefinition, Mapping[str, Any]], bool] | None:
    """Return a check whether a tool's `approval_required(...)` wrappers require approval; None without wrappers."""
    found: list[tuple[Callable[..., object], str]] = []
    for toolset, name in levels:
        caller = next(kind for kind in type(toolset).__mro__ if "call_tool" in vars(kind))
        if isinstance(toolset, ApprovalRequiredToolset) and caller is ApprovalRequiredToolset:
            found.append((toolset.approval_required_func, name))
        elif caller not in _PASSING:
            break
    if not found:
        return None

    def required(run: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any]) -> bool:
        return any(
            _requires(function, replace(run, tool_name=name), replace(tool_def, name=name), dict(args))
            for function, name in found
        )

    return required


def _requires(function: Callable[..., object], run: RunContext[Any], tool_def: ToolDefinition, args: object) -> bool:
    """Call a wrapper's function. PydanticAI doesn't await it, so an async one always requires approval."""
    if inspect.iscoroutinefunction(function):
        return True
    result = function(run, tool_def, args)
    if inspect.iscoroutine(result):
        result.close()
    return bool(result)


def required_by_wrappers(
    traits: ToolTraits, run: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any]
) -> ApprovalRequirement | None:
    """Return the requirement of the wrappers around a tool; None without any."""
    requires = traits.requires
    if requires is None or run.tool_call_approved:
        return None

    def required() -> Decision | None:
        try:
            return _required_decision(None) if requires(run, tool_def, args) else None
        except BaseException as error:  # noqa: BLE001 (what fails must fail closed)
            reraise_if_cancelled(error)
            return Decision("deny", f"its toolset failed to judge the call, {exception_text(error)}")

    return required


def required_by_error(error: ApprovalRequired) -> ApprovalRequirement:
    """Return the requirement that a tool's validator or body raised."""
    decision = _required_decision(error.metadata)
    return lambda: decision


def _required_decision(metadata: object) -> Decision:
    """Return a decision to ask, with the reason in the error's metadata: its `reason`, or all of it."""
    text = "the tool requires it for these arguments"
    if metadata:
        try:
            data = arguments_data(metadata)
            reason = data.get("reason")
            text = reason if isinstance(reason, str) and reason else canonical_json(data)
        except Exception as error:  # noqa: BLE001 (a reason that can't be shown must not answer the question)
            text = f"{text}, and its reason can't be shown: {exception_text(error)}"
    return Decision("ask", text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}...", required=True)


def mark_approved(run: RunContext[Any]) -> RunContext[Any]:
    """Return the run context for a tool, with `tool_call_approved` set if its call was approved."""
    approvals = CURRENT_APPROVALS.get()
    if approvals is None or run.tool_call_approved or run.tool_call_id not in approvals.approved:
        return run
    return replace(run, tool_call_approved=True)


def defer_requirement(validator: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Wrap a tool's validator so that an approval it requires is kept for the decision instead of ending the run."""
    if validator is None:
        return None
    check = validator

    async def checked(run: RunContext[Any], /, **args: Any) -> None:
        try:
            await _await(check(run, **args))
        except ApprovalRequired as error:
            approvals = CURRENT_APPROVALS.get()
            if approvals is None:  # outside a run of llm-do PydanticAI handles it
                raise
            approvals.required[run.tool_call_id or ""] = ValidatorRequirement(error, check, run)
        except CallDeferred as error:
            raise ModelRetry(DEFERRED_REASON) from error

    return checked


@frozen
class ValidatorRequirement:
    """The approval that a validator required by raising.

    Args:
        error: The error it raised.
        check: The validator.
        run: The run context it got.
    """

    error: ApprovalRequired
    check: Callable[..., Any] = field(repr=False)
    run: RunContext[Any] = field(repr=False)

    def before(self, handler: Callable[[dict[str, Any]], Awaitable[Any]]) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        """Wrap the handler of an approved call so that the validator first makes its other checks, as in PydanticAI."""

        async def handled(args: dict[str, Any]) -> Any:
            await _await(self.check(replace(self.run, tool_call_approved=True), **args))
            return await handler(args)

        return handled


@dataclass(slots=True, eq=False)
class CallApprovals:
    """The approvals of one agent's call in which its tools have a part.

    Args:
        required: Approvals that validators required, by tool call id.
        approved: Running tool calls that were approved, as `ctx.tool_call_approved` shows their tools.
        by_person: Running tool calls that a person was asked about and allowed.
    """

    required: dict[str, ValidatorRequirement] = field(default_factory=dict[str, ValidatorRequirement])
    approved: set[str] = field(default_factory=set[str])
    by_person: set[str] = field(default_factory=set[str])


CURRENT_APPROVALS: ContextVar[CallApprovals | None] = ContextVar("llm_do_current_approvals", default=None)
"""Those of the call that runs in this task; None outside a run of ours."""


async def _await(result: object) -> None:
    if inspect.isawaitable(result):
        await result
