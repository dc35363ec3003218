"""llm-do runs projects made of language-model agents and Python code, called by name in one convention.

Everything public is here, imported when it is first used: `import llm_do` alone imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do import _extensions
from llm_do._startup.lazy import lazy_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__version__ = "0.4.0"

_EXPORTS = {
    "AbortedError": "llm_do.errors",
    "AgentArgs": "llm_do.project.inputs",
    "AgentEntry": "llm_do.runtime.session.entries",
    "AgentSpec": "llm_do.project.agent_spec",
    "AgentState": "llm_do.runtime.record.recording",
    "AgentToolset": "llm_do.toolsets.agent",
    "Answer": "llm_do.runtime.approval.broker",
    "ApprovalDecision": "llm_do.runtime.approval.broker",
    "ApprovalRequest": "llm_do.runtime.approval.broker",
    "ApprovalToolset": "llm_do.toolsets.approval",
    "AssistantMessage": "llm_do.messages",
    "Attachment": "llm_do.project.inputs",
    "BudgetError": "llm_do.errors",
    "CallContext": "llm_do.runtime.context.call_context",
    "CallRecord": "llm_do.runtime.record.results",
    "Context": "llm_do.machines.context",
    "ContextProvider": "llm_do.runtime.call.context_providers",
    "ContextValidationError": "llm_do.errors",
    "ConversationManager": "llm_do.threads.managers.conversation_manager",
    "DepthLimitError": "llm_do.errors",
    "Diagnostic": "llm_do.diagnostics.diagnostic",
    "DynamicArray": "llm_do.machines.dynamic_types",
    "DynamicConditional": "llm_do.machines.dynamic_types",
    "DynamicConst": "llm_do.machines.dynamic_types",
    "DynamicConstraints": "llm_do.machines.dynamic_types",
    "DynamicFiltered": "llm_do.machines.dynamic_types",
    "DynamicFloat": "llm_do.machines.dynamic_types",
    "DynamicFormat": "llm_do.machines.dynamic_types",
    "DynamicInt": "llm_do.machines.dynamic_types",
    "DynamicNested": "llm_do.machines.dynamic_types",
    "DynamicPattern": "llm_do.machines.dynamic_types",
    "DynamicStr": "llm_do.machines.dynamic_types",
    "DynamicUnion": "llm_do.machines.dynamic_types",
    "EntryError": "llm_do.errors",
    "ErrorRecord": "llm_do.runtime.record.results",
    "Event": "llm_do.runtime.record.events",
    "EventBus": "llm_do.runtime.record.event_bus",
    "ExecutionContext": "llm_do.runtime.record.results",
    "FlowSpec": "llm_do.project.flow_spec",
    "FunctionEntry": "llm_do.runtime.session.entries",
    "HandoffLimitError": "llm_do.errors",
    "HookError": "llm_do.errors",
    "HookPoint": "llm_do.runtime.context.hooks",
    "InputError": "llm_do.errors",
    "LimitError": "llm_do.errors",
    "LinkError": "llm_do.errors",
    "LlmDoError": "llm_do.errors",
    "LoopError": "llm_do.errors",
    "MemberFailure": "llm_do.flows.workflow",
    "Message": "llm_do.messages",
    "ModelBehaviourError": "llm_do.errors",
    "ModelError": "llm_do.errors",
    "ModelUnavailableError": "llm_do.errors",
    "NullModel": "llm_do.runtime.context.null_model",
    "Observation": "llm_do.runtime.record.stored_records",
    "ObservationManager": "llm_do.threads.managers.observation_manager",
    "ParallelGroup": "llm_do.flows.swarm",
    "PermissionDeniedError": "llm_do.errors",
    "Project": "llm_do.project.project",
    "PromptContent": "llm_do.project.inputs",
    "PromptInput": "llm_do.project.inputs",
    "ProviderError": "llm_do.errors",
    "RunApprovalPolicy": "llm_do.runtime.approval.broker",
    "RunError": "llm_do.errors",
    "RunInterruptedError": "llm_do.errors",
    "RunResult": "llm_do.runtime.record.results",
    "RunStream": "llm_do.runtime.record.run_stream",
    "RunTimeoutError": "llm_do.errors",
    "Runtime": "llm_do.runtime.runtime",
    "RuntimeConfig": "llm_do.runtime.session.runtime_config",
    "SerialGroup": "llm_do.flows.swarm",
    "StateManager": "llm_do.threads.managers.state_manager",
    "StepLimitError": "llm_do.errors",
    "StoreError": "llm_do.errors",
    "Swarm": "llm_do.flows.swarm",
    "SwarmNode": "llm_do.flows.swarm",
    "SystemMessage": "llm_do.messages",
    "ThreadConfig": "llm_do.project.thread_config",
    "ThreadConflict": "llm_do.errors",
    "ThreadContext": "llm_do.runtime.record.stored_records",
    "Tool": "llm_do.tools",
    "ToolCall": "llm_do.messages",
    "ToolCallInfo": "llm_do.policy.values",
    "ToolError": "llm_do.errors",
    "ToolFacts": "llm_do.policy.tool_facts",
    "ToolFailedError": "llm_do.errors",
    "ToolResult": "llm_do.messages",
    "Toolkit": "llm_do.toolkits.toolkit",
    "ToolkitContext": "llm_do.toolkits.tool_functions",
    "ToolkitError": "llm_do.errors",
    "ToolkitState": "llm_do.machines.machine",
    "ToolsetDef": "llm_do.project.agent_spec",
    "ToolsetFunc": "llm_do.project.agent_spec",
    "Update": "llm_do.tools",
    "Usage": "llm_do.runtime.record.results",
    "UsageError": "llm_do.errors",
    "UserMessage": "llm_do.messages",
    "cache_result": "llm_do.toolkits.decorators",
    "current_state": "llm_do.toolkits.current_state",
    "open_store": "llm_do.threads.opened_stores",
    "rate_limit": "llm_do.toolkits.decorators",
    "register_model_factory": "llm_do.models.providers.factories",
    "resolve_model": "llm_do.models.pool",
    "retry": "llm_do.toolkits.decorators",
    "run": "llm_do.runtime.runner",
    "timeout": "llm_do.toolkits.decorators",
    "to_messages": "llm_do.messages",
    "tool": "llm_do.tools",
}


def _fillers() -> Mapping[str, Callable[[], None]]:
    from llm_do.assembly import FILLERS

    return FILLERS


_extensions.find_fillers = _fillers

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic as Diagnostic
    from llm_do.errors import (
        AbortedError as AbortedError,
    )
    from llm_do.errors import (
        BudgetError as BudgetError,
    )
    from llm_do.errors import ContextValidationError as ContextValidationError
    from llm_do.errors import (
        DepthLimitError as DepthLimitError,
    )
    from llm_do.errors import (
        EntryError as EntryError,
    )
    from llm_do.errors import HandoffLimitError as HandoffLimitError
    from llm_do.errors import HookError as HookError
    from llm_do.errors import (
        InputError as InputError,
    )
    from llm_do.errors import (
        LimitError as LimitError,
    )
    from llm_do.errors import (
        LinkError as LinkError,
    )
    from llm_do.errors import (
        LlmDoError as LlmDoError,
    )
    from llm_do.errors import (
        LoopError as LoopError,
    )
    from llm_do.errors import (
        ModelBehaviourError as ModelBehaviourError,
    )
    from llm_do.errors import (
        ModelError as ModelError,
    )
    from llm_do.errors import (
        ModelUnavailableError as ModelUnavailableError,
    )
    from llm_do.errors import (
        PermissionDeniedError as PermissionDeniedError,
    )
    from llm_do.errors import (
        ProviderError as ProviderError,
    )
    from llm_do.errors import (
        RunError as RunError,
    )
    from llm_do.errors import (
        RunInterruptedError as RunInterruptedError,
    )
    from llm_do.errors import (
        RunTimeoutError as RunTimeoutError,
    )
    from llm_do.errors import (
        StepLimitError as StepLimitError,
    )
    from llm_do.errors import (
        StoreError as StoreError,
    )
    from llm_do.errors import ThreadConflict as ThreadConflict
    from llm_do.errors import (
        ToolError as ToolError,
    )
    from llm_do.errors import (
        ToolFailedError as ToolFailedError,
    )
    from llm_do.errors import ToolkitError as ToolkitError
    from llm_do.errors import (
        UsageError as UsageError,
    )
    from llm_do.flows.swarm import ParallelGroup as ParallelGroup
    from llm_do.flows.swarm import SerialGroup as SerialGroup
    from llm_do.flows.swarm import Swarm as Swarm
    from llm_do.flows.swarm import SwarmNode as SwarmNode
    from llm_do.flows.workflow import MemberFailure as MemberFailure
    from llm_do.machines.context import Context as Context
    from llm_do.machines.dynamic_types import DynamicArray as DynamicArray
    from llm_do.machines.dynamic_types import DynamicConditional as DynamicConditional
    from llm_do.machines.dynamic_types import DynamicConst as DynamicConst
    from llm_do.machines.dynamic_types import DynamicConstraints as DynamicConstraints
    from llm_do.machines.dynamic_types import DynamicFiltered as DynamicFiltered
    from llm_do.machines.dynamic_types import DynamicFloat as DynamicFloat
    from llm_do.machines.dynamic_types import DynamicFormat as DynamicFormat
    from llm_do.machines.dynamic_types import DynamicInt as DynamicInt
    from llm_do.machines.dynamic_types import DynamicNested as DynamicNested
    from llm_do.machines.dynamic_types import DynamicPattern as DynamicPattern
    from llm_do.machines.dynamic_types import DynamicStr as DynamicStr
    from llm_do.machines.dynamic_types import DynamicUnion as DynamicUnion
    from llm_do.machines.machine import ToolkitState as ToolkitState
    from llm_do.messages import AssistantMessage as AssistantMessage
    from llm_do.messages import Message as Message
    from llm_do.messages import SystemMessage as SystemMessage
    from llm_do.messages import ToolCall as ToolCall
    from llm_do.messages import ToolResult as ToolResult
    from llm_do.messages import UserMessage as UserMessage
    from llm_do.messages import to_messages as to_messages
    from llm_do.models.pool import resolve_model as resolve_model
    from llm_do.models.providers.factories import register_model_factory as register_model_factory
    from llm_do.policy.tool_facts import ToolFacts as ToolFacts
    from llm_do.policy.values import ToolCallInfo as ToolCallInfo
    from llm_do.project.agent_spec import AgentSpec as AgentSpec
    from llm_do.project.agent_spec import ToolsetDef as ToolsetDef
    from llm_do.project.agent_spec import ToolsetFunc as ToolsetFunc
    from llm_do.project.flow_spec import FlowSpec as FlowSpec
    from llm_do.project.inputs import (
        AgentArgs as AgentArgs,
    )
    from llm_do.project.inputs import (
        Attachment as Attachment,
    )
    from llm_do.project.inputs import (
        PromptContent as PromptContent,
    )
    from llm_do.project.inputs import (
        PromptInput as PromptInput,
    )
    from llm_do.project.project import Project as Project
    from llm_do.project.thread_config import ThreadConfig as ThreadConfig
    from llm_do.runtime.approval.broker import Answer as Answer
    from llm_do.runtime.approval.broker import (
        ApprovalDecision as ApprovalDecision,
    )
    from llm_do.runtime.approval.broker import (
        ApprovalRequest as ApprovalRequest,
    )
    from llm_do.runtime.approval.broker import (
        RunApprovalPolicy as RunApprovalPolicy,
    )
    from llm_do.runtime.call.context_providers import ContextProvider as ContextProvider
    from llm_do.runtime.context.call_context import CallContext as CallContext
    from llm_do.runtime.context.hooks import HookPoint as HookPoint
    from llm_do.runtime.context.null_model import NullModel as NullModel
    from llm_do.runtime.record.event_bus import EventBus as EventBus
    from llm_do.runtime.record.events import Event as Event
    from llm_do.runtime.record.recording import AgentState as AgentState
    from llm_do.runtime.record.results import CallRecord as CallRecord
    from llm_do.runtime.record.results import ErrorRecord as ErrorRecord
    from llm_do.runtime.record.results import ExecutionContext as ExecutionContext
    from llm_do.runtime.record.results import RunResult as RunResult
    from llm_do.runtime.record.results import Usage as Usage
    from llm_do.runtime.record.run_stream import RunStream as RunStream
    from llm_do.runtime.record.stored_records import Observation as Observation
    from llm_do.runtime.record.stored_records import ThreadContext as ThreadContext
    from llm_do.runtime.runner import run as run
    from llm_do.runtime.runtime import Runtime as Runtime
    from llm_do.runtime.session.entries import AgentEntry as AgentEntry
    from llm_do.runtime.session.entries import FunctionEntry as FunctionEntry
    from llm_do.runtime.session.runtime_config import RuntimeConfig as RuntimeConfig
    from llm_do.threads.managers.conversation_manager import ConversationManager as ConversationManager
    from llm_do.threads.managers.observation_manager import ObservationManager as ObservationManager
    from llm_do.threads.managers.state_manager import StateManager as StateManager
    from llm_do.threads.opened_stores import open_store as open_store
    from llm_do.toolkits.current_state import current_state as current_state
    from llm_do.toolkits.decorators import cache_result as cache_result
    from llm_do.toolkits.decorators import rate_limit as rate_limit
    from llm_do.toolkits.decorators import retry as retry
    from llm_do.toolkits.decorators import timeout as timeout
    from llm_do.toolkits.tool_functions import ToolkitContext as ToolkitContext
    from llm_do.toolkits.toolkit import Toolkit as Toolkit
    from llm_do.tools import Tool as Tool
    from llm_do.tools import Update as Update
    from llm_do.tools import tool as tool
    from llm_do.toolsets.agent import AgentToolset as AgentToolset
    from llm_do.toolsets.approval import ApprovalToolset as ApprovalToolset
