"""`AdmittedCapability`: of a capability that was judged, what its agent's runs have.

Its tools are in the agent's toolbox, and those that a provider runs are among the agent's own. What is left is called
from here: instructions, model settings, and what it does before and after a run or a request. Nothing else of it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext

from llm_do.errors import EntryError, RunError
from llm_do.project.capabilities import CapabilityError, admit, admitted_of, give_capabilities
from llm_do.runtime.context.call_context import current_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.run import AgentRunResult

    from llm_do.project.agent_spec import AgentSpec

__all__ = ["AdmittedCapability", "take_capabilities"]


@dataclass
class AdmittedCapability(AbstractCapability[Any]):
    """What a judged capability adds to the runs of its agent.

    Args:
        inner: The capability.
        name: What it is called.
    """

    inner: AbstractCapability[Any]
    name: str

    def get_instructions(self) -> Any:
        """Return its instructions."""
        return self.inner.get_instructions()

    def get_model_settings(self) -> Any:
        """Return its model settings; they can't change the connection, which isn't theirs."""
        return self.inner.get_model_settings()

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return it as it is in one run; what it makes of itself is judged as well."""
        made = await self.inner.for_run(ctx)
        if made is self.inner:
            return self
        try:
            (admitted,) = admit(made, self.name)
        except (CapabilityError, ValueError) as error:
            raise _fault(f"{error}: its `for_run` made it") from error
        return AdmittedCapability(admitted.capability, self.name, id=self.id)

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Let it begin."""
        await self.inner.before_run(ctx)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Let it change the result, before guards see it."""
        return await self.inner.after_run(ctx, result=result)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Let it change messages and settings, but neither the model, whose requests are recorded, nor the tools."""
        model, tools = request_context.model, _tools(request_context)
        changed = await self.inner.before_model_request(ctx, request_context)
        if changed.model is not model:
            raise _fault(f"the capability {self.name} changed the model of a request, which `model` chooses")
        if _tools(changed) != tools:
            raise _fault(f"the capability {self.name} changed the tools of a request, which policy has seen")
        return changed

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Let it change the response, whose tool calls then take every step."""
        return await self.inner.after_model_request(ctx, request_context=request_context, response=response)


def _tools(request_context: ModelRequestContext) -> list[int]:
    """What a request offers to call: the definitions themselves."""
    parameters = request_context.model_request_parameters
    return [*map(id, parameters.function_tools), *map(id, parameters.native_tools)]


def _fault(text: str) -> EntryError:
    hint = "remove it from the agent's `capabilities`, or correct its class"
    return EntryError(text, hint=hint, agent_path=current_call().path)


def take_capabilities(spec: AgentSpec, own: Mapping[str, type[Any]]) -> list[AbstractCapability[Any]]:
    """Give an agent what its capabilities add, unless the linker has, and return what is left of each.

    Args:
        spec: The agent.
        own: The classes that the project's Python files register, by name.

    Raises:
        RunError: It can't have one of them.
    """
    if not spec.capabilities:
        return []
    faults = give_capabilities(spec, own)
    if faults:
        spec.capabilities = (*spec.capabilities, *(item for item, _ in faults))  # refused again at the next call
        fault = faults[0][1]
        raise RunError(f"agent {spec.name!r}: {fault.message}", hint=fault.hint or "Remove it.", agent_path=spec.name)
    return [AdmittedCapability(each.capability, each.name, id=each.capability.id) for each in admitted_of(spec)]
