"""What binds an answer to the call it was given for: canonical text of arguments and its digest.

Where answers are kept, and for how long, lives elsewhere.
"""

from __future__ import annotations

from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import digest

__all__ = ["call_digest"]


def call_digest(call: ToolCallInfo) -> str:
    """The digest of what a person is shown of a call: who asks, for which tool, with what.

    What the arguments resolve to belongs to it: a path that has come to lead elsewhere is another call.
    """
    return digest([call.path, call.toolset, call.tool_name, call.args, call.resolved])
