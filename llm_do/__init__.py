"""llm-do runs projects made of language-model agents and Python code, called by name in one convention.

Everything public is here, imported when it is first used: `import llm_do` alone imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._lazy import lazy_exports

__version__ = "0.4.0"

_EXPORTS = {
    "AbortedError": "llm_do.errors",
    "AgentArgs": "llm_do.project.inputs",
    "AgentEntry": "llm_do.runtime.entries",
    "AgentSpec": "llm_do.project.agents",
    "AgentToolset": "llm_do.toolsets.agent",
    "ApprovalDecision": "llm_do.runtime.approvals",
    "ApprovalRequest": "llm_do.runtime.approvals",
    "ApprovalToolset": "llm_do.toolsets.approval",
    "Attachment": "llm_do.project.inputs",
    "BudgetError": "llm_do.errors",
    "CallContext": "llm_do.runtime.context",
    "DepthLimitError": "llm_do.errors",
    "Diagnostic": "llm_do.spec.diagnostics",
    "EntryError": "llm_do.errors",
    "EventBus": "llm_do.runtime.events",
    "FunctionEntry": "llm_do.runtime.entries",
    "HookPoint": "llm_do.runtime.hooks",
    "InputError": "llm_do.errors",
    "LimitError": "llm_do.errors",
    "LinkError": "llm_do.errors",
    "LlmDoError": "llm_do.errors",
    "LoopError": "llm_do.errors",
    "ModelBehaviourError": "llm_do.errors",
    "ModelError": "llm_do.errors",
    "ModelUnavailableError": "llm_do.errors",
    "NullModel": "llm_do.runtime.null_model",
    "PermissionDeniedError": "llm_do.errors",
    "Project": "llm_do.project.project",
    "PromptContent": "llm_do.project.inputs",
    "PromptInput": "llm_do.project.inputs",
    "ProviderError": "llm_do.errors",
    "RunApprovalPolicy": "llm_do.runtime.approvals",
    "RunError": "llm_do.errors",
    "RunResult": "llm_do.runtime.results",
    "RunTimeoutError": "llm_do.errors",
    "Runtime": "llm_do.runtime.runtime",
    "RuntimeConfig": "llm_do.runtime.config",
    "StepLimitError": "llm_do.errors",
    "StoreError": "llm_do.errors",
    "Tool": "llm_do.tools",
    "ToolError": "llm_do.errors",
    "ToolFailedError": "llm_do.errors",
    "ToolsetDef": "llm_do.project.agents",
    "ToolsetFunc": "llm_do.project.agents",
    "Usage": "llm_do.runtime.results",
    "UsageError": "llm_do.errors",
    "register_model_factory": "llm_do.models.factories",
    "resolve_model": "llm_do.models.pool",
    "run": "llm_do.runtime.runner",
    "tool": "llm_do.tools",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.errors import (
        AbortedError as AbortedError,
    )
    from llm_do.errors import (
        BudgetError as BudgetError,
    )
    from llm_do.errors import (
        DepthLimitError as DepthLimitError,
    )
    from llm_do.errors import (
        EntryError as EntryError,
    )
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
        RunTimeoutError as RunTimeoutError,
    )
    from llm_do.errors import (
        StepLimitError as StepLimitError,
    )
    from llm_do.errors import (
        StoreError as StoreError,
    )
    from llm_do.errors import (
        ToolError as ToolError,
    )
    from llm_do.errors import (
        ToolFailedError as ToolFailedError,
    )
    from llm_do.errors import (
        UsageError as UsageError,
    )
    from llm_do.models.factories import register_model_factory as register_model_factory
    from llm_do.models.pool import resolve_model as resolve_model
    from llm_do.project.agents import AgentSpec as AgentSpec
    from llm_do.project.agents import ToolsetDef as ToolsetDef
    from llm_do.project.agents import ToolsetFunc as ToolsetFunc
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
    from llm_do.runtime.approvals import (
        ApprovalDecision as ApprovalDecision,
    )
    from llm_do.runtime.approvals import (
        ApprovalRequest as ApprovalRequest,
    )
    from llm_do.runtime.approvals import (
        RunApprovalPolicy as RunApprovalPolicy,
    )
    from llm_do.runtime.config import RuntimeConfig as RuntimeConfig
    from llm_do.runtime.context import CallContext as CallContext
    from llm_do.runtime.entries import AgentEntry as AgentEntry
    from llm_do.runtime.entries import FunctionEntry as FunctionEntry
    from llm_do.runtime.events import EventBus as EventBus
    from llm_do.runtime.hooks import HookPoint as HookPoint
    from llm_do.runtime.null_model import NullModel as NullModel
    from llm_do.runtime.results import RunResult as RunResult
    from llm_do.runtime.results import Usage as Usage
    from llm_do.runtime.runner import run as run
    from llm_do.runtime.runtime import Runtime as Runtime
    from llm_do.spec.diagnostics import Diagnostic as Diagnostic
    from llm_do.tools import Tool as Tool
    from llm_do.tools import tool as tool
    from llm_do.toolsets.agent import AgentToolset as AgentToolset
    from llm_do.toolsets.approval import ApprovalToolset as ApprovalToolset
