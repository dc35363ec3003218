"""A diagnostic's code with its explanation, fix and example, and a problem: a code's sentence without its location."""

from __future__ import annotations

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic, Location, Severity
from llm_do.text.sanitizer import escape_controls

__all__ = ["Code", "Problem"]


@frozen
class Code:
    """What a code stands for.

    Args:
        id: The code, such as `LD201`; it never changes its meaning.
        title: A few words.
        severity: Of every diagnostic with this code.
        explanation: What is wrong and why it matters, for the documentation.
        fix: What to do about it; the hint where a sentence has no more specific one.
        wrong: The lines of an example that have the fault.
        right: The same lines without it.
    """

    id: str
    title: str
    severity: Severity
    explanation: str
    fix: str
    wrong: str
    right: str

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """A problem with this code; control characters that a file put into its words are escaped."""
        return Problem(self, escape_controls(message), escape_controls(hint or self.fix))


@frozen
class Problem:
    """What is wrong, why, and what to do about it, before it is known where.

    Args:
        code: Its code.
        message: What is wrong and why, one sentence.
        hint: What to do about it.
    """

    code: Code
    message: str
    hint: str

    def at(self, location: Location) -> Diagnostic:
        """The diagnostic of this problem at a location."""
        return Diagnostic(self.code.id, self.code.severity, self.message, location, self.hint)
