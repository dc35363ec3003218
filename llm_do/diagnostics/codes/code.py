"""`Code`: one row of the table of codes."""

from __future__ import annotations

from llm_do._frozen import frozen
from llm_do.diagnostics.diagnostic import Severity

__all__ = ["Code"]


@frozen
class Code:
    """What a code stands for.

    Args:
        title: A few words.
        severity: Of every diagnostic with this code.
        explanation: What is wrong and why it matters, for the documentation.
        wrong: An example that has the fault, for the few that no file can show.
        fixed: The same without it.
    """

    title: str
    severity: Severity
    explanation: str
    wrong: str = ""
    fixed: str = ""
