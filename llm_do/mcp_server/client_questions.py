"""Questions of a run as MCP elicitations: the form that a client shows, and the answer that it sends back.

A client that can't show forms is never asked: the call that needs approval is denied, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp.types import ClientCapabilities, ElicitRequestFormParams, ElicitResult

from llm_do.errors import ToolError
from llm_do.policy.proposals import narrowest_rule
from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.text.sanitizer import sanitize, shell_word
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.question import question_of

__all__ = ["ANSWERS", "answer_of", "approval_form", "can_ask", "decision_of", "question_form", "refuse"]

ANSWERS: tuple[Answer, ...] = ("once", "all", "session", "deny", "abort")
"""The answers that a client may give. None is for good: that is decided where the project's owner sees it."""

_TITLES: Mapping[Answer, str] = {
    "once": "Allow this call",
    "all": "Allow all identical calls of this response",
    "session": "Allow such calls until this run ends",
    "deny": "Deny it",
    "abort": "Deny it, and end the run",
}
_FRAME = Frame(columns=100, lines=False)


def can_ask(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client can show a form to a person."""
    found = capabilities.elicitation if capabilities is not None else None
    # A client of an older version says only that it can elicit, which was always by a form.
    return found is not None and (found.form is not None or found.url is None)


def approval_form(request: ApprovalRequest) -> ElicitRequestFormParams:
    """The form that asks about a tool call: everything that its approval is bound to, and the accepted answers."""
    answers: list[Answer] = [answer for answer in request.answers if answer in ANSWERS]
    if request.identical == 1:
        answers = [answer for answer in answers if answer != "all"]
    if request.person_only:
        answers = [answer for answer in answers if answer != "session"]
    schema = {
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "title": "May it be called?",
                "oneOf": [{"const": answer, "title": _TITLES[answer]} for answer in answers],
            },
            "note": {
                "type": "string",
                "title": "A note to the model",
                "description": "Why not, or what to do instead; for a denial.",
            },
        },
        "required": ["answer"],
    }
    text = question_of(request, _FRAME, complete=True).text().rstrip("\n")
    return ElicitRequestFormParams(message=text, requested_schema=schema)


def decision_of(result: ElicitResult) -> ApprovalDecision:
    """The decision that a client's answer means; a form that was closed is an answer of no one."""
    content = result.content or {}
    note = content.get("note")
    text = note if isinstance(note, str) else ""
    if result.action == "decline":
        return ApprovalDecision("deny", note=text)
    answer = content.get("answer")
    if result.action != "accept" or answer not in ANSWERS:
        return ApprovalDecision("unanswered")
    return ApprovalDecision(answer, note=text)


async def refuse(request: ApprovalRequest) -> ApprovalDecision:
    """The decision about a call if the client can't show a form; the note says what would allow it."""
    rule = narrowest_rule(request.call) if request.call is not None and not request.person_only else None
    way = f"; allow it with --allow {shell_word(rule)}" if rule is not None else ""
    return ApprovalDecision("unanswered", note=f"the MCP client can't ask a person{way}")


def question_form(question: UserQuestion) -> ElicitRequestFormParams:
    """The form of a question that an agent asks."""
    answer: dict[str, Any] = {"type": "string", "title": "Your answer"}
    choices = _shown(question.choices)
    if choices:
        answer["oneOf"] = [{"const": sanitize(choice), "title": sanitize(choice)} for choice in choices]
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    asking = sanitize(question.agent_path or question.agent)
    return ElicitRequestFormParams(
        message=f"{asking} asks: {sanitize(question.text, lines=True)}", requested_schema=schema
    )


def _shown(choices: Sequence[str]) -> list[str]:
    """The choices that differ as they are shown; if two look the same, the person writes the answer."""
    shown = list(dict.fromkeys(map(sanitize, choices)))
    return shown if len(shown) == len(choices) else []


def answer_of(result: ElicitResult, question: UserQuestion) -> str:
    """The text of a client's answer to an agent's question.

    Raises:
        ToolError: The form was closed without an answer.
    """
    answer = (result.content or {}).get("answer")
    if result.action != "accept" or not isinstance(answer, str):
        raise ToolError("the person gave no answer")
    return next((choice for choice in question.choices if sanitize(choice) == answer), answer)
