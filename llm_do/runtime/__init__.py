"""The runtime: a linked `Project` becomes a `RunResult`. It is the only starter of agent runs.

Names that projects import from here are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._lazy import lazy_exports

_EXPORTS = {
    "AgentArgs": "llm_do.project.inputs",
    "AgentEntry": "llm_do.runtime.entries",
    "AgentSpec": "llm_do.project.agents",
    "ApprovalDecision": "llm_do.runtime.approvals",
    "ApprovalRequest": "llm_do.runtime.approvals",
    "Attachment": "llm_do.project.inputs",
    "CallConfig": "llm_do.runtime.call",
    "CallContext": "llm_do.runtime.context",
    "CallFrame": "llm_do.runtime.call",
    "CallScope": "llm_do.runtime.call",
    "Entry": "llm_do.runtime.entries",
    "FunctionEntry": "llm_do.runtime.entries",
    "NullModel": "llm_do.runtime.null_model",
    "PromptContent": "llm_do.project.inputs",
    "PromptInput": "llm_do.project.inputs",
    "RunApprovalPolicy": "llm_do.runtime.approvals",
    "RunResult": "llm_do.runtime.results",
    "Runtime": "llm_do.runtime.runtime",
    "RuntimeConfig": "llm_do.runtime.config",
    "ToolsetDef": "llm_do.project.agents",
    "ToolsetFunc": "llm_do.project.agents",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.project.agents import AgentSpec as AgentSpec
    from llm_do.project.agents import ToolsetDef as ToolsetDef
    from llm_do.project.agents import ToolsetFunc as ToolsetFunc
    from llm_do.project.inputs import AgentArgs as AgentArgs
    from llm_do.project.inputs import Attachment as Attachment
    from llm_do.project.inputs import PromptContent as PromptContent
    from llm_do.project.inputs import PromptInput as PromptInput
    from llm_do.runtime.approvals import ApprovalDecision as ApprovalDecision
    from llm_do.runtime.approvals import ApprovalRequest as ApprovalRequest
    from llm_do.runtime.approvals import RunApprovalPolicy as RunApprovalPolicy
    from llm_do.runtime.call import CallConfig as CallConfig
    from llm_do.runtime.call import CallFrame as CallFrame
    from llm_do.runtime.call import CallScope as CallScope
    from llm_do.runtime.config import RuntimeConfig as RuntimeConfig
    from llm_do.runtime.context import CallContext as CallContext
    from llm_do.runtime.entries import AgentEntry as AgentEntry
    from llm_do.runtime.entries import Entry as Entry
    from llm_do.runtime.entries import FunctionEntry as FunctionEntry
    from llm_do.runtime.null_model import NullModel as NullModel
    from llm_do.runtime.results import RunResult as RunResult
    from llm_do.runtime.runtime import Runtime as Runtime
