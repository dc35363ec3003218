"""What the manifest's `toolsets` configures, and how an agent's `toolsets` lists them.

What the options do is the toolsets' business; here is only their shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, ValidationError

from llm_do.errors import UsageError
from llm_do.formats.memory_scopes import MEMORY_SCOPES, MemoryScope
from llm_do.formats.toolset_types.http_config import HttpConfig, http_faults
from llm_do.formats.toolset_types.toolset_use import PREFIX
from llm_do.formats.validation.fields import (
    Glob,
    Opt,
    Path,
    Strict,
    Text,
    empty_dict,
    empty_list,
)

__all__ = [
    "CONFIG_MODELS",
    "AnyConfig",
    "FilesystemConfig",
    "HttpConfig",
    "McpConfig",
    "MemoryConfig",
    "ShellConfig",
    "ToolsetConfig",
    "config_faults",
    "option_faults",
    "parse_options",
    "server_faults",
]


class FilesystemConfig(Strict):
    """Files below one folder."""

    type: Literal["filesystem"] = Field(description="Files below one folder.")
    root: Path = Field(default=".", description="The folder, relative to the manifest.")
    read_only: bool = Field(default=False, description="Offer only tools that read.")
    ignore: list[Glob] = Field(
        default_factory=empty_list, description="Globs of paths that are not listed or searched."
    )
    allow_protected: list[Glob] = Field(
        default_factory=empty_list,
        description="Globs of paths that would be blocked (.git, .env, keys) and shall not be.",
    )


class ShellConfig(Strict):
    """Commands, run without a shell."""

    type: Literal["shell"] = Field(description="Commands, run without a shell.")
    allow: list[Text] = Field(
        default_factory=empty_list, description="Commands that run without approval, such as `git log *`."
    )
    read_only: bool = Field(
        default=False, description="Allow commands that only read, and block others that `allow` doesn't list."
    )
    cwd: Path = Field(default=".", description="Where commands run, relative to the manifest.")
    env: list[Text] = Field(default_factory=empty_list, description="Environment variables that commands may see.")
    network: bool = Field(
        default=True,
        description="Whether commands that run without approval may use the network, where there is a sandbox.",
    )


class McpConfig(Strict):
    """An MCP server: a command or a URL."""

    type: Literal["mcp"] = Field(description="An MCP server.")
    command: Opt[Annotated[list[Text], Field(min_length=1)]] = Field(
        default=None, description="The program and its arguments, for a server on this machine; ${NAME} is filled in."
    )
    url: Opt[Text] = Field(default=None, description="The address of a server that speaks streamable HTTP.")
    env: dict[str, str] = Field(
        default_factory=empty_dict,
        description="Environment of the program; ${NAME} and ${NAME:-default} are filled in from ours and `.env`.",
    )
    headers: dict[str, str] = Field(
        default_factory=empty_dict,
        description="HTTP headers; ${NAME} and ${NAME:-default} are filled in from the environment and `.env`.",
    )
    include: list[Text] = Field(
        default_factory=empty_list, description="Globs of the tools to offer; empty offers all."
    )
    exclude: list[Text] = Field(default_factory=empty_list, description="Globs of the tools to leave out.")
    prefix: Opt[Annotated[str, Field(pattern=PREFIX)]] = Field(
        default=None, description="Put before tool names; the server's name by default, empty for none."
    )
    timeout: float = Field(default=20, gt=0, allow_inf_nan=False, description="Seconds to wait for the server.")
    required: bool = Field(default=True, description="Whether a run ends when the server doesn't start.")
    scope: Literal["session", "call"] = Field(
        default="session", description="Whether a server runs as long as the session, or as one call of an agent."
    )


class MemoryConfig(Strict):
    """What an agent remembers for later runs."""

    type: Literal["memory"] = Field(description="What an agent remembers for later runs.")
    scopes: Annotated[list[MemoryScope], Field(min_length=1)] = Field(
        default_factory=lambda: list(MEMORY_SCOPES),
        description="Who shares what is remembered: the runs of a thread, those of a user, all of the project.",
    )
    max_entries: int = Field(
        default=200, ge=1, le=2_000, description="The most memories of a thread, of a user, and of the project."
    )
    max_entry_bytes: int = Field(default=1000, ge=1, le=10_000, description="The most bytes of one memory.")
    max_results: int = Field(default=20, ge=1, le=100, description="The most memories that one call of `recall` gets.")


AnyConfig: TypeAlias = FilesystemConfig | HttpConfig | ShellConfig | MemoryConfig | McpConfig


def server_faults(options: Mapping[str, object]) -> dict[str, str]:
    """Options of an MCP server that have no effect beside the others: name to reason.

    Args:
        options: Its options; empty ones count as absent.

    Example:
        >>> server_faults({"url": "https://example.org/mcp", "env": {"TOKEN": "x"}})
        {'env': 'does nothing beside `url`: it is the environment of a program that `command` starts'}
        >>> server_faults({"command": ["server"], "env": {"TOKEN": "x"}})
        {}
    """
    command, url = bool(options.get("command")), bool(options.get("url"))
    if not command and not url:
        return {"command": "is missing: a server has a `command` or a `url`"}
    if command and url:
        return {"url": "excludes `command`: a server has one of them"}
    faults: dict[str, str] = {}
    if url and options.get("env"):
        faults["env"] = "does nothing beside `url`: it is the environment of a program that `command` starts"
    if command and options.get("headers"):
        faults["headers"] = "does nothing beside `command`: it is sent to a server that has a `url`"
    return faults


def config_faults(options: Mapping[str, object]) -> dict[str, str]:
    """Options of a configured toolset that don't go with its others: name to reason."""
    checks = {"http": http_faults, "mcp": server_faults}
    check = checks.get(str(options.get("type")))
    return check(options) if check is not None else {}


CONFIG_MODELS: Mapping[str, type[AnyConfig]] = {
    "filesystem": FilesystemConfig,
    "http": HttpConfig,
    "shell": ShellConfig,
    "memory": MemoryConfig,
    "mcp": McpConfig,
}
"""The `type` of a configured toolset to its model."""


def option_faults(options: Mapping[str, object]) -> dict[str, str]:
    """What is wrong with the options of a configured toolset, by their names.

    Example:
        >>> option_faults({"type": "filesystem", "read_only": 1, "roots": "x"})
        {'roots': 'is not an option', 'read_only': 'should be a valid boolean'}
    """
    model = CONFIG_MODELS[str(options["type"])]
    found = {name: "is not an option" for name in options if name not in model.model_fields}
    present = {name: value for name, value in options.items() if value is not None and name not in found}
    try:
        model.model_validate(present)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            found.setdefault(str(fault["loc"][0]), fault["msg"].removeprefix("Input ").removeprefix("input "))
    return found or config_faults(present)


def parse_options(name: str, options: Mapping[str, object]) -> AnyConfig:
    """Validate the options of a configured toolset: the manifest's, and over them those of the agent that lists it.

    Raises:
        UsageError: One of them is wrong.
    """
    for option, why in option_faults(options).items():
        raise UsageError(
            f"the toolset {name}: `{option}` {why}",
            hint="correct it under `toolsets` in the manifest or in the agent file; docs/toolsets.md lists the options",
        )
    present = {option: value for option, value in options.items() if value is not None}
    return CONFIG_MODELS[str(options["type"])].model_validate(present)


ToolsetConfig: TypeAlias = Annotated[AnyConfig, Discriminator("type")]
