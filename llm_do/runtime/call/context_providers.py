"""What is added to an agent's instructions when it is called: its thread's prompt, and what functions provide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.project.faults import find_fault

if TYPE_CHECKING:
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.project.thread_config import ThreadConfig
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["TIME_LIMIT", "ContextProvider", "dynamic_instructions"]

TIME_LIMIT = 10.0
"""Seconds that a provider may take unless it sets its own limit."""


@frozen
class ContextProvider:
    """A function that adds run-time context to an agent's instructions, such as what a search has found.

    Args:
        function: Takes the `CallContext`, sync or async; returns text, or None for nothing.
        time_limit: Seconds it may take; then the agent runs without it, with a warning.
        name: What it is called in warnings; None takes the function's name.

    Example:
        >>> provider = ContextProvider(lambda ctx: "Today is a holiday.", time_limit=2, name="calendar")
        >>> provider.label
        'calendar'
    """

    function: Callable[[CallContext], Any]
    time_limit: float = TIME_LIMIT
    name: str | None = None

    @property
    def label(self) -> str:
        """What it is called in warnings."""
        return self.name or getattr(self.function, "__name__", type(self.function).__name__)

    async def provide(self, ctx: CallContext) -> str | None:
        """What it adds for one call; None for nothing, also when it fails or takes too long.

        Args:
            ctx: The call of the agent.
        """
        timer = asyncio.timeout(self.time_limit)
        try:
            async with timer:
                text = await call_function(self.function, ctx)
            return str(text) if text else None
        except BaseException as error:  # noqa: BLE001 (an agent can run without what it would have added)
            reraise_if_cancelled(error)
            if isinstance(error, TimeoutError) and timer.expired():
                took = f"took longer than {self.time_limit:g} s; continuing without it"
                ctx.warn(f"the context provider {self.label} {took}")
                return None
            ctx.warn(f"the context provider {self.label} failed: {find_fault(error, ctx.project.root)}")
            return None


async def dynamic_instructions(ctx: CallContext, spec: AgentSpec, thread: ThreadConfig | None) -> str | None:
    """What is added to an agent's own instructions for one call."""
    parts = [thread.system_prompt] if thread is not None and thread.system_prompt else []
    functions = [*ctx.project.context_providers, *spec.context_providers]
    if functions:
        providers = [item if isinstance(item, ContextProvider) else ContextProvider(item) for item in functions]
        parts += [text for text in await asyncio.gather(*(each.provide(ctx) for each in providers)) if text]
    return "\n\n".join(parts) or None
