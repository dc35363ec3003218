"""`RuntimeConfig`: a session's fixed configuration, and the policy built from it and a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.rules import Policy, option_rules, option_text
from llm_do.policy.values import Effect
from llm_do.project.project import RecordSettings, RuntimeSettings
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.context.user_questions import AskUser
from llm_do.runtime.session.option_checks import check_agent_names, check_kinds, check_limits
from llm_do.runtime.session.run_options import RuntimeOptions
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.models import Model

    from llm_do.project.project import Budget, Overrides, Project
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.record.transport import Transport

__all__ = ["ConfigOptions", "RuntimeConfig", "ignore_notice", "patterns_of", "policy_of", "session_config"]


class ConfigOptions(RuntimeOptions, total=False):
    """What `RuntimeConfig.of` takes: the options of a session, and fields of `RuntimeConfig` and `RuntimeSettings`."""

    retry_delay: float | None
    notice: Callable[[str], None] | None
    on_tool_error: Literal["return", "raise"] | None
    tool_timeout: float | None
    max_concurrency: int | None
    max_calls_per_response: int | None
    max_result_bytes: int | None
    record_settings: RecordSettings | None
    budget: Budget | None
    return_permission_errors: bool | None
    agent_calls_require_approval: bool | None
    agent_attachments_require_approval: bool | None
    agent_approval_overrides: Mapping[str, Overrides] | None


def ignore_notice(_: str) -> None:
    """Drop a notice: the default of `RuntimeConfig.notice`."""


@frozen
class RuntimeConfig:
    """A session's policy and limits; frozen.

    Args:
        approvals: How questions are answered.
        settings: Limits and modes: the project's, with the caller's changes.
        model: A model for every agent, by name or as an object.
        models: Models for single agents, by agent name, each by name or as an object.
        allow: Patterns of calls to allow without asking; a string is one pattern.
        deny: Patterns of calls to deny; a string is one pattern.
        max_steps: Maximum model requests in one agent run, for every agent; None keeps each agent's own limit.
        record: Whether runs are recorded; None records those that have a thread or a user. False never writes to disk.
        store: Where threads and records are kept: a store, a SQLite file or a URL; None is the project's own store.
        transport: Records model requests, or answers them without a model; None asks the models.
        frozen: Whether `llm-do.lock` alone answers approval questions, and servers must be as it has them.
        durable: Whether each step of a run is kept on disk, so that a run that was stopped can be resumed.
        env_file: A file with keys of providers and variables for `${NAME}`, read in addition to the project's `.env`.
        retry_delay: Seconds before the first retry of a model request; it doubles from there.
        ask_user: Puts an agent's question to a person; None when no one can be asked.
        notice: Called with what a person should know, such as the local model's quality.
    """

    approvals: RunApprovalPolicy = field(default_factory=RunApprovalPolicy)
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    model: str | Sequence[str] | Model | None = None
    models: Mapping[str, str | Model] = field(default_factory=dict[str, "str | Model"])
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    max_steps: int | None = None
    record: bool | None = None
    store: ThreadStore | Path | str | None = None
    transport: Transport | None = None
    frozen: bool = False
    durable: bool = False
    env_file: str | None = None
    retry_delay: float = 0.5
    ask_user: AskUser | None = None
    notice: Callable[[str], None] = ignore_notice

    def __post_init__(self) -> None:
        # A string is a sequence of strings: its characters, taken as patterns, would deny nothing.
        for name in ("allow", "deny"):
            value: object = getattr(self, name)
            patterns = _as_tuple(value)
            if not all(isinstance(each, str) for each in patterns):
                raise UsageError(
                    f"{name} must be patterns of calls, each a string, not {value!r}",
                    hint='write a list of patterns, such as ["write_file(out/**)"]',
                )
            object.__setattr__(self, name, patterns)

    @property
    def kept_options(self) -> dict[str, Any]:
        """The options that decide what a run does, as JSON data, for resuming it with the same ones."""
        return {
            "model": to_json_data(self.model) if isinstance(self.model, Sequence) else None,
            "models": self.named_models,
            "allow": list(self.allow),
            "deny": list(self.deny),
            "max_steps": self.max_steps,
            "env_file": self.env_file,
            "frozen": self.frozen,
            "settings": to_json_data(self.settings),
        }

    @property
    def named_models(self) -> dict[str, str]:
        """The models of single agents that are names, not objects."""
        return {agent: model for agent, model in self.models.items() if isinstance(model, str)}

    @property
    def denials_go_to_model(self) -> bool:
        """Whether a denial is a result for the model instead of ending the run."""
        chosen = self.approvals.return_permission_errors
        return self.settings.return_permission_errors if chosen is None else chosen

    @classmethod
    def of(cls, project: Project, **changes: Unpack[ConfigOptions]) -> RuntimeConfig:
        """Return the project's configuration with a caller's changes; changes that are None are ignored.

        Args:
            project: The project.

        Raises:
            UsageError: A limit is out of range, a value is none that the option takes, or an option names an agent that
                the project doesn't have.
        """
        options: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        check_limits(options)
        check_kinds(options)
        options.setdefault("env_file", project.env_file)
        settings = set(RuntimeSettings.__dataclass_fields__) - set(cls.__dataclass_fields__)
        own = {name: options.pop(name) for name in list(options) if name in settings}
        approvals = RunApprovalPolicy.of(options.pop("approvals", None) or project.settings.approval_mode)
        made = cls(approvals=approvals, settings=replace(project.settings, **own), **options)
        check_agent_names(made, project)
        return made


def session_config(project: Project, config: RuntimeConfig | None, options: RuntimeOptions) -> RuntimeConfig:
    """Return a session's configuration: `config`, or the project's with the caller's options."""
    if config is None:
        return RuntimeConfig.of(project, **options)
    if not isinstance(cast("object", config), RuntimeConfig):
        raise UsageError(
            f"config must be a RuntimeConfig, not {config!r}", hint="Write RuntimeConfig.of(project, ...)."
        )
    both = [name for name, value in options.items() if value is not None]
    if both:
        raise UsageError(
            f"{', '.join(both)} can't be combined with config, which is the complete configuration",
            hint="Build the config with them: RuntimeConfig.of(project, ...).",
        )
    if project.source is None:  # or it is an earlier state of the project that the options are for
        check_agent_names(config, project)
    return config


def _as_tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    return tuple(cast("Iterable[object]", value))


def patterns_of(effect: Effect, texts: Sequence[str]) -> tuple[Pattern, ...]:
    """Parse the patterns of the option `allow` or `deny`."""
    try:
        return tuple(parse_pattern(text) for text in texts)
    except PatternError as error:
        raise UsageError(
            f"{option_text(effect, error.text)}: {error}", hint="A pattern is TOOL, TOOL(GLOB) or TOOL(name=GLOB)."
        ) from error


def policy_of(project: Project, config: RuntimeConfig) -> Policy:
    """Return a project's policy with the session's `deny` patterns added."""
    patterns_of("deny", config.deny)
    return project.policy.plus(option_rules("deny", config.deny))
