"""What the runtime has to know of a tool besides its schema; it travels in the tool's metadata.

A toolset of any origin may leave it out: then the tool is an ordinary one that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._frozen import frozen

if TYPE_CHECKING:
    from pydantic_ai import RunContext, ToolDefinition

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.policy.values import Effect, Resolved, ToolCallInfo, ToolKind, Verdict

__all__ = ["TRAITS_KEY", "BuiltinContext", "ToolTraits", "traits_of"]

TRAITS_KEY = "llm_do"
"""The key of a tool definition's metadata under which its `ToolTraits` stand."""


@frozen
class ToolTraits:
    """One tool's relation to policy, limits and people.

    Args:
        kind: What stands behind the tool.
        toolset: Registered name of its toolset, None for a plain function.
        tool: Its own name there, without a prefix.
        approval: A verdict for all arguments, from metadata or pre-approval.
        harmless: Why it does no harm, where its kind is allowed by default; None says it for the kind.
        verdict: The toolset's verdict for these arguments; None from it is no opinion.
        requires: Whether the approval that PydanticAI's `approval_required` asks for is needed for these arguments.
        resolve: What arguments stand for, for rules to match: a path below the root, a command's words.
        notice: What more of them stand for, for rules that deny or ask.
        primary: The argument that a rule's `tool(PATTERN)` matches.
        describe: The sentence that an approval question begins with.
        diff: A unified diff of what the call would change, None when it changes no existing file.
        timeout: Seconds a call may take, None takes the agent's.
        unchecked: Its validator checks nothing, so its JSON Schema has to be.
        gate: Its place in its toolkit's state machine.
        succeeded: Whether a result counts as success for state machines; None counts every result. A command that
            ended with an error code has a result, and has not succeeded.
    """

    kind: ToolKind = "function"
    toolset: str | None = None
    tool: str = ""
    approval: Effect | None = None
    harmless: str | None = None
    verdict: Callable[[ToolCallInfo], Verdict | None] | None = None
    requires: Callable[[RunContext[Any], ToolDefinition, Mapping[str, Any]], bool] | None = None
    resolve: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None = None
    notice: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None = None
    primary: str | tuple[str, ...] | None = None
    describe: Callable[[Mapping[str, Any]], str] | None = None
    diff: Callable[[Mapping[str, Any]], str | None] | None = None
    timeout: float | None = None
    unchecked: bool = False
    gate: ToolGate | None = None
    succeeded: Callable[[Any], bool] | None = None


def traits_of(metadata: Mapping[str, Any] | None) -> ToolTraits | None:
    """The traits in a tool's metadata, None where it has none."""
    return metadata.get(TRAITS_KEY) if metadata else None


@frozen
class BuiltinContext:
    """What a built-in toolset is made from.

    Args:
        name: The name it is registered under.
        project_root: The project's folder.
        cwd: The working directory of the process.
        python_files: The project's listed Python files.
        options: Its configuration.
    """

    name: str
    project_root: Path
    cwd: Path
    python_files: Sequence[Path] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
