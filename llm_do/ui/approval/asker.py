"""Asks a person at a terminal whether a call may be made; this is the approval callback of the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llm_do.concurrency.event_loops import PerLoop
from llm_do.errors import ToolError
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.proofs import facts_of_call, is_overly_broad
from llm_do.policy.proposals import allows_call, proposed_rules
from llm_do.policy.rules import Rule
from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.question import (
    NOTE,
    choice_keys,
    choices_text,
    head_text,
    help_text,
    letter_of,
    more_text,
    parse_answer,
    question_text,
    rules_text,
)
from llm_do.ui.live.display import Display
from llm_do.ui.terminal.terminal import Terminal
from llm_do.ui.terminal.text_width import wrap

__all__ = ["Asker"]

_ROWS_BESIDE = 6
"""Rows that the choices below a question need."""

_FEWEST_ROWS = 4


class Asker:
    """Puts each question on the terminal and waits for its answer.

    The end of input denies. When the run ends first, the question is withdrawn with a line that says so. Questions
    about calls and questions of agents are asked one at a time, so that what is typed answers the one on the screen.

    Args:
        terminal: Where to ask.
        display: What else writes there; it is silent meanwhile.
        color: Use ANSI colours.
    """

    def __init__(self, terminal: Terminal, display: Display, *, color: bool = False) -> None:
        self._terminal = terminal
        self._display = display
        self._color = color
        self._turns = PerLoop(asyncio.Lock)

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask one question."""
        async with self._turns.get():
            return await self._decide(request)

    async def _decide(self, request: ApprovalRequest) -> ApprovalDecision:
        terminal = self._terminal
        self._display.hold()
        muted = terminal.unmute()
        answered = False
        try:
            terminal.forget_typed()
            decision = await self._show(request) or await self._answer(request)
            answered = True
            return decision
        finally:
            if not answered:
                terminal.write(f"\n(the question about {sanitize(request.tool_name)} is over)\n")
            if muted:
                terminal.mute()
            self._display.release()

    async def ask_user(self, question: UserQuestion) -> str:
        """Put an agent's own question to the person."""
        async with self._turns.get():
            return await self._put_question(question)

    async def _put_question(self, question: UserQuestion) -> str:
        terminal = self._terminal
        self._display.hold()
        muted = terminal.unmute()
        answered = False
        try:
            terminal.forget_typed()
            lines = [f"{sanitize(question.agent_path or question.agent)} asks:"]
            lines += [f"  | {line}" for line in sanitize(question.text, lines=True).split("\n")]
            lines += [f"  {number} {sanitize(choice)}" for number, choice in enumerate(question.choices, 1)]
            pieces = [piece for line in lines for piece in wrap(line, max(terminal.columns - 1, 20))]
            terminal.write("".join(f"{piece}\n" for piece in pieces) + "answer: ")
            line = await terminal.read_line()
            answered = True
            if line is None:
                terminal.write("\n")
        finally:
            if not answered:
                terminal.write(f"\n(the question of {sanitize(question.agent)} is over)\n")
            if muted:
                terminal.mute()
            self._display.release()
        if line is None:
            raise ToolError("the person gave no answer")
        line = line.strip()
        if line.isdecimal() and 0 < int(line) <= len(question.choices):
            return question.choices[int(line) - 1]
        return line

    async def _show(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Show a question, page by page if it is longer than the terminal; returns an answer given on the way."""
        terminal = self._terminal
        lines = question_text(request, terminal.columns, color=self._color).splitlines(keepends=True)
        rows = max(terminal.rows - _ROWS_BESIDE, _FEWEST_ROWS)
        if len(lines) <= rows:
            terminal.write("".join(lines))
            return None
        shown = 0
        while shown < len(lines):
            terminal.write("".join(lines[shown : shown + rows]))
            shown += rows
            if shown >= len(lines):
                break
            terminal.write(more_text(shown, len(lines), terminal.columns))
            line = await terminal.read_line()
            key = parse_answer(line) if line is not None else "deny"
            if line is None:
                terminal.write("\n")
            if key in ("deny", "abort"):
                return ApprovalDecision(key)
            if line is not None and line.strip().lower() in ("r", "rest"):
                rows = len(lines)
        terminal.write(head_text(request, terminal.columns, color=self._color))
        return None

    async def _answer(self, request: ApprovalRequest) -> ApprovalDecision:
        terminal, keys = self._terminal, choice_keys(request.answers, identical=request.identical)
        while True:
            terminal.write(choices_text(terminal.columns, request.answers, identical=request.identical))
            line = await terminal.read_line()
            if line is None:
                terminal.write("\n")
                return ApprovalDecision("deny")
            key = parse_answer(line)
            if key is not None and letter_of(key) not in keys:
                lasting = key in ("session", "pattern", "always")
                terminal.write("this answer can't be remembered\n" if lasting else "this answer isn't one of them\n")
                continue
            if key == "note":
                terminal.write(NOTE)
                note = await terminal.read_line()
                return ApprovalDecision("deny", note=(note or "").strip())
            if key == "pattern" or key == "always":
                lasting = await self._lasting(request, "always" if key == "always" else "session")
                if lasting is not None:
                    return lasting
            elif key is not None:
                return ApprovalDecision(key)
            elif line.strip() and not {"session", "always"}.isdisjoint(request.answers):
                terminal.write(help_text(terminal.columns))

    async def _lasting(self, request: ApprovalRequest, answer: Answer) -> ApprovalDecision | None:
        """An answer by a rule, or a permanent one; None where the person went back."""
        terminal = self._terminal
        rules = proposed_rules(request.call) if request.call is not None else []
        # Only text that is shown unchanged can be edited on the line.
        text = next((rule for rule in rules if sanitize(rule) == rule), "") if terminal.edits else ""
        while True:
            terminal.write(rules_text(rules, terminal.columns, exact=answer == "always", edited=bool(text)))
            line = (await (terminal.edit_line("rule: ", text) if text else terminal.read_line()) or "").strip()
            if not line:
                return None
            if line == "0" and answer == "always":
                return ApprovalDecision(answer)
            rule = self._rule(line, rules)
            problem = _problem(rule, request)
            if problem is not None:
                terminal.write(f"{sanitize(problem)}\n")
                text = rule if text and sanitize(rule) == rule else text
            elif await self._confirm(rule, request):
                return ApprovalDecision(answer, pattern=rule)

    def _rule(self, line: str, rules: Sequence[str]) -> str:
        return rules[int(line) - 1] if line.isdecimal() and 0 < int(line) <= len(rules) else line

    async def _confirm(self, rule: str, request: ApprovalRequest) -> bool:
        pattern = parse_pattern(rule)
        tools = [facts_of_call(request.call)] if request.call is not None else []
        if (pattern.primary is not None or pattern.named) and not is_overly_broad(Rule("allow", pattern, rule), tools):
            return True
        self._terminal.write(f"{sanitize(rule)} allows calls with any arguments; y to keep it: ")
        return (await self._terminal.read_line() or "").strip().lower() in ("y", "yes")


def _problem(rule: str, request: ApprovalRequest) -> str | None:
    """Why a rule can't answer a question."""
    try:
        parse_pattern(rule)
    except PatternError as error:
        return f"not a valid rule: {error.message} ({error.hint})"
    if request.call is not None and not allows_call(rule, request.call):
        return f"{rule} does not allow this call"
    return None
