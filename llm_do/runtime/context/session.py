"""`Session`: what calls take from the session they belong to. `llm_do.runtime.runtime.Runtime` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic_ai import Tool
    from pydantic_ai.models import Model
    from pydantic_ai.toolsets import AbstractToolset

    from llm_do.models.pool import ModelPool
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.project.project import Project, RuntimeSettings
    from llm_do.project.registry import Registry
    from llm_do.runtime.approval.approver import Approver
    from llm_do.runtime.context.built_agent import BuiltAgent
    from llm_do.runtime.context.resources import Resources
    from llm_do.runtime.context.shared import Shared
    from llm_do.runtime.context.user_questions import AskUser
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.record.transport import Transport

__all__ = ["Builder", "Session", "SessionConfig", "recording_setting"]


class Builder(Protocol):
    """Builds agents and tools, each once a project."""

    def build(self, spec: AgentSpec) -> BuiltAgent:
        """The agent of a declaration, ready to run."""
        ...

    async def prepare(self, spec: AgentSpec) -> None:
        """Do what takes long in building an agent, and let others continue meanwhile."""
        ...

    def toolset(self, name: str) -> AbstractToolset[Any] | None:
        """The toolset of a name; None if there is none."""
        ...

    def tool(self, item: Any, name: str | None = None) -> Tool[Any]:
        """The tool of a function or a tool object."""
        ...


class SessionConfig(Protocol):
    """What runs and calls take from a session's configuration; `RuntimeConfig` says what each means."""

    @property
    def settings(self) -> RuntimeSettings: ...
    @property
    def model(self) -> str | Sequence[str] | Model | None: ...
    @property
    def models(self) -> Mapping[str, str | Model]: ...
    @property
    def named_models(self) -> dict[str, str]: ...
    @property
    def max_steps(self) -> int | None: ...
    @property
    def record(self) -> bool | None: ...
    @property
    def store(self) -> ThreadStore | Path | str | None: ...
    @property
    def env_file(self) -> str | None: ...
    @property
    def transport(self) -> Transport | None: ...
    @property
    def frozen(self) -> bool: ...
    @property
    def durable(self) -> bool: ...
    @property
    def kept_options(self) -> dict[str, Any]: ...
    @property
    def retry_delay(self) -> float: ...
    @property
    def ask_user(self) -> AskUser | None: ...
    @property
    def notice(self) -> Callable[[str], None]: ...
    @property
    def denials_go_to_model(self) -> bool: ...


class Session(Protocol):
    """A session over one project."""

    approver: Approver
    pool: ModelPool
    project: Project
    registry: Registry
    resources: Resources
    running: set[tuple[asyncio.AbstractEventLoop, Callable[[], object]]]
    shared: Shared

    @property
    def config(self) -> SessionConfig:
        """Its configuration."""
        ...

    @property
    def builder(self) -> Builder:
        """Builds the agents of `registry`."""
        ...

    def register_agents(self, agents: Mapping[str, AgentSpec]) -> None:
        """Add agents late."""
        ...

    def register_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Add functions late."""
        ...

    def register_toolsets(self, toolsets: Mapping[str, Any]) -> None:
        """Register toolsets or toolset factories."""
        ...


def recording_setting(session: Session) -> bool | None:
    """Whether a session's runs are recorded; None if only those with a thread or a user are."""
    project, config = session.project, session.config
    if not project.record and config.store is None and project.threads.store != "memory":
        return False
    return config.record
