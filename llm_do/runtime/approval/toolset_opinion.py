"""What a tool's traits say of one call. They are somebody else's code: where it fails, nothing is allowed by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import error_text
from llm_do.policy.arguments import resolve_by_text
from llm_do.policy.values import Decision, Resolved, ToolCallInfo
from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["describe_safely", "resolve_arguments", "restrictive_targets", "stricter_decision", "toolset_decision"]

DESCRIBE_SECONDS = 10.0
"""How long a toolset may take for a text; other questions wait meanwhile."""


def resolve_arguments(traits: ToolTraits, data: Mapping[str, Any]) -> Mapping[str, Resolved]:
    """What the arguments stand for; arguments that can't be resolved are None, which no rule allows."""
    if traits.resolve is None:
        return resolve_by_text(traits.facts, data)
    return _looked_up(traits.resolve, data)


def restrictive_targets(traits: ToolTraits, data: Mapping[str, Any]) -> Mapping[str, Resolved]:
    """What more of them stand for, for rules that deny or ask; None matches each of these."""
    return _looked_up(traits.restrict, data)


def _looked_up(
    function: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None, data: Mapping[str, Any]
) -> Mapping[str, Resolved]:
    if function is None:
        return {}
    try:
        return function(data)
    except BaseException as error:  # noqa: BLE001 (a toolset that fails must not widen what is allowed)
        reraise_if_cancelled(error)
        return dict.fromkeys(data)


def toolset_decision(traits: ToolTraits, info: ToolCallInfo) -> Decision | None:
    """The toolset's own decision, None where it makes none; a failure is a denial."""
    facts = traits.facts
    default = Decision(facts.default, facts.reason) if facts.default is not None else None
    if traits.decide is None:
        return default
    try:
        return traits.decide(info) or default
    except BaseException as error:  # noqa: BLE001 (what fails must fail closed)
        reraise_if_cancelled(error)
        return Decision("deny", f"its toolset failed to judge the call, {error_text(error)}")


def stricter_decision(own: Decision | None, wanted: Decision | None) -> Decision | None:
    """The stricter of the toolset's decision and the required approval."""
    if own is None or wanted is None or own.effect == "allow":
        return wanted if wanted is not None else own
    if own.effect == "deny" or wanted.effect == "deny":
        return own if own.effect == "deny" else wanted
    return replace(own, required=True)


async def describe_safely(
    function: Callable[[Mapping[str, Any]], str | None] | None, data: Mapping[str, Any]
) -> str | None:
    """A toolset's text for a question, from a worker thread: a diff reads files.

    A toolset that can't say it, or takes too long, doesn't stop the question.
    """
    if function is None:
        return None
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            text = await run_in_worker(function, data)
        return text if text is None else str(text)
    except BaseException as error:  # noqa: BLE001 (the question is asked without its text)
        reraise_if_cancelled(error)
        return f"({error_text(error)})"
