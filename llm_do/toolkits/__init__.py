"""Toolkits: toolsets whose tools share a context and whose availability is a small state machine.

Contexts, dynamic types of parameters and decorators for tools are exported here, each imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {
    "Context": "llm_do.machines.context",
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
    "Toolkit": "llm_do.toolkits.toolkit",
    "ToolkitContext": "llm_do.toolkits.tool_functions",
    "ToolkitState": "llm_do.machines.machine",
    "Update": "llm_do.tools",
    "cache_result": "llm_do.toolkits.decorators",
    "current_state": "llm_do.toolkits.run_states",
    "rate_limit": "llm_do.toolkits.decorators",
    "retry": "llm_do.toolkits.decorators",
    "timeout": "llm_do.toolkits.decorators",
}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.machines.context import Context as Context
    from llm_do.machines.dynamic_types import (
        DynamicArray as DynamicArray,
        DynamicConditional as DynamicConditional,
        DynamicConst as DynamicConst,
        DynamicConstraints as DynamicConstraints,
        DynamicFiltered as DynamicFiltered,
        DynamicFloat as DynamicFloat,
        DynamicFormat as DynamicFormat,
        DynamicInt as DynamicInt,
        DynamicNested as DynamicNested,
        DynamicPattern as DynamicPattern,
        DynamicStr as DynamicStr,
        DynamicUnion as DynamicUnion,
    )
    from llm_do.machines.machine import ToolkitState as ToolkitState
    from llm_do.toolkits.decorators import (
        cache_result as cache_result,
        rate_limit as rate_limit,
        retry as retry,
        timeout as timeout,
    )
    from llm_do.toolkits.run_states import current_state as current_state
    from llm_do.toolkits.tool_functions import ToolkitContext as ToolkitContext
    from llm_do.toolkits.toolkit import Toolkit as Toolkit
    from llm_do.tools import Update as Update
