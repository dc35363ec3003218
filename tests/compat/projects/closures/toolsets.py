"""A factory is called for each call of an agent; the handles it gives out are that call's own."""

from typing import Any

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from llm_do.runtime import CallContext

BUILT: list[str] = []


def build_notes(_ctx: RunContext[CallContext]) -> AbstractToolset[Any]:
    handles: dict[str, list[str]] = {}
    BUILT.append("notes")
    toolset: FunctionToolset[CallContext] = FunctionToolset()

    @toolset.tool
    def open_notes(ctx: RunContext[CallContext], title: str) -> str:
        """Open a page of notes and return its handle."""
        handle = f"notes-{len(handles) + 1}"
        handles[handle] = [f"{title} by {ctx.deps.path}"]
        return handle

    @toolset.tool
    def append(ctx: RunContext[CallContext], handle: str, line: str) -> str:
        """Append a line to a page."""
        handles[handle].append(line)
        return "; ".join(handles[handle])

    return toolset


TOOLSETS = {"notes": build_notes}
