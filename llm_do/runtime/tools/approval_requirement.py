"""Approvals that tools ask for in PydanticAI's way: `approval_required(...)`, and `ApprovalRequired` that is raised.

What a wrapper or a validator wants is known before anything runs, and goes into the decision; what a tool's body raises
comes late, and makes the question then. Who answers is `llm_do.runtime.approval.approver`'s business.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.toolsets import ApprovalRequiredToolset, PrefixedToolset, RenamedToolset, WrapperToolset

from llm_do._frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.errors import error_text
from llm_do.policy.values import Decision
from llm_do.runtime.context.call_context import CURRENT_CALL
from llm_do.runtime.record.results import arguments_data
from llm_do.text.canonical_json import canonical_json

if TYPE_CHECKING:
    from llm_do.project.toolset_wrappers import Level
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = [
    "DEFERRED_REASON",
    "ApprovalRequirement",
    "NotedRequirement",
    "mark_approved",
    "note_requirement",
    "requirement_before_run",
    "requirement_of_wrappers",
    "requirement_raised",
    "wrapper_requirement",
]

ApprovalRequirement = Callable[[Mapping[str, Any]], Decision | None]
"""From validated arguments to the approval that their toolset requires, None where it requires none."""

DEFERRED_REASON = (
    "the tool raised PydanticAI's CallDeferred, which nobody answers here; "
    "what is asked about is for the project's `approvals` to say"
)

LONGEST = 1000
"""Characters of the reason that a tool gives."""

_PASSING = (WrapperToolset, PrefixedToolset, RenamedToolset, ApprovalRequiredToolset)
"""Whose `call_tool` asks for no approval but what is known here."""


def wrapper_requirement(
    levels: Sequence[Level],
) -> Callable[[RunContext[Any], ToolDefinition, Mapping[str, Any]], bool] | None:
    """What the `approval_required(...)` wrappers around a tool want, None where there are none."""
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
            _says(function, replace(run, tool_name=name), replace(tool_def, name=name), dict(args))
            for function, name in found
        )

    return required


def _says(function: Callable[..., object], run: RunContext[Any], tool_def: ToolDefinition, args: object) -> bool:
    """What a wrapper's function says. PydanticAI doesn't await it: one that is asynchronous always says yes."""
    if inspect.iscoroutinefunction(function):
        return True
    said = function(run, tool_def, args)
    if inspect.iscoroutine(said):
        said.close()
    return bool(said)


def requirement_before_run(
    run: RunContext[Any], tool_def: ToolDefinition, traits: ToolTraits, noted: NotedRequirement | None = None
) -> ApprovalRequirement | None:
    """What is wanted of one call before it runs, None where nobody can want anything."""
    if noted is None:
        return requirement_of_wrappers(traits, run, tool_def)
    decision = _required_decision(noted.metadata)
    return lambda _: decision


def requirement_of_wrappers(
    traits: ToolTraits, run: RunContext[Any], tool_def: ToolDefinition
) -> ApprovalRequirement | None:
    """What the wrappers around a tool want, None where there are none."""
    requires = traits.requires
    if requires is None or run.tool_call_approved:
        return None

    def wanted(args: Mapping[str, Any]) -> Decision | None:
        try:
            return _required_decision(None) if requires(run, tool_def, args) else None
        except BaseException as error:  # noqa: BLE001 (what fails must fail closed)
            reraise_if_cancelled(error)
            return Decision("deny", f"its toolset failed to judge the call, {error_text(error)}")

    return wanted


def requirement_raised(error: ApprovalRequired) -> ApprovalRequirement:
    """What a tool's body wanted when it raised."""
    decision = _required_decision(error.metadata)
    return lambda _: decision


def _required_decision(metadata: object) -> Decision:
    """An ask with the reason that a tool's author gave as data: a text under `reason`, or whatever it is."""
    text = "the tool wants it for these arguments"
    if metadata:
        try:
            data = arguments_data(metadata)
            said = data.get("reason")
            text = said if isinstance(said, str) and said else canonical_json(data)
        except Exception as error:  # noqa: BLE001 (a reason that can't be said must not answer the question)
            text = f"{text}, and its reason can't be shown: {error_text(error)}"
    return Decision("ask", text if len(text) <= LONGEST else f"{text[:LONGEST]}...", required=True)


def mark_approved(run: RunContext[Any]) -> RunContext[Any]:
    """A call as its tool sees it: with `tool_call_approved` set where somebody said yes to it."""
    call = CURRENT_CALL.get(None)
    if call is None or run.tool_call_approved or run.tool_call_id not in call.frame.approved:
        return run
    return replace(run, tool_call_approved=True)


def note_requirement(validator: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A tool's own validator, whose wish for an approval is noted instead of ending the run."""
    if validator is None:
        return None
    check = validator

    async def checked(run: RunContext[Any], /, **args: Any) -> None:
        try:
            said = check(run, **args)
            if inspect.isawaitable(said):
                await said
        except ApprovalRequired as wanted:
            call = CURRENT_CALL.get(None)
            if call is None:  # not in a run of ours: PydanticAI has its own way
                raise
            call.frame.wanted[run.tool_call_id or ""] = NotedRequirement(wanted.metadata, check, run)
        except CallDeferred as error:
            raise ModelRetry(DEFERRED_REASON) from error

    return checked


@frozen
class NotedRequirement:
    """What a validator wanted when it raised.

    Args:
        metadata: What it gave as the reason.
        check: The validator.
        run: The call as it saw it.
    """

    metadata: object
    check: Callable[..., Any] = field(repr=False)
    run: RunContext[Any] = field(repr=False)

    def first(self, handler: Callable[[dict[str, Any]], Awaitable[Any]]) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        """The call once it is approved: the validator has its say on the rest first, as PydanticAI does it."""

        async def handled(args: dict[str, Any]) -> Any:
            said = self.check(replace(self.run, tool_call_approved=True), **args)
            if inspect.isawaitable(said):
                await said
            return await handler(args)

        return handled
