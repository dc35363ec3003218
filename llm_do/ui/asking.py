"""Asks a person at a terminal whether a call may be made; this is the approval callback of the command line."""

from __future__ import annotations

from llm_do.policy.display import visible
from llm_do.runtime.approvals import ApprovalDecision, ApprovalRequest
from llm_do.ui.display import Display
from llm_do.ui.question import CHOICES, NOTE, parse_answer, question_text
from llm_do.ui.terminal import Terminal

__all__ = ["Asker"]


class Asker:
    """Puts each question on the terminal and waits for its answer.

    The end of input denies. When the run ends first, the question is taken down and says so.

    Args:
        terminal: Where to ask.
        display: What else writes there; it is silent meanwhile.
    """

    def __init__(self, terminal: Terminal, display: Display) -> None:
        self._terminal = terminal
        self._display = display

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask one question.

        Args:
            request: The question.

        Returns:
            The answer.
        """
        terminal = self._terminal
        self._display.hold()
        answered = False
        try:
            terminal.forget_typed()
            terminal.write(question_text(request, terminal.columns))
            decision = await self._answer()
            answered = True
            return decision
        finally:
            if not answered:
                terminal.write(f"\n(the question about {visible(request.tool_name)} is over)\n")
            self._display.release()

    async def _answer(self) -> ApprovalDecision:
        terminal = self._terminal
        while True:
            terminal.write(CHOICES)
            line = await terminal.read_line()
            if line is None:
                terminal.write("\n")
                return ApprovalDecision("deny")
            key = parse_answer(line)
            if key == "note":
                terminal.write(NOTE)
                note = await terminal.read_line()
                return ApprovalDecision("deny", note=(note or "").strip())
            if key is not None:
                return ApprovalDecision(key)
