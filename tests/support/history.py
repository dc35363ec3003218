"""Checks that a history is one that a strict provider accepts."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, RetryPromptPart, ToolCallPart, ToolReturnPart

__all__ = ["results_of", "strict"]


def strict(messages: Sequence[ModelMessage], *, reused_ids: bool = False) -> None:
    """Assert that the next request answers each response's calls exactly once, in order, before anything else.

    Args:
        messages: The history.
        reused_ids: Whether calls of two responses may have the same id, as in a history that was made elsewhere.
    """
    earlier: set[str] = set()
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        if message.kind == "response":
            calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            assert len(set(calls)) == len(calls), f"ids used twice: {calls}"
            assert reused_ids or earlier.isdisjoint(calls), f"ids used again: {calls}"
            earlier.update(calls)
            if not calls:
                continue
            assert index + 1 < len(messages), f"calls with nothing after them: {calls}"
            after = messages[index + 1]
            assert after.kind == "request", "calls with no request after them"
            answers = [part for part in after.parts if _answers(part)]
            assert [part.tool_call_id for part in answers] == calls, (calls, answers)
            assert list(after.parts[: len(calls)]) == answers, "something before the results"
        elif any(_answers(part) for part in message.parts):
            assert before is not None, "results that nothing asked for"
            assert before.kind == "response", "results that nothing asked for"
            assert any(isinstance(part, ToolCallPart) for part in before.parts), "results that nothing asked for"


def results_of(messages: Sequence[ModelMessage]) -> list[tuple[str, str, str]]:
    """List every tool result of a history: call id, outcome, text."""
    return [
        (part.tool_call_id, part.outcome, str(part.content))
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def _answers(part: object) -> bool:
    return isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name is not None)
