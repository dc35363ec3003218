"""llm-do runs projects made of language-model agents and Python code, called by name in one convention.

What most programs need is here; `llm_do.toolkits`, `llm_do.threads`, `llm_do.flows` and `llm_do.messages`
have the rest. A name is imported when it is first used: `import llm_do` alone imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do import _extensions
from llm_do._startup.lazy import lazy_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__version__ = "0.5.0"

_EXPORTS = {
    "AbortedError": "llm_do.errors",
    "AgentArgs": "llm_do.project.inputs",
    "AgentEntry": "llm_do.runtime.session.entries",
    "AgentSpec": "llm_do.project.agent_spec",
    "AgentToolset": "llm_do.toolsets.agent",
    "Answer": "llm_do.runtime.approval.broker",
    "ApprovalDecision": "llm_do.runtime.approval.broker",
    "ApprovalRequest": "llm_do.runtime.approval.broker",
    "ApprovalToolset": "llm_do.toolsets.approval",
    "Attachment": "llm_do.project.inputs",
    "BatchBudget": "llm_do.runtime.session.mapped_inputs",
    "BudgetError": "llm_do.errors",
    "CallContext": "llm_do.runtime.context.call_context",
    "CallRecord": "llm_do.runtime.record.results",
    "CassetteMissError": "llm_do.errors",
    "ContextValidationError": "llm_do.errors",
    "DepthLimitError": "llm_do.errors",
    "Diagnostic": "llm_do.diagnostics.diagnostic",
    "DynamicStr": "llm_do.machines.dynamic_types",
    "EntryError": "llm_do.errors",
    "ErrorRecord": "llm_do.runtime.record.results",
    "Event": "llm_do.runtime.record.events.event",
    "EventBus": "llm_do.runtime.record.events.event_bus",
    "ExecutionContext": "llm_do.runtime.record.results",
    "FunctionEntry": "llm_do.runtime.session.entries",
    "GuardError": "llm_do.errors",
    "HandoffLimitError": "llm_do.errors",
    "HookError": "llm_do.errors",
    "HookPoint": "llm_do.runtime.context.hooks",
    "RequestReplacement": "llm_do.runtime.context.hooks",
    "InputError": "llm_do.errors",
    "LimitError": "llm_do.errors",
    "LinkError": "llm_do.errors",
    "LlmDoError": "llm_do.errors",
    "LoopError": "llm_do.errors",
    "ModelBehaviourError": "llm_do.errors",
    "ModelError": "llm_do.errors",
    "ModelUnavailableError": "llm_do.errors",
    "NullModel": "llm_do.runtime.context.null_model",
    "PendingQuestion": "llm_do.runtime.record.store.stored_questions",
    "PermissionDeniedError": "llm_do.errors",
    "Project": "llm_do.project.project",
    "PromptContent": "llm_do.project.inputs",
    "PromptInput": "llm_do.project.inputs",
    "ProviderError": "llm_do.errors",
    "ReplayError": "llm_do.errors",
    "RunApprovalPolicy": "llm_do.runtime.approval.broker",
    "RunError": "llm_do.errors",
    "RunInterruptedError": "llm_do.errors",
    "RunTakenError": "llm_do.errors",
    "RunResult": "llm_do.runtime.record.results",
    "RunStream": "llm_do.runtime.record.run_stream",
    "RunTimeoutError": "llm_do.errors",
    "Runtime": "llm_do.runtime.runtime",
    "RuntimeConfig": "llm_do.runtime.session.runtime_config",
    "StepLimitError": "llm_do.errors",
    "StoreError": "llm_do.errors",
    "SuspendedError": "llm_do.errors",
    "Swarm": "llm_do.flows.swarm",
    "ThreadConflict": "llm_do.errors",
    "Tool": "llm_do.tools",
    "ToolCallInfo": "llm_do.policy.values",
    "ToolError": "llm_do.errors",
    "ToolFacts": "llm_do.policy.tool_facts",
    "ToolFailedError": "llm_do.errors",
    "Toolkit": "llm_do.toolkits.toolkit",
    "ToolkitError": "llm_do.errors",
    "ToolsetDef": "llm_do.project.agent_spec",
    "ToolsetFunc": "llm_do.project.agent_spec",
    "Update": "llm_do.tools",
    "Usage": "llm_do.runtime.record.results",
    "UsageError": "llm_do.errors",
    "current_call": "llm_do.runtime.context.call_context",
    "register_model_factory": "llm_do.models.providers.factories",
    "resolve_model": "llm_do.models.pool",
    "run": "llm_do.runtime.runner",
    "tool": "llm_do.tools",
}


def _fillers() -> Mapping[str, Callable[[], None]]:
    from llm_do.assembly import FILLERS

    return FILLERS


_extensions.find_fillers = _fillers


def _successor(name: str) -> str | None:
    from llm_do.compat.moved_names import successor

    return successor(name)


__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS, _successor)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic as Diagnostic
    from llm_do.errors import (
        AbortedError as AbortedError,
        BudgetError as BudgetError,
        CassetteMissError as CassetteMissError,
        ContextValidationError as ContextValidationError,
        DepthLimitError as DepthLimitError,
        EntryError as EntryError,
        GuardError as GuardError,
        HandoffLimitError as HandoffLimitError,
        HookError as HookError,
        InputError as InputError,
        LimitError as LimitError,
        LinkError as LinkError,
        LlmDoError as LlmDoError,
        LoopError as LoopError,
        ModelBehaviourError as ModelBehaviourError,
        ModelError as ModelError,
        ModelUnavailableError as ModelUnavailableError,
        PermissionDeniedError as PermissionDeniedError,
        ProviderError as ProviderError,
        ReplayError as ReplayError,
        RunError as RunError,
        RunInterruptedError as RunInterruptedError,
        RunTakenError as RunTakenError,
        RunTimeoutError as RunTimeoutError,
        StepLimitError as StepLimitError,
        StoreError as StoreError,
        SuspendedError as SuspendedError,
        ThreadConflict as ThreadConflict,
        ToolError as ToolError,
        ToolFailedError as ToolFailedError,
        ToolkitError as ToolkitError,
        UsageError as UsageError,
    )
    from llm_do.flows.swarm import Swarm as Swarm
    from llm_do.machines.dynamic_types import DynamicStr as DynamicStr
    from llm_do.models.pool import resolve_model as resolve_model
    from llm_do.models.providers.factories import register_model_factory as register_model_factory
    from llm_do.policy.tool_facts import ToolFacts as ToolFacts
    from llm_do.policy.values import ToolCallInfo as ToolCallInfo
    from llm_do.project.agent_spec import AgentSpec as AgentSpec, ToolsetDef as ToolsetDef, ToolsetFunc as ToolsetFunc
    from llm_do.project.inputs import (
        AgentArgs as AgentArgs,
        Attachment as Attachment,
        PromptContent as PromptContent,
        PromptInput as PromptInput,
    )
    from llm_do.project.project import Project as Project
    from llm_do.runtime.approval.broker import (
        Answer as Answer,
        ApprovalDecision as ApprovalDecision,
        ApprovalRequest as ApprovalRequest,
        RunApprovalPolicy as RunApprovalPolicy,
    )
    from llm_do.runtime.context.call_context import CallContext as CallContext, current_call as current_call
    from llm_do.runtime.context.hooks import HookPoint as HookPoint, RequestReplacement as RequestReplacement
    from llm_do.runtime.context.null_model import NullModel as NullModel
    from llm_do.runtime.record.events.event import Event as Event
    from llm_do.runtime.record.events.event_bus import EventBus as EventBus
    from llm_do.runtime.record.results import (
        CallRecord as CallRecord,
        ErrorRecord as ErrorRecord,
        ExecutionContext as ExecutionContext,
        RunResult as RunResult,
        Usage as Usage,
    )
    from llm_do.runtime.record.run_stream import RunStream as RunStream
    from llm_do.runtime.record.store.stored_questions import PendingQuestion as PendingQuestion
    from llm_do.runtime.runner import run as run
    from llm_do.runtime.runtime import Runtime as Runtime
    from llm_do.runtime.session.entries import AgentEntry as AgentEntry, FunctionEntry as FunctionEntry
    from llm_do.runtime.session.mapped_inputs import BatchBudget as BatchBudget
    from llm_do.runtime.session.runtime_config import RuntimeConfig as RuntimeConfig
    from llm_do.toolkits.toolkit import Toolkit as Toolkit
    from llm_do.tools import Tool as Tool, Update as Update, tool as tool
    from llm_do.toolsets.agent import AgentToolset as AgentToolset
    from llm_do.toolsets.approval import ApprovalToolset as ApprovalToolset
