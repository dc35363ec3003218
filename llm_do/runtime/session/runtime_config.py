"""`RuntimeConfig`: everything about a session that is fixed when it starts, and the policy it makes with a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.rules import Policy, option_rules
from llm_do.project.project import RuntimeSettings
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.context.user_questions import AskUser

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.project.project import Project
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.session.run_options import RuntimeOptions

__all__ = ["RuntimeConfig", "ignore_notice", "patterns_of", "policy_of", "session_config"]


def ignore_notice(_: str) -> None:
    """Tells nobody."""


@frozen
class RuntimeConfig:
    """A session's policy and limits; frozen.

    Args:
        approvals: Who answers what is asked.
        settings: Limits and modes: the project's, with what the caller changed.
        model: A model for every agent, by name or as an object.
        models: Models for single agents, by agent name.
        allow: Patterns of calls that are allowed when policy asks; a text is one.
        deny: Patterns of calls that are denied; a text is one.
        max_steps: Model requests in one agent run, for every agent; None leaves it to them.
        record: Whether runs are recorded; None records those that have a thread or a user. False never writes to disk.
        store: Where threads and records are kept; None is the project's own store.
        retry_delay: Seconds before the first retry of a model request; it doubles from there.
        ask_user: Puts an agent's question to a person; None when there is nobody to ask.
        notice: Told what a person should know, such as the local model's quality.
    """

    approvals: RunApprovalPolicy = field(default_factory=RunApprovalPolicy)
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    model: str | Sequence[str] | Model | None = None
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    max_steps: int | None = None
    record: bool | None = None
    store: ThreadStore | None = None
    retry_delay: float = 0.5
    ask_user: AskUser | None = None
    notice: Callable[[str], None] = ignore_notice

    def __post_init__(self) -> None:
        # Text is a sequence of texts to Python: its letters, taken for patterns, would deny nothing.
        for name in ("allow", "deny"):
            given: object = getattr(self, name)
            patterns = _listed(given)
            if not all(isinstance(each, str) for each in patterns):
                raise UsageError(f"{name} must be patterns of calls, each a text, not {given!r}")
            object.__setattr__(self, name, patterns)

    @property
    def tell_denials(self) -> bool:
        """Whether a denial goes to the model; else it ends the run."""
        said = self.approvals.return_permission_errors
        return self.settings.return_permission_errors if said is None else said

    @classmethod
    def of(cls, project: Project, **changes: Any) -> RuntimeConfig:
        """The project's own configuration with a caller's changes; those that are None change nothing.

        Args:
            project: The project.
            changes: Fields of this class, or of `RuntimeSettings`.

        Raises:
            UsageError: A limit is none.
            ValueError: `approvals` is none of what it may be.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        _check_limits(given)
        settings = set(RuntimeSettings.__dataclass_fields__) - set(cls.__dataclass_fields__)
        own = {name: given.pop(name) for name in list(given) if name in settings}
        approvals = RunApprovalPolicy.of(given.pop("approvals", None) or project.settings.approval_mode)
        return cls(approvals=approvals, settings=replace(project.settings, **own), **given)


def session_config(project: Project, config: RuntimeConfig | None, options: RuntimeOptions) -> RuntimeConfig:
    """A session's configuration: `config`, or else the project's with the caller's options."""
    if config is None:
        return RuntimeConfig.of(project, **options)
    both = [name for name, value in options.items() if value is not None]
    if both:
        raise UsageError(
            f"{', '.join(both)} can't be combined with config, which is the whole configuration",
            hint="Make the config with them: RuntimeConfig.of(project, ...).",
        )
    return config


def _listed(given: object) -> tuple[object, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return (given,)
    return tuple(cast("Iterable[object]", given))


_LEAST = {
    "max_depth": 1,
    "max_steps": 1,
    "max_retries": 0,
    "loop_threshold": 0,
    "max_concurrency": 1,
    "max_result_bytes": 1,
}
"""The limits that are counts, each with the least that it may be: what a manifest may say."""


def _check_limits(given: Mapping[str, Any]) -> None:
    for name, least in _LEAST.items():
        value = given.get(name, least)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{name} must be a whole number, {least} or more, not {value!r}")
    for name in ("run_timeout", "tool_timeout"):
        seconds = given.get(name, 1)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
            raise UsageError(f"{name} must be a number of seconds above 0, not {seconds!r}")


def patterns_of(texts: Sequence[str], option: str) -> tuple[Pattern, ...]:
    """The patterns of a command line option."""
    try:
        return tuple(parse_pattern(text) for text in texts)
    except PatternError as error:
        raise UsageError(f"{option}: {error}", hint="A pattern is TOOL, TOOL(GLOB) or TOOL(name=GLOB).") from error


def policy_of(project: Project, config: RuntimeConfig) -> Policy:
    """A project's policy with the session's `deny` patterns in it."""
    patterns_of(config.deny, "--deny")
    return project.policy.plus(option_rules("deny", config.deny))
