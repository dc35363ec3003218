"""The digest that binds an approval to the call it was granted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import digest

__all__ = ["call_digest", "written_call", "written_digest"]


def call_digest(call: ToolCallInfo) -> str:
    """Return the digest of a call as a person approves it: its agent, tool and arguments.

    It includes the resolved arguments: a call whose path now leads somewhere else is a different call.
    """
    return digest([call.path, call.toolset, call.tool_name, call.args, call.resolved])


def written_call(call: ToolCallInfo) -> dict[str, Any]:
    """Return a call as it is written in a file; its digest there is that of `call_digest`.

    Raises:
        ValueError: JSON doesn't keep its arguments as they are.
    """
    shown = {
        "agent": call.path,
        "toolset": call.toolset,
        "tool": call.tool_name,
        "args": dict(call.args),
        "resolved": dict(call.resolved),
    }
    try:
        written: dict[str, Any] = json.loads(json.dumps(shown, allow_nan=False))
    except TypeError as error:
        raise ValueError(str(error)) from error
    if written_digest(written) != call_digest(call):
        raise ValueError("it wouldn't be read back as the same call")
    return written


def written_digest(call: Mapping[str, Any]) -> str:
    """Return the digest of a call that was read from a file."""
    return digest([call.get("agent"), call.get("toolset"), call.get("tool"), call.get("args"), call.get("resolved")])
