"""What only the runtime has to know of a tool: its facts with its toolset's functions, in the tool's metadata.

A toolset of any origin may leave it out: then the tool is an ordinary one that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.declared_facts import FACTS_KEY

if TYPE_CHECKING:
    from pydantic_ai import RunContext, ToolDefinition

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.policy.values import Decision, Effect, Resolved, ToolCallInfo

__all__ = ["TRAITS_KEY", "BuiltinContext", "ToolTraits", "traits_of"]

TRAITS_KEY = "llm_do"
"""The key of a tool definition's metadata under which its `ToolTraits` stand."""


@frozen
class ToolTraits:
    """A tool's facts, where it comes from, and what its toolset can say of one call.

    Args:
        facts: What the tool is.
        toolset: Registered name of its toolset, None for a plain function.
        tool: Its own name there, without a prefix.
        approval: A decision for all arguments, from metadata or pre-approval.
        decide: The toolset's own decision about a call; None from it leaves the call to the policy.
        requires: Whether the approval that PydanticAI's `approval_required` asks for is needed for these arguments.
        resolve: What arguments stand for, for rules to match: a path below the root, a command's words.
        restrict: What more of them stand for, for rules that deny or ask.
        describe: The sentence that an approval question begins with.
        diff: A unified diff of what the call would change, None when it changes no existing file.
        timeout: Seconds a call may take, None takes the agent's.
        unchecked: Its validator checks nothing, so its JSON Schema has to be.
        gate: Its place in its toolkit's state machine.
        succeeded: Whether a result counts as success for state machines; None counts every result. A command that
            ended with an error code has a result, and has not succeeded.
    """

    facts: ToolFacts = ToolFacts()
    toolset: str | None = None
    tool: str = ""
    approval: Effect | None = None
    decide: Callable[[ToolCallInfo], Decision | None] | None = None
    requires: Callable[[RunContext[Any], ToolDefinition, Mapping[str, Any]], bool] | None = None
    resolve: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None = None
    restrict: Callable[[Mapping[str, Any]], Mapping[str, Resolved]] | None = None
    describe: Callable[[Mapping[str, Any]], str] | None = None
    diff: Callable[[Mapping[str, Any]], str | None] | None = None
    timeout: float | None = None
    unchecked: bool = False
    gate: ToolGate | None = None
    succeeded: Callable[[Any], bool] | None = None

    def metadata(self) -> dict[str, Any]:
        """The metadata of a tool of ours: its facts, as anybody's toolset may declare them, and these traits."""
        return {FACTS_KEY: self.facts, TRAITS_KEY: self}


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
    """

    name: str
    project_root: Path
    cwd: Path
    python_files: Sequence[Path] = ()
