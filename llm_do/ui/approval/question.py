"""The question that a person answers before a call is made, as lines: what never leaves the screen, and what may.

Nothing is left out unless the question says so, and `v` then shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from llm_do._startup.frozen import frozen
from llm_do.runtime.approval.broker import ApprovalRequest
from llm_do.text.sanitizer import format_arguments, sanitize
from llm_do.text.words import with_count
from llm_do.ui.approval.diff_view import diff_lines
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.lookalikes import find_lookalikes
from llm_do.ui.terminal.text_width import wrap_words

__all__ = ["QuestionText", "question_of"]

_HEAD_LINES = 4
"""Lines of a long target in the head."""

_LEAST_BODY = 3
_CALLERS = 3
"""Callers that are named; of more, the first and the last are."""


@frozen
class QuestionText:
    """A question as lines.

    Args:
        frame: What it is drawn with.
        head: Agent, tool and target, which stay in sight.
        body: The arguments, or what the call would change.
        foot: Why it is asked.
        omitted: What isn't shown since a person knows it, in words.
    """

    frame: Frame
    head: Sequence[str]
    body: Sequence[str]
    foot: Sequence[str]
    omitted: Sequence[str] = field(default_factory=tuple)

    def fit(self, rows: int) -> tuple[list[str], int]:
        """The lines that fit into so many rows, the end of the question among them, and how many are left out."""
        room = max(rows - len(self.head) - len(self.foot), _LEAST_BODY)
        if len(self.body) <= room:
            return [*self.head, *self.body, *self.foot], 0
        end = (room - 1) // 3
        start = room - 1 - end
        hidden = len(self.body) - start - end
        gap = self.frame.prose(f"{self.frame.gap} {hidden:,} more lines", "warn")
        shown = [*self.body[:start], *gap, *self.body[len(self.body) - end :]]
        return [*self.head, *shown, *self.foot], hidden

    def text(self, rows: int = 1_000_000) -> str:
        """The lines as text, all of them unless there is less room."""
        return "".join(f"{line}\n" for line in self.fit(rows)[0])


def question_of(request: ApprovalRequest, frame: Frame, *, complete: bool = False) -> QuestionText:
    """The question about a call.

    Args:
        request: The call.
        frame: What may be drawn.
        complete: Show the defaults, and the arguments whose text the diff shows, too.
    """
    shown = dict(format_arguments(request.args))
    names = dict(zip(request.args, shown, strict=True))
    targets = [names[name] for name in _targets(request)]
    known = frozenset(names[name] for name in (*request.defaults, *request.in_diff) if name in names)
    head = _title(request, frame, complete=complete)
    body: list[str] = []
    pinned = [_description(request, frame), *(frame.named(name, shown[name], "name") for name in targets)]
    for lines in pinned:
        cut = len(lines) > _HEAD_LINES
        head += [*lines[:_HEAD_LINES], *(frame.prose(frame.gap, "quiet") if cut else ())]
        body += lines if cut else ()
    head += _lookalikes([request.tool_name, *(shown[name] for name in targets)], frame)
    for name, value in shown.items():
        if name not in targets and (complete or name not in known):
            body += frame.named(name, value)
    if not request.args:
        body += frame.prose("no arguments", "quiet")
    if request.diff:
        body += diff_lines(sanitize(request.diff, lines=True), frame)
    omitted = () if complete else _omitted(request, _targets(request))
    return QuestionText(frame, head, body, frame.bottom(_why(request)), omitted)


def _title(request: ApprovalRequest, frame: Frame, *, complete: bool) -> list[str]:
    *callers, agent = sanitize(request.agent_path or request.agent).split("/")
    beside = f"{request.number} of {request.total}" if request.total > 1 else ""
    lines = frame.top(f"{agent} wants to call {sanitize(request.tool_name)}", beside)
    if callers:
        shown = callers if complete or len(callers) <= _CALLERS else [callers[0], frame.gap, callers[-1]]
        lines += frame.prose(f"called by {' > '.join(shown)}", "quiet")
    if request.identical > 1:
        lines += frame.prose(f"{request.identical} identical calls", "warn")
    return lines


def _description(request: ApprovalRequest, frame: Frame) -> list[str]:
    text = sanitize(request.description, lines=True)
    return frame.named("what", text, pieces=wrap_words) if text else []


def _lookalikes(texts: Sequence[str], frame: Frame) -> list[str]:
    """What a person would read as something else in the tool's name and the target."""
    found = find_lookalikes(sanitize(" ".join(texts)))
    return frame.prose(f"not what it looks like: {'; '.join(found)}", "warn") if found else []


def _targets(request: ApprovalRequest) -> list[str]:
    primary = request.call.primary if request.call is not None else None
    return [name for name in ((primary,) if isinstance(primary, str) else primary or ()) if name in request.args]


def _omitted(request: ApprovalRequest, targets: Collection[str]) -> list[str]:
    defaults = sum(name in request.args and name not in targets for name in request.defaults)
    words = [with_count(defaults, "default argument")] if defaults else []
    in_diff = [sanitize(name) for name in request.in_diff if name in request.args]
    return [*words, *([f"{' and '.join(in_diff)} in full"] if in_diff else [])]


def _why(request: ApprovalRequest) -> str:
    reason = sanitize(request.reason)
    if request.rule and request.rule not in request.reason:
        return f"why: {reason or 'a rule says so'} (rule {sanitize(request.rule)})"
    return f"why: {reason or 'calls of this tool need approval'}"
