"""The question whether to undo what a run has changed, with the difference that it makes."""

from __future__ import annotations

from pathlib import Path

from llm_do.files.changes.undo_plan import UndoPlan
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.diff_view import diff_lines
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.pager import view
from llm_do.ui.approval.question import QuestionText
from llm_do.ui.approval.undo_report import calls_lines, file_rows, plan_title, undo_diffs
from llm_do.ui.terminal.terminal import Terminal

__all__ = ["ask_undo"]

_PROMPT = "undo? "
_CHOICES = "y yes   n no   v view everything\n"
_CHOICE_ROWS = 3


async def ask_undo(terminal: Terminal, root: Path, plan: UndoPlan, frame: Frame) -> bool:
    """Ask a person whether to undo; the end of input is no.

    Args:
        terminal: Where to ask.
        root: The project's folder.
        plan: What would be undone.
        frame: What the question is drawn with.
    """
    question = _question(root, plan, frame)
    terminal.forget_typed()
    shown = question.text(max(terminal.rows - _CHOICE_ROWS, 10)) + _CHOICES
    terminal.write(shown)
    while True:
        terminal.write(_PROMPT)
        line = await terminal.read_line()
        if line is None:
            terminal.write("\n")
            return False
        typed = line.strip().lower()
        if typed in ("y", "yes"):
            return True
        if typed in ("n", "no", "q"):
            return False
        if typed not in ("v", "view"):
            terminal.write(_CHOICES)
        elif await view(terminal, question) in ("deny", "abort"):
            return False
        elif not terminal.is_plain:
            terminal.write(shown)


def _question(root: Path, plan: UndoPlan, frame: Frame) -> QuestionText:
    """The question whether to undo, with the difference that it makes to each file."""
    head = frame.top(sanitize(plan_title(plan)))
    body: list[str] = []
    for file, text in undo_diffs(root, plan):
        body += frame.named(file.act, sanitize(file.label), "name")
        if text.startswith("---"):
            body += diff_lines(sanitize(text, lines=True), frame)
        elif text:
            body += frame.prose(sanitize(text), "quiet")
    for row in file_rows(plan.those("left", "unkept")):
        body += frame.prose(sanitize("  ".join(row)), "warn")
    for line in calls_lines(plan.record):
        body += frame.prose(sanitize(line), "warn")
    return QuestionText(frame, head, body, frame.bottom("what is replaced is kept, so that this can be undone, too"))
