from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do.runtime import AgentSpec, CallContext
from llm_do.toolsets.agent import agent_as_toolset

delegation: FunctionToolset[CallContext] = FunctionToolset()


@delegation.tool
async def ask_helper(ctx: RunContext[CallContext], question: str) -> str:
    """Ask the helper."""
    return await ctx.deps.call_agent("helper", {"input": question})


oracle = agent_as_toolset(AgentSpec(name="oracle", instructions="Foretell.", description="Foretells."))
