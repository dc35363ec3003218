"""The table of every diagnostic code, and the one way to make a `Diagnostic`.

A code is stable: it is never given to another fault. Each block has a module: LD1xx reading, syntax and shape of files;
LD2xx names and references; LD3xx Python files; LD4xx agents' tools and toolsets; LD5xx flows; LD6xx approval rules;
LD7xx models and environment; LD8xx unused things. A new code is a new row; its page in the documentation is written
from the row.
"""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code
from llm_do.diagnostics.codes.environment import ENVIRONMENT
from llm_do.diagnostics.codes.flows import FLOWS
from llm_do.diagnostics.codes.names import NAMES
from llm_do.diagnostics.codes.python import PYTHON
from llm_do.diagnostics.codes.rules import RULES
from llm_do.diagnostics.codes.syntax import READING
from llm_do.diagnostics.codes.tools import TOOLS
from llm_do.diagnostics.codes.unused import UNUSED
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.text.escapes import escape_controls

__all__ = ["CODES", "Code", "diagnostic"]

CODES: dict[str, Code] = {
    **READING,
    **NAMES,
    **PYTHON,
    **TOOLS,
    **FLOWS,
    **RULES,
    **ENVIRONMENT,
    **UNUSED,
}
"""Every code. The blocks LD2xx to LD8xx belong to the linker."""


def diagnostic(code: str, message: str, place: Location, hint: str | None = None) -> Diagnostic:
    """Make a diagnostic; its severity comes from the table, and what a file put into its words is made visible.

    Example:
        >>> str(diagnostic("LD120", "unknown key `modle`", Location("a.agent", 3)).severity)
        'error'
    """
    return Diagnostic(
        code, CODES[code].severity, escape_controls(message), place, hint if hint is None else escape_controls(hint)
    )
