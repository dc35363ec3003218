"""The path from which 0.3's projects import `get_display_text`: see `llm_do.compat`."""

from __future__ import annotations

from llm_do.compat.prompt_text import get_display_text as get_display_text

__all__ = ["get_display_text"]
