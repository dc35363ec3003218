"""`ProjectSession`: a session over one project, as far as it goes without running anything.

It has the configuration, the names that can be called, subscribers, and what all runs share. `Runtime` adds the runs.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from llm_do.errors import LinkError, UsageError
from llm_do.formats.lock import FILE, Lock
from llm_do.models.pool import ModelPool
from llm_do.models.providers.env_files import keys_of
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.project import Project
from llm_do.project.registry import NAME_PATTERN, Registered
from llm_do.runtime.agents.agent_builder import AgentBuilder, builder_of
from llm_do.runtime.agents.spec_faults import check_spec
from llm_do.runtime.approval.approver import Approver
from llm_do.runtime.context.resources import Resources
from llm_do.runtime.context.shared import Shared
from llm_do.runtime.record.events.event import EVENT_TYPES, Event
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.project_variables import file_variables
from llm_do.runtime.record.results import Usage
from llm_do.runtime.session.option_checks import warn_of_idle_patterns
from llm_do.runtime.session.run_options import RuntimeOptions, check_options
from llm_do.runtime.session.runtime_config import RuntimeConfig, patterns_of, policy_of, session_config
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from llm_do.runtime.record.events.event_bus import EventBus

__all__ = ["ProjectSession", "check_names"]


class ProjectSession:
    """What the runs of one project share.

    Args:
        project: The project.
        config: The complete configuration, instead of options.
        options: The keys of `RuntimeOptions`, by name.
    """

    def __init__(
        self, project: Project, *, config: RuntimeConfig | None = None, **options: Unpack[RuntimeOptions]
    ) -> None:
        check_options("Runtime", options, RuntimeOptions.__annotations__)
        if not isinstance(cast("object", project), Project):
            kind = type(cast("object", project)).__name__
            path = isinstance(cast("object", project), str | os.PathLike)
            raise UsageError(
                f"Runtime takes a linked Project, not a value of type {kind}",
                hint="Write Runtime(Project.load(path))."
                if path
                else "`llm_do.run` runs agents and flows of any kind.",
            )
        self.project = project
        self.config = session_config(project, config, options)
        self._unchecked = [(name, text) for name in ("allow", "deny") for text in getattr(self.config, name)]
        if config is not None:  # whoever made it has compared the names, as the command line does, or doesn't want to
            self._unchecked.clear()
        if self.config.frozen:
            _check_packages(project)
        self.registry = project.registry
        self.builder = builder_of(project)
        self.approver = Approver(
            policy_of(project, self.config),
            self.config.approvals,
            function=project.policy_function,
            options=patterns_of("allow", self.config.allow),
            settings=self.config.settings,
            root=project.root,
            lock=project.lock,
            frozen=self.config.frozen,
        )
        for fault in self.approver.saved.faults:
            self.config.notice(f"{fault}; it allows nothing")
        found = file_variables(project.root if project.files else None, self.config.env_file)
        moved = (project.root, project.source) if project.source is not None else None
        self.pool = ModelPool(self.config.notice, keys_of(found), moved)
        self.shared = Shared(project, self.config, found)
        self.resources = Resources()
        self.running: set[tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = set()

    # -- names

    def register_agents(self, agents: Mapping[str, AgentSpec]) -> None:
        """Register agents; calls from now on can find them.

        Args:
            agents: Agents by name; each replaces anything registered under the same name.

        Raises:
            UsageError: A name is invalid, its value is not an agent, or has values that no agent can have.
        """
        for name, agent in agents.items():
            if not isinstance(cast("object", agent), AgentSpec):
                raise UsageError(
                    f"{name!r} can't be registered as an agent: it is a {type(agent).__name__}",
                    hint="pass an AgentSpec",
                )
            check_spec(agent)
        self._register("agent", agents)

    def register_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Register functions that agents can list under `tools` and code can call by name.

        Args:
            tools: Functions or tool objects by name.

        Raises:
            UsageError: A name is invalid.
        """
        self._register("tool", tools)

    def register_toolsets(self, toolsets: Mapping[str, Any]) -> None:
        """Register toolsets or toolset factories.

        Args:
            toolsets: Toolsets or factories by name.

        Raises:
            UsageError: A name is invalid.
        """
        self._register("toolset", toolsets)

    def _register(self, kind: Any, items: Mapping[str, Any]) -> None:
        check_names(kind, items)
        self.registry = self.registry.extended({name: Registered(name, kind, value) for name, value in items.items()})
        self.builder = AgentBuilder(self.project, self.registry)

    # -- events

    def _check_patterns(self) -> None:
        """Warn, at the first run, of patterns in `allow` and `deny` that match nothing that is registered by then."""
        patterns, self._unchecked = self._unchecked, []
        if patterns:
            warn_of_idle_patterns(patterns, self.project, self.registry)

    def on(
        self,
        type: str | None,
        callback: Callable[[Event], object],
        *,
        agent: str | None = None,
        thread: str | None = None,
    ) -> Callable[[], None]:
        """Subscribe to the events of all runs that start from now on.

        Args:
            type: Only events of this type; None receives all. Subscribing to `text` makes providers stream.
            callback: Called with each event, in order. Its exception is logged and never reaches the run.
            agent: Only events of this agent.
            thread: Only events of this thread's runs.

        Returns:
            A function that ends the subscription.

        Raises:
            UsageError: There are no events of this type; or the callback can't be called, or is async: events don't
                wait for callbacks.
        """
        if type is not None and type not in EVENT_TYPES:
            raise UsageError(
                f"there are no events of type {type!r}",
                hint=did_you_mean(str(type), EVENT_TYPES) or f"Types are {', '.join(EVENT_TYPES)}.",
            )
        if not callable(callback):
            raise UsageError(f"an event callback must be a function, not {callback!r}", hint="Pass a function.")
        if iscoroutinefunction(callback) or iscoroutinefunction(callback.__class__.__call__):
            raise UsageError(
                "an event callback can't be async: events don't wait for it",
                hint="Let it put the event into an asyncio.Queue, or iterate over `runtime.stream`.",
            )
        return self.shared.subscribe(Subscription(callback, type, agent, thread))

    @cached_property
    def events(self) -> EventBus:
        """The bus for the application's own events; subscribe to run events with `on`."""
        from llm_do.runtime.record.events.event_bus import EventBus

        return EventBus()

    @property
    def usage(self) -> Usage:
        """The combined usage of all runs of the session."""
        return self.shared.used

    def interrupt(self) -> None:
        """End every active run, as a signal does: tools clean up, and results have the status `interrupted`."""
        for loop, stop in list(self.running):
            with suppress(RuntimeError):  # its loop is already closed
                loop.call_soon_threadsafe(stop)

    async def aclose(self) -> None:
        """Close the session's resources in this event loop."""
        await self.resources.aclose()
        await self.pool.aclose()
        await self.shared.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def check_names(kind: str, names: Iterable[object]) -> None:
    """Raise `UsageError` for a name that nothing registered can have."""
    for name in names:
        if not isinstance(name, str) or re.fullmatch(NAME_PATTERN, name) is None:
            raise UsageError(
                f"{name!r} can't be registered: {kind}s have names that a tool can have",
                hint="Use letters, digits, _ and -, not a digit first, 64 characters at most.",
            )


def _check_packages(project: Project) -> None:
    """Raise `LinkError` unless the packages that a project uses are as its lock has them."""
    lock = project.lock or Lock()
    changes = lock.package_changes({**lock.packages, **project.packages})
    if changes:
        hint = f"`llm-do lock --check` shows the difference, and `llm-do lock` rewrites {FILE}."
        raise LinkError(f"the run is frozen, and packages aren't as {FILE} has them: {'; '.join(changes)}", hint=hint)
