"""What code in a tool call can see without a context: whether the call has been abandoned."""

from __future__ import annotations

import threading
from contextvars import ContextVar

__all__ = ["CURRENT_TOOL"]

CURRENT_TOOL: ContextVar[threading.Event | None] = ContextVar("llm_do_current_tool", default=None)
"""Set when the tool call in this task or worker thread has been abandoned."""
