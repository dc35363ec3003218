"""`ask_user`: a question to the person who runs the agent, asked through the runtime's callback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext, Tool

from llm_do.errors import ToolError
from llm_do.project.tools.builtin_toolsets import ASK_USER
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import waiting_for_person
from llm_do.runtime.context.user_questions import UserQuestion, ask_person
from llm_do.runtime.tools.traits import BuiltinContext, ToolTraits

__all__ = ["ask_user"]

Question = Annotated[str, Field(min_length=1, max_length=4000)]
Choices = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=20)]


def ask_user(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Build the toolset with one tool, `ask_user`, which asks the person who runs the agent a question.

    Example:
        >>> from pathlib import Path
        >>> list(ask_user(BuiltinContext("ask_user", Path("."), Path("."))).tools)
        ['ask_user']
    """
    traits = ToolTraits(ASK_USER["ask_user"], ctx.name, "ask_user", describe=_describe)
    tool: Tool[Any] = Tool(_ask, name="ask_user", metadata=traits.metadata(), require_parameter_descriptions=True)
    return FunctionToolset([tool], id=ctx.name)


async def _ask(ctx: RunContext[CallContext], question: Question, choices: Choices | None = None) -> str:
    """Ask the person a question and wait for the answer.

    Args:
        question: The question, in full: the person sees nothing else.
        choices: Answers to choose from, if only these make sense.
    """
    call = ctx.deps
    callback = call.runtime.config.ask_user
    if callback is None:
        raise ToolError("there is no one to ask: continue with what you know, and state your assumptions")
    asked = UserQuestion(question, tuple(choices or ()), call.frame.config.name, call.path, call.run_id)
    with waiting_for_person(call, ctx.tool_call_id or ""):
        answer = await ask_person(callback, asked, call.runtime.shared.question_lock())
    if choices and answer not in choices:
        return f"{answer} (none of the choices)"
    return answer


def _describe(args: Mapping[str, Any]) -> str:
    return f"Ask you: {args.get('question', '')}"
