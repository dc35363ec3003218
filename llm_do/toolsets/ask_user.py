"""`ask_user`: a question to the person who runs the agent, asked through the runtime's callback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext

from llm_do.errors import ToolError
from llm_do.project.tools.builtin_toolsets import ASK_USER
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import tool_key, waiting_for_person
from llm_do.runtime.context.user_questions import AskUser, NoAnswerError, UserQuestion, ask_person
from llm_do.runtime.steps.durable_run import DurableRun
from llm_do.runtime.steps.run_questions import OpenQuestion
from llm_do.runtime.tools.traits import BuiltinContext, ToolTraits
from llm_do.text.canonical_json import digest
from llm_do.toolsets.function_tools import function_tool

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
    return FunctionToolset([function_tool(_ask, traits, "ask_user")], id=ctx.name)


async def _ask(ctx: RunContext[CallContext], question: Question, choices: Choices | None = None) -> str:
    """Ask the person a question and wait for the answer.

    Args:
        question: The question, in full: the person sees nothing else.
        choices: Answers to choose from, if only these make sense.
    """
    call = ctx.deps
    callback = call.runtime.config.ask_user
    asked = UserQuestion(question, tuple(choices or ()), call.frame.config.name, call.path, call.run_id)
    if call.run.durable is not None and call.run.durable.keeps_questions:
        with waiting_for_person(call, ctx.tool_call_id or ""):
            answer = await _ask_durably(call, call.run.durable, callback, asked, ctx.tool_call_id or call.call_id)
        return _shown(answer, choices)
    if callback is None:
        raise ToolError("there is no one to ask: continue with what you know, and state your assumptions")
    with waiting_for_person(call, ctx.tool_call_id or ""):
        answer = await ask_person(callback, asked, call.runtime.shared.question_lock())
    return _shown(answer, choices)


def _shown(answer: str, choices: list[str] | None) -> str:
    return f"{answer} (none of the choices)" if choices and answer not in choices else answer


async def _ask_durably(
    call: CallContext, durable: DurableRun, callback: AskUser | None, asked: UserQuestion, tool_call_id: str
) -> str:
    """Ask a question of a durable run, which is kept until someone answers: here, elsewhere, or after a resume."""
    request = {
        "agent_path": asked.agent_path,
        "tool_name": "ask_user",
        "args": {"question": asked.text, **({"choices": list(asked.choices)} if asked.choices else {})},
        "reason": asked.text,
        "text": asked.text,
        "choices": list(asked.choices),
    }
    questions, step = durable.questions, tool_key(call, tool_call_id)
    shown = digest([asked.text, list(asked.choices)])
    row = questions.find(step, shown) or questions.put(step, shown, "ask", request)

    async def ask() -> dict[str, str] | None:
        assert callback is not None
        try:
            text = await ask_person(callback, asked, call.runtime.shared.question_lock())
        except NoAnswerError:
            return None
        return {"answer": "text", "text": text}

    row = await questions.resolve(OpenQuestion(row), ask if callback is not None else None)
    questions.use(row)
    answer = questions.answer(row)
    assert answer is not None
    return str(answer["text"])


def _describe(args: Mapping[str, Any]) -> str:
    return f"Ask you: {args.get('question', '')}"
