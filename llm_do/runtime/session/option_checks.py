"""Checks of the options of a session, so that a value of a wrong type is a sentence where it is passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, cast

from llm_do._extensions import ExtensionPoint
from llm_do._warnings import warn_caller
from llm_do.errors import UsageError
from llm_do.formats.parts.least_counts import LEAST
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.rules import option_text
from llm_do.project.flow_spec import CallPathNames, creates_agents, every_agent, listed_names
from llm_do.project.project import Project, RecordSettings
from llm_do.project.tools.builtin_toolsets import BUILTINS
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from llm_do.project.registry import Registered
    from llm_do.runtime.session.runtime_config import RuntimeConfig

__all__ = [
    "FIND_IDLE_PATTERN",
    "FindIdlePattern",
    "check_agent_names",
    "check_kinds",
    "check_limits",
    "known_agents_only",
    "warn_of_idle_patterns",
]


class FindIdlePattern(Protocol):
    """Explains why no call of a project can match a pattern; `broadly` is how a rule that denies is matched."""

    def __call__(self, text: str, project: Project, *, broadly: bool = False) -> str | None: ...


FIND_IDLE_PATTERN: ExtensionPoint[FindIdlePattern] = ExtensionPoint("find_idle_pattern")
"""What the linker knows of a project's tools."""

_OF_RECORD = ("keep_days", "max_mb")
"""Counts that are settings of `record_settings`."""

_FLAGS = (
    "record",
    "frozen",
    "durable",
    "return_permission_errors",
    "agent_calls_require_approval",
    "agent_attachments_require_approval",
)


