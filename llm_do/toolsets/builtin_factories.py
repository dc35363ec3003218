"""The factories of the built-in toolsets, each imported when an agent first has its toolset.

What is known of their tools without them is `llm_do.project.tools.builtin_toolsets`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["builtin_factory"]


def builtin_factory(kind: str) -> Callable[..., Any]:
    """The factory of a built-in toolset, or of a `type` that the manifest configures."""
    if kind.startswith("filesystem"):
        from llm_do.toolsets import filesystem

        return {
            "filesystem": filesystem.configured,
            "filesystem_cwd": filesystem.filesystem_cwd,
            "filesystem_cwd_ro": filesystem.filesystem_cwd_ro,
            "filesystem_project": filesystem.filesystem_project,
            "filesystem_project_ro": filesystem.filesystem_project_ro,
        }[kind]
    if kind == "http":
        from llm_do.toolsets.http import http

        return http
    if kind.startswith("shell"):
        from llm_do.toolsets import shell

        return {
            "shell": shell.configured,
            "shell_file_ops": shell.shell_file_ops,
            "shell_readonly": shell.shell_readonly,
        }[kind]
    return {
        "ask_user": _ask_user,
        "dynamic_agents": _dynamic_agents,
        "mcp": _mcp,
        "memory": _memory,
        "skills": _skills,
        "todo": _todo,
    }[kind]()


def _ask_user() -> Callable[..., Any]:
    from llm_do.toolsets.ask_user import ask_user

    return ask_user


def _dynamic_agents() -> Callable[..., Any]:
    from llm_do.toolsets.dynamic_agents import dynamic_agents

    return dynamic_agents


def _mcp() -> Callable[..., Any]:
    from llm_do.toolsets.mcp import configured

    return configured


def _memory() -> Callable[..., Any]:
    from llm_do.toolsets.memory import memory

    return memory


def _skills() -> Callable[..., Any]:
    from llm_do.toolsets.skills import skills

    return skills


def _todo() -> Callable[..., Any]:
    from llm_do.toolsets.todo import todo

    return todo
