"""The runtime executes a linked `Project` and returns a `RunResult`. Only it starts agent runs.

0.3's projects import these names from here (see `llm_do.compat`); a name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {
    "AgentArgs": "llm_do.project.inputs",
    "AgentEntry": "llm_do.runtime.session.entries",
    "AgentSpec": "llm_do.project.agent_spec",
    "ApprovalDecision": "llm_do.runtime.approval.broker",
    "ApprovalRequest": "llm_do.runtime.approval.broker",
    "Attachment": "llm_do.project.inputs",
    "CallConfig": "llm_do.runtime.context.call_frame",
    "CallContext": "llm_do.runtime.context.call_context",
    "CallFrame": "llm_do.runtime.context.call_frame",
    "CallScope": "llm_do.runtime.call.call_scope",
    "Entry": "llm_do.runtime.session.entries",
    "FunctionEntry": "llm_do.runtime.session.entries",
    "NullModel": "llm_do.runtime.context.null_model",
    "PromptContent": "llm_do.project.inputs",
    "PromptInput": "llm_do.project.inputs",
    "RunApprovalPolicy": "llm_do.runtime.approval.broker",
    "RunResult": "llm_do.runtime.record.results",
    "Runtime": "llm_do.runtime.runtime",
    "RuntimeConfig": "llm_do.runtime.session.runtime_config",
    "ToolsetDef": "llm_do.project.agent_spec",
    "ToolsetFunc": "llm_do.project.agent_spec",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.project.agent_spec import AgentSpec as AgentSpec, ToolsetDef as ToolsetDef, ToolsetFunc as ToolsetFunc
    from llm_do.project.inputs import (
        AgentArgs as AgentArgs,
        Attachment as Attachment,
        PromptContent as PromptContent,
        PromptInput as PromptInput,
    )
    from llm_do.runtime.approval.broker import (
        ApprovalDecision as ApprovalDecision,
        ApprovalRequest as ApprovalRequest,
        RunApprovalPolicy as RunApprovalPolicy,
    )
    from llm_do.runtime.call.call_scope import CallScope as CallScope
    from llm_do.runtime.context.call_context import CallContext as CallContext
    from llm_do.runtime.context.call_frame import CallConfig as CallConfig, CallFrame as CallFrame
    from llm_do.runtime.context.null_model import NullModel as NullModel
    from llm_do.runtime.record.results import RunResult as RunResult
    from llm_do.runtime.runtime import Runtime as Runtime
    from llm_do.runtime.session.entries import AgentEntry as AgentEntry, Entry as Entry, FunctionEntry as FunctionEntry
    from llm_do.runtime.session.runtime_config import RuntimeConfig as RuntimeConfig
