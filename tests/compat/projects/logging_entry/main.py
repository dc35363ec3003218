"""The entry is code: it logs, calls agents by name, and returns a text."""

import logging

from llm_do.runtime import CallContext, PromptInput
from llm_do.runtime.args import get_display_text
from llm_do.runtime.events import RuntimeEvent

logger = logging.getLogger(__name__)
EVENTS: list[RuntimeEvent] = []


async def main(input: PromptInput, ctx: CallContext) -> str:
    text = get_display_text(input.prompt_messages())
    logger.info("summarizing %d characters", len(text))
    EVENTS.append(RuntimeEvent(agent="main", depth=ctx.depth, event=text))
    summary = await ctx.call_agent("summarizer", {"input": text})
    return await ctx.call_agent("critic", {"input": str(summary)})
