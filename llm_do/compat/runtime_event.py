"""An event with its origin, as 0.3 has it."""

from __future__ import annotations

from typing import Any

from llm_do._startup.frozen import frozen

__all__ = ["RuntimeEvent"]


@frozen
class RuntimeEvent:
    """An event with its origin, which 0.3's projects create and pass on.

    Args:
        agent: Name of the agent it comes from.
        depth: That agent's depth.
        event: What happened.

    Example:
        >>> RuntimeEvent(agent="main", depth=0, event="started").agent
        'main'
    """

    agent: str
    depth: int
    event: Any
