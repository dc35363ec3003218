"""Questions that agents ask a person, one at a time: a tool asks, a callback answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import ToolError

__all__ = ["AskUser", "NoAnswerError", "UserQuestion", "ask_person"]


class NoAnswerError(ToolError):
    """A person didn't answer; in a durable run, the question stays open."""


@frozen
class UserQuestion:
    """A question to a person.

    Args:
        text: The question, as the model wrote it.
        choices: Answers to choose from; empty for any answer.
        agent: Name of the asking agent.
        agent_path: Its call path.
        run_id: The id of the waiting run.
    """

    text: str
    choices: Sequence[str] = field(default=())
    agent: str = ""
    agent_path: str = ""
    run_id: str = ""


AskUser: TypeAlias = Callable[[UserQuestion], Awaitable[str] | str]
"""Asks a person a question and returns the answer's text, in a worker thread unless it is async; an exception becomes a
failed result."""


async def ask_person(callback: AskUser, question: UserQuestion, turn: asyncio.Lock) -> str:
    """Ask a person, after all earlier questions."""
    async with turn:
        try:
            answer = await call_function(callback, question)
        except ToolError:
            raise
        except Exception as error:
            raise NoAnswerError(f"the person could not be asked: {type(error).__name__}: {error}") from error
    if not isinstance(answer, str):
        raise NoAnswerError("the person gave no answer")
    return answer
