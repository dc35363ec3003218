"""`CODES`: every code of a diagnostic, for what lists or explains them; who makes one imports only its group."""

from __future__ import annotations

from llm_do.diagnostics.codes import (
    cases,
    environment,
    files,
    flows,
    lock,
    machines,
    names,
    proofs,
    python,
    rules,
    shape,
    syntax,
    tools,
    unused,
)
from llm_do.diagnostics.codes.code import Code

__all__ = ["CODES"]

_GROUPS = (
    files,
    syntax,
    shape,
    names,
    python,
    tools,
    machines,
    flows,
    rules,
    lock,
    proofs,
    environment,
    unused,
    cases,
)

CODES: dict[str, Code] = {
    code.id: code
    for code in sorted(
        (value for group in _GROUPS for value in vars(group).values() if isinstance(value, Code)),
        key=lambda code: code.id,
    )
}
"""Every code, in order."""
