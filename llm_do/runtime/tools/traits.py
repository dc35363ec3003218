"""Traits: what only the runtime needs to know of a tool, its facts and its toolset's functions, in the tool's metadata.

A toolset may omit them; its tools are then ordinary ones that need approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.project.tools.declared_facts import FACTS_KEY

if TYPE_CHECKING:
    from pydantic_ai import RunContext, ToolDefinition

    from llm_do.files.code_watch import CodeWatch
    from llm_do.machines.tool_gate import ToolGate
    from llm_do.policy.values import Decision, Effect, Resolved, ToolCallInfo
    from llm_do.project.skill import Skill

__all__ = ["TRAITS_KEY", "BuiltinContext", "Preview", "ToolTraits", "traits_of"]

TRAITS_KEY = "llm_do"
"""The key of a tool definition's metadata that holds its `ToolTraits`."""


@frozen
class Preview:
    """What a call would change, for a person to see.

    Args:
        diff: A unified diff; None if the call changes no existing file.
        basis: A digest of what the diff was made from: an approval doesn't hold if it has changed since.
        shown: The names of arguments whose text the diff shows completely, but for what doesn't change.
    """

    diff: str | None
    basis: str
    shown: tuple[str, ...] = ()


@frozen
class ToolTraits:
    """A tool's facts, its origin, and its toolset's functions for one call.

    Args:
        facts: The tool's facts.
        toolset: Registered name of its toolset; None for a plain function.
        tool: Its own name in the toolset, without a prefix.
        approval: A decision for all arguments, from metadata or pre-approval.
        decide: The toolset's own decision about a call; None from it leaves the call to the policy.
        requires: Whether PydanticAI's `approval_required` wrappers require approval for these arguments.
        resolve: Resolves arguments for rules to match: a path below the root, a command's words.
        restrict: Resolves further arguments, for rules that deny or ask.
        describe: Returns the first sentence of an approval question.
        preview: Returns what the call would change.
        check: Raises `ToolError` if the call is bound to fail, so that no one is asked about it.
        timeout: Seconds that a call may take; None for the agent's timeout.
        unchecked: Whether its validator checks nothing, so that its JSON Schema must be checked.
        gate: Its gate in its toolkit's state machine.
        succeeded: Whether a result counts as success for state machines; None counts every result. A command that
            ended with an error code has a result, and has not succeeded.
        function: The project's function that it runs, for messages; None if it isn't known.
        new_tool: Whether its server has added it since its tools were reviewed.
        new_arguments: Arguments that its server has added since then.
        exactly_once: Whether its effect is kept together with the step of a durable run that it belongs to: a call that
            was running when the run stopped may be made again, and has its effect once.
        restore: Takes the `CallContext` and the arguments of a call that is replayed, in a durable run that is resumed,
            and restores what the call had changed in the session.
        undoable: Whether it changes nothing but files, through `Root`, which keeps what they replace.
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
    preview: Callable[[Mapping[str, Any]], Preview] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    timeout: float | None = None
    unchecked: bool = False
    gate: ToolGate | None = None
    succeeded: Callable[[Any], bool] | None = None
    function: Callable[..., Any] | None = None
    new_tool: bool = False
    new_arguments: tuple[str, ...] = ()
    exactly_once: bool = False
    restore: Callable[[Any, Mapping[str, Any]], None] | None = None
    undoable: bool = False

    @property
    def may_run_again(self) -> bool:
        """Whether a call that was running when a durable run stopped may simply be made again."""
        return self.facts.repeatable or self.exactly_once

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of a built-in tool: its facts, as any toolset may declare them, and these traits."""
        return {FACTS_KEY: self.facts, TRAITS_KEY: self}


def traits_of(metadata: Mapping[str, Any] | None) -> ToolTraits | None:
    """Return the traits in a tool's metadata; None if it has none."""
    return metadata.get(TRAITS_KEY) if metadata else None


@frozen
class BuiltinContext:
    """The context that a built-in toolset is built from.

    Args:
        name: The name it is registered under.
        project_root: The project's folder.
        cwd: The working directory of the process.
        python_files: The project's listed Python files.
        watch: The watch over the project's code; None for one that knows only of `python_files`.
        sandbox: How the project's commands are confined.
        skills: The skills of the agent that gets it.
    """

    name: str
    project_root: Path
    cwd: Path
    python_files: Sequence[Path] = ()
    watch: CodeWatch | None = None
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    skills: Sequence[Skill] = ()

    @property
    def code_watch(self) -> CodeWatch:
        """The watch over the project's code."""
        if self.watch is not None:
            return self.watch
        from llm_do.files.code_files import CodeFiles
        from llm_do.files.code_watch import watch_code

        return watch_code(CodeFiles(self.project_root, listed=self.python_files))
