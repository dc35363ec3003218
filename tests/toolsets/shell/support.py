"""Helpers for shell toolsets: a project folder, and calls as the runtime makes them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from llm_do.formats.toolset_config import parse_options
from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.tools.traits import TRAITS_KEY, BuiltinContext, ToolTraits

__all__ = ["OFF", "arun", "configured", "context", "decision", "git", "run", "traits"]


AUTO = SandboxSpec()
OFF = SandboxSpec("off")
"""For tests of what holds without a sandbox too."""


def configured(
    root: Path, name: str = "shell", *, sandbox: SandboxSpec = AUTO, **options: object
) -> FunctionToolset[Any]:
    """Return the toolset that a manifest with these options configures."""
    item = BuiltinToolset(name, {"type": "shell"})
    return item.load()(context(root, name, sandbox), parse_options(name, {"type": "shell", **options}))


def context(root: Path, name: str = "shell", sandbox: SandboxSpec = AUTO) -> BuiltinContext:
    """Return the context that a shell toolset is built from."""
    return BuiltinContext(name, root, root, [root / "tools.py"], sandbox=sandbox)


def traits(toolset: FunctionToolset[Any]) -> ToolTraits:
    """Return the tool's traits."""
    found = (toolset.tools["shell"].metadata or {})[TRAITS_KEY]
    assert isinstance(found, ToolTraits)
    return found


def decision(toolset: FunctionToolset[Any], command: str, **args: object) -> Decision:
    """Return the toolset's decision on a command."""
    decide = traits(toolset).decide
    assert decide is not None
    found = decide(ToolCallInfo("shell", {"command": command, **args}))
    assert found is not None
    return found


def run(toolset: FunctionToolset[Any], command: str, **args: object) -> dict[str, Any]:
    """Run a command without checking whether it is allowed."""
    return asyncio.run(arun(toolset, command, **args))


async def arun(toolset: FunctionToolset[Any], command: str, **args: object) -> dict[str, Any]:
    """Run a command inside an event loop."""
    tool = toolset.tools["shell"]
    validated = tool.function_schema.validator.validate_python({"command": command, **args})
    ctx: RunContext[Any] = RunContext(deps=None, model=TestModel(), usage=RunUsage(), tool_call_id="call")
    return await tool.function_schema.call(validated, ctx)


def git(folder: Path, *words: str) -> str:
    """Run git to prepare a test."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.org",
    }
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