def check_limits(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a limit that is out of range."""
    for name, least in LEAST.items():
        value = options.get(name, least) if name not in _OF_RECORD else least
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(
                f"{name} must be a whole number, {least} or more, not {value!r}",
                hint="pass such a number, or leave the option out for the project's own",
            )
    kept: object = options.get("record_settings", RecordSettings())
    if not isinstance(kept, RecordSettings):
        raise UsageError(
            f"record_settings must be RecordSettings, not {kept!r}",
            hint="write RecordSettings(keep_days=7), for example",
        )
    for name in _OF_RECORD:
        count, least = getattr(kept, name), LEAST[name]
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise UsageError(
                f"record_settings.{name} must be a whole number, {least} or more, not {count!r}",
                hint="pass such a number, or leave it out for the default",
            )
    for name in ("run_timeout", "tool_timeout"):
        seconds = options.get(name, 1)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
            raise UsageError(
                f"{name} must be a number of seconds above 0, not {seconds!r}",
                hint="pass such a number, or leave the option out for no limit of its own",
            )


def check_kinds(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for an option whose value can't be what it takes."""
    for name, value in options.items():
        if value is None:
            continue
        if name in _FLAGS:
            described = None if isinstance(value, bool) else "True or False"
        else:
            described = None if _KINDS.get(name, _anything)(value) else _DESCRIBED[name]
        if described is not None:
            raise UsageError(
                f"{name} must be {described}, not {value!r}", hint="Leave the option out for the project's own."
            )


def check_agent_names(config: RuntimeConfig, project: Project) -> None:
    """Raise `UsageError` for an option that names an agent which the project doesn't have, and so changes nothing.

    A project with `dynamic_agents` makes agents in a run, so which names there will be isn't known.
    """
    overrides = config.settings.agent_approval_overrides
    patterns = [(option_text("allow", text), text) for text in config.allow]
    patterns += [(option_text("deny", text), text) for text in config.deny]
    if not (config.models or patterns or overrides is not project.settings.agent_approval_overrides):
        return
    known = _Agents(project)
    unknown = [(f"models names {name!r}", name) for name in config.models if not known.is_agent(name)]
    unknown += [(f"agent_approval_overrides names {name!r}", name) for name in overrides if not known.is_caller(name)]
    unknown += [(f"{what} names {name!r}", name) for what, text in patterns if (name := known.unknown_in(text))]
    if not unknown or creates_agents(project.registry):
        return
    what, name = unknown[0]
    raise UsageError(
        f"{what}, and the project has no such agent",
        hint=did_you_mean(name, known.agents) or f"Its agents are {', '.join(known.agents) or 'none'}.",
    )


def warn_of_idle_patterns(
    patterns: Iterable[tuple[str, str]], project: Project, registry: Mapping[str, Registered] | None = None
) -> None:
    """Warn of patterns that no call can match: a misspelt name would allow or deny nothing, silently.

    Nothing is said of the tools of built-in toolsets: a program may deny `shell` whatever it runs. What agents can do
    that are made in a run isn't known, and neither is what a toolset has that a run looks up in installed packages.

    Args:
        patterns: Each pattern after the name of its option.
        project: The project.
        registry: The names that can be called, if they are more than the project's.
    """
    names = project.registry if registry is None else registry
    listed = {name for spec, _ in every_agent(names) for name in listed_names(spec)}
    if creates_agents(names) or not all(name in names or name in BUILTINS for name in listed):
        return
    for option, text in patterns:
        try:
            literal = parse_pattern(text).tool.literal
        except PatternError:  # which is an error of its own
            continue
        if literal is None or literal in names or any(literal in tools for tools in BUILTINS.values()):
            continue
        known = project if names is project.registry else replace(project, registry=names)
        fault = FIND_IDLE_PATTERN.get()(text, known, broadly=option == "deny")
        if fault is not None:
            warn_caller(f"{option}: {fault}")


def known_agents_only(options: Mapping[str, Any], project: Project) -> dict[str, Any]:
    """Options that a run began with, without those for agents that the project doesn't have any more."""
    if creates_agents(project.registry):
        return dict(options)
    known = _Agents(project)
    models = {name: model for name, model in options["models"].items() if known.is_agent(name)}
    patterns = {name: [each for each in options[name] if not known.unknown_in(each)] for name in ("allow", "deny")}
    return {**options, "models": models, **patterns}


class _Agents:
    """The names that a project has before a run."""

    def __init__(self, project: Project) -> None:
        self.agents = sorted({spec.name for spec, _ in every_agent(project.registry)})
        self._paths = CallPathNames(project.registry, [project.entry.name])

    def is_agent(self, name: str) -> bool:
        return name in self.agents

    def is_caller(self, name: str) -> bool:
        return self._paths.is_caller(name)

    def unknown_in(self, text: str) -> str | None:
        """The name in front of a pattern's tool that doesn't exist."""
        try:
            return self._paths.find_unknown(parse_pattern(text))
        except PatternError:  # which is reported with its column, as the policy is built
            return None


def _anything(_: object) -> bool:
    return True


def _is_model(value: object) -> bool:
    if isinstance(value, str):
        return bool(value)
    if isinstance(value, Iterable):
        names = tuple(cast("Iterable[object]", value))
        return bool(names) and all(isinstance(each, str) for each in names)
    from pydantic_ai.models import Model

    return isinstance(value, Model)


def _are_models(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    items = cast("Mapping[object, object]", value).items()
    return all(
        isinstance(agent, str) and (isinstance(model, str) or (not _is_data(model) and _is_model(model)))
        for agent, model in items
    )


def _is_store(value: object) -> bool:
    return isinstance(value, str | PathLike) or not _is_data(value)


def _is_data(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | Iterable | type)


_KINDS: dict[str, Callable[[object], bool]] = {
    "model": _is_model,
    "models": _are_models,
    "store": _is_store,
    "transport": lambda value: not _is_data(value),
    "ask_user": callable,
    "notice": callable,
    "env_file": lambda value: isinstance(value, str | PathLike),
}

_DESCRIBED = {
    "model": "the name of a model, a list of names to try in order, or a PydanticAI model",
    "models": "models by names of agents, each a name or a PydanticAI model",
    "store": "a ThreadStore, the path of a SQLite file or a URL",
    "transport": "a Transport",
    "ask_user": "a function",
    "notice": "a function",
    "env_file": "the path of a file",
}
