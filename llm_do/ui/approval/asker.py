"""Asks a person at a terminal whether a call may be made; this is the approval callback of the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from llm_do.concurrency.event_loops import PerLoop
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.proofs import facts_of_call, is_overly_broad
from llm_do.policy.proposals import allows_call, proposed_rules
from llm_do.policy.rules import Rule
from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import NoAnswerError, UserQuestion
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.choices import (
    NOTE,
    PROMPT,
    choice_keys,
    choice_lines,
    letter_of,
    parse_answer,
    rules_text,
    short_choices,
)
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.pager import view
from llm_do.ui.approval.question import QuestionText, question_of
from llm_do.ui.live.display import Display
from llm_do.ui.terminal.folding import fold_lines
from llm_do.ui.terminal.terminal import Terminal

__all__ = ["Asker"]

T = TypeVar("T")


class Asker:
    """Puts each question on the terminal and waits for its answer.

    The end of input denies, unless the question is kept until someone answers. When the run ends first, the question
    is withdrawn with a line that says so. Questions about calls and questions of agents are asked one at a time, so
    that what is typed answers the one on the screen.

    Args:
        terminal: Where to ask.
        display: What else writes there; it is silent meanwhile.
        color: Use ANSI colours.
        lines: Draw with box characters.
    """

    def __init__(self, terminal: Terminal, display: Display, *, color: bool = False, lines: bool = True) -> None:
        self._terminal = terminal
        self._display = display
        self._color = color
        self._lines = lines
        self._turns = PerLoop(asyncio.Lock)

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask one question."""
        asked = _AskedCall(self._terminal, request, self._color, self._lines)
        return await self._take_turn(asked.decide, f"(the question about {sanitize(request.tool_name)} is over)")

    async def ask_user(self, question: UserQuestion, *, closed: bool = False) -> str:
        """Put a question to the person; of a `closed` one, it isn't said that other answers are taken, too."""
        other = "type an answer" if not question.choices else "type a number or another answer"

        async def ask() -> str | None:
            return await self._put_question(question, "type a number" if closed else other)

        line = await self._take_turn(ask, f"(the question of {sanitize(question.agent)} is over)")
        if line is None:
            raise NoAnswerError("the person gave no answer")
        line = line.strip()
        if line.isdecimal() and 0 < int(line) <= len(question.choices):
            return question.choices[int(line) - 1]
        return line

    async def _take_turn(self, ask: Callable[[], Awaitable[T]], withdrawn: str) -> T:
        """Ask while nothing else writes to the terminal; what was typed before answers nothing."""
        async with self._turns.get():
            terminal = self._terminal
            self._display.hold()
            muted = terminal.unmute()
            answered = False
            try:
                terminal.forget_typed()
                answer = await ask()
                answered = True
                return answer
            finally:
                if not answered:
                    terminal.write(f"\n{withdrawn}\n")
                if muted:
                    terminal.mute()
                self._display.release()

    async def _put_question(self, question: UserQuestion, how: str) -> str | None:
        terminal = self._terminal
        frame = Frame(terminal.columns, self._color, self._lines)
        *callers, agent = sanitize(question.agent_path or question.agent).split("/")
        lines = frame.top(f"{agent} asks")
        lines += frame.prose(f"called by {' > '.join(callers)}", "quiet") if callers else []
        for line in sanitize(question.text, lines=True).split("\n"):
            lines += frame.row("", " ", line)
        for number, choice in enumerate(question.choices, 1):
            lines += frame.row(str(number), " ", sanitize(choice))
        lines += frame.bottom(how)
        terminal.write("".join(f"{line}\n" for line in lines) + "answer: ")
        answer = await terminal.read_line()
        if answer is None:
            terminal.write("\n")
        return answer


