"""Questions of agents to a person: what is asked, and one at a time. Who asks is a tool, who answers a callback."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.errors import ToolError

__all__ = ["AskUser", "UserQuestion", "put_question"]


@frozen
class UserQuestion:
    """A question to a person.

    Args:
        text: The question, as the model wrote it.
        choices: Answers to choose from; empty for any answer.
        agent: Name of the agent that asks.
        agent_path: Its call path.
        run_id: The run that waits.
    """

    text: str
    choices: Sequence[str] = field(default=())
    agent: str = ""
    agent_path: str = ""
    run_id: str = ""


AskUser: TypeAlias = Callable[[UserQuestion], Awaitable[str]]
"""Puts a question to a person and returns the answer's text; whatever it raises is a failed result."""


async def put_question(callback: AskUser, question: UserQuestion, turn: asyncio.Lock) -> str:
    """Ask a person, after the questions that were there before."""
    async with turn:
        try:
            answer = await _called(callback, question)
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"the person could not be asked: {type(error).__name__}: {error}") from error
    if not isinstance(answer, str):
        raise ToolError("the person gave no answer")
    return answer


async def _called(callback: Callable[..., object], question: UserQuestion) -> object:
    """What a callback says, whatever it is: it is code of somebody else's."""
    said = callback(question)
    return await said if inspect.isawaitable(said) else said
