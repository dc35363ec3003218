"""What code in a tool call can see without a context: whether the call has been abandoned, and what was approved."""

from __future__ import annotations

import threading
from contextvars import ContextVar

__all__ = ["APPROVED_BASIS", "CURRENT_TOOL"]

APPROVED_BASIS: ContextVar[str | None] = ContextVar("llm_do_approved_basis", default=None)
"""The `Preview.basis` that the tool call in this task was approved with; None if no one has been shown a preview."""

CURRENT_TOOL: ContextVar[threading.Event | None] = ContextVar("llm_do_current_tool", default=None)
"""Set when the tool call in this task or worker thread has been abandoned."""
