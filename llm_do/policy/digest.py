"""The digest that binds an approval to the call it was granted for."""

from __future__ import annotations

from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import digest

__all__ = ["call_digest"]


def call_digest(call: ToolCallInfo) -> str:
    """Return the digest of a call as a person approves it: its agent, tool and arguments.

    It includes the resolved arguments: a call whose path now leads somewhere else is a different call.
    """
    return digest([call.path, call.toolset, call.tool_name, call.args, call.resolved])