class _AskedCall:
    """The dialogue about one call."""

    def __init__(self, terminal: Terminal, request: ApprovalRequest, color: bool, lines: bool) -> None:
        self._terminal = terminal
        self._request = request
        self._color = color
        self._lines = lines
        self._keys = choice_keys(request.answers, identical=request.identical)
        self._rules = proposed_rules(request.call) if request.call is not None else []
        self._unseen = 0

    @property
    def _frame(self) -> Frame:
        return Frame(self._terminal.columns, self._color, self._lines)

    async def decide(self) -> ApprovalDecision:
        """Show the question and wait for an answer to it."""
        terminal, request = self._terminal, self._request
        question = question_of(request, self._frame)
        self._show(question)
        warned: str | None = None
        while True:
            terminal.write(PROMPT)
            line = await terminal.read_line()
            if line is None:
                terminal.write("\n")
                return ApprovalDecision("unanswered" if self._request.kept else "deny")
            key = parse_answer(line)
            if key == "view":
                seen = await view(terminal, question_of(request, self._frame, complete=True))
                if seen == "deny" or seen == "abort":
                    return ApprovalDecision(seen)
                if terminal.is_plain:
                    self._show(question)
                self._unseen = 0 if seen == "all" else self._unseen
            elif key is None or letter_of(key) not in self._keys:
                if key in ("session", "pattern", "always"):
                    terminal.write("this answer can't be remembered\n")
                elif line.strip():
                    self._write(self._choices(explained=True))
            elif key not in ("deny", "note", "abort") and self._unseen and warned != key:
                warned = key
                text = f"{_more(self._unseen)} not shown yet: v shows all, {letter_of(key)} again allows the call"
                terminal.write(f"{fold_lines(text, terminal.columns)}\n")
            elif (decision := await self._answer(key)) is not None:
                return decision

    def _show(self, question: QuestionText) -> None:
        """Write the question, as much of it as there is room for, and the choices."""
        words = [*question.omitted]
        lines, hidden, choices = list[str](), 0, list[str]()
        for _ in range(3):
            choices = self._choices(", ".join(words))
            lines, hidden = question.fit(self._terminal.rows - len(choices) - 1)
            if not hidden or words[:1] == [_more(hidden)]:
                break
            # To say how many lines are hidden may take a line itself, which hides another one.
            words = [_more(hidden), *question.omitted]
        self._unseen = hidden
        self._write((*lines, *choices))

    def _choices(self, hidden: str = "", *, explained: bool = False) -> list[str]:
        """The choices; where they would take half of the terminal, only named."""
        frame, identical = self._frame, self._request.identical
        lines = choice_lines(frame, self._keys, rules=self._rules, identical=identical, hidden=hidden)
        if explained or len(lines) <= self._terminal.rows // 2:
            return lines
        return short_choices(frame, self._keys, identical=identical, hidden=hidden)

    def _write(self, lines: Iterable[str]) -> None:
        self._terminal.write("".join(f"{line}\n" for line in lines))

    async def _answer(self, key: str) -> ApprovalDecision | None:
        """The decision that a key means; None where the person went back."""
        terminal = self._terminal
        match key:
            case "note":
                terminal.write(NOTE)
                return ApprovalDecision("deny", note=(await terminal.read_line() or "").strip())
            case "pattern" | "always":
                return await self._lasting("always" if key == "always" else "session")
            case "session":
                self._confirm_answer("session", "exactly this call")
                return ApprovalDecision("session")
            case "once" | "all" | "deny" | "abort":
                return ApprovalDecision(key)
            case _:
                return None

    async def _lasting(self, answer: Answer) -> ApprovalDecision | None:
        """An answer by a rule, or a permanent one; None where the person went back."""
        terminal, request, rules = self._terminal, self._request, self._rules
        # Only text that is shown unchanged can be edited on the line.
        text = next((rule for rule in rules if sanitize(rule) == rule), "") if terminal.edits else ""
        while True:
            terminal.write(rules_text(rules, terminal.columns, exact=answer == "always", edited=bool(text)))
            line = (await (terminal.edit_line("rule: ", text) if text else terminal.read_line()) or "").strip()
            if not line:
                return None
            if line == "0" and answer == "always":
                self._confirm_answer(answer, "exactly this call")
                return ApprovalDecision(answer)
            rule = _chosen(line, rules)
            problem = _problem(rule, request)
            if problem is not None:
                terminal.write(f"{sanitize(problem)}\n")
                text = rule if text and sanitize(rule) == rule else text
            elif await self._accepts_breadth(rule):
                self._confirm_answer(answer, sanitize(rule))
                return ApprovalDecision(answer, pattern=rule)

    def _confirm_answer(self, answer: Answer, what: str) -> None:
        """Say what was allowed, and for how long."""
        where = "always, in this project" if answer == "always" else "in this session"
        text = self._frame.paint(f"allowed {where}: {what}", "quiet")
        self._terminal.write(f"{fold_lines(text, self._terminal.columns)}\n")

    async def _accepts_breadth(self, rule: str) -> bool:
        pattern = parse_pattern(rule)
        tools = [facts_of_call(self._request.call)] if self._request.call is not None else []
        if (pattern.primary is not None or pattern.named) and not is_overly_broad(Rule("allow", pattern, rule), tools):
            return True
        self._terminal.write(f"{sanitize(rule)} allows calls with any arguments; y to keep it: ")
        return (await self._terminal.read_line() or "").strip().lower() in ("y", "yes")


def _more(count: int) -> str:
    return f"{count:,} more lines"


def _chosen(line: str, rules: Sequence[str]) -> str:
    return rules[int(line) - 1] if line.isdecimal() and 0 < int(line) <= len(rules) else line


def _problem(rule: str, request: ApprovalRequest) -> str | None:
    """Why a rule can't answer a question."""
    try:
        parse_pattern(rule)
    except PatternError as error:
        return f"not a valid rule: {error.message} ({error.hint})"
    if request.call is not None and not allows_call(rule, request.call):
        return f"{rule} does not allow this call"
    return None
