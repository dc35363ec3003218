"""The configuration of threads as JSON data, and its validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llm_do.errors import UsageError
from llm_do.project.thread_config import ThreadConfig
from llm_do.text.exception_text import first_fault

__all__ = ["check_config", "check_new_config", "config_data", "config_from_data"]

_FIELDS = tuple(ThreadConfig.__dataclass_fields__)
_NO_SECRETS = ("api_key", "apikey", "authorization", "password", "secret", "token")


def config_from_data(data: Mapping[str, Any]) -> ThreadConfig:
    """Read a thread's configuration from JSON data.

    Example:
        >>> config_from_data({"enabled_tools": ["search_*"], "history_limit": 20}).history_limit
        20
    """
    values = {key: value for key, value in data.items() if value is not None}
    check_config(values)
    for key in ("enabled_tools", "model"):
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    return ThreadConfig(**values)


def config_data(config: ThreadConfig) -> dict[str, Any]:
    """Convert a thread's configuration to JSON data, leaving out unset values."""
    data: dict[str, Any] = {}
    for name in _FIELDS:
        value = getattr(config, name)
        if value is None or (name == "model_settings" and not value):
            continue
        data[name] = list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType]
    return data


def check_config(data: Mapping[str, Any]) -> None:
    """Reject a configuration with unknown settings, invalid values or secrets."""
    for name, value in data.items():
        if name not in _FIELDS:
            raise UsageError(f"a thread has no setting {name!r}", hint="Its settings: " + ", ".join(_FIELDS) + ".")
        _check_field(name, value)


def check_new_config(data: Mapping[str, Any]) -> None:
    """Reject values that a project file couldn't contain either; values already stored can still be read."""
    values = {key: value for key, value in data.items() if value is not None}
    check_config(values)
    if "model_settings" in values:
        from pydantic import TypeAdapter
        from pydantic_core import to_json

        from llm_do.formats.validation.fields import ModelSettings

        try:
            TypeAdapter(ModelSettings).validate_python(dict(values["model_settings"]))
            to_json(values["model_settings"])
        except ValueError as error:
            raise UsageError(
                f"the thread setting model_settings is invalid: {first_fault(error)}",
                hint='pass PydanticAI\'s model settings, such as {"temperature": 0}',
            ) from error
    compaction: Mapping[str, Any] = values.get("compaction") or {}
    if compaction.get("max_tokens") is not None and compaction.get("fraction") is not None:
        raise UsageError("the thread setting compaction has both max_tokens and fraction", hint="Keep one of the two.")


def _check_field(name: str, value: object) -> None:
    fits = {
        "model": lambda: isinstance(value, str) or _texts(value),
        "model_settings": lambda: isinstance(value, Mapping),
        "enabled_tools": lambda: _texts(value),
        "history_limit": lambda: isinstance(value, int) and not isinstance(value, bool) and value >= 1,
        "system_prompt": lambda: isinstance(value, str),
        "compaction": lambda: isinstance(value, Mapping),
    }
    expected = {
        "model": "a model's name or a list of names",
        "model_settings": "an object",
        "enabled_tools": "a list of names or globs",
        "history_limit": "a positive whole number",
        "system_prompt": "text",
        "compaction": "an object",
    }
    if not fits[name]():
        raise UsageError(f"the thread setting {name} must be {expected[name]}", hint=f"Got {value!r}.")
    if name == "compaction":
        from llm_do.formats.parts.shared import CompactionFile

        try:
            CompactionFile.model_validate(value)
        except ValueError as error:
            raise UsageError(
                f"the thread setting compaction is invalid: {first_fault(error)}",
                hint="pass what `compaction` takes in the manifest",
            ) from error
    if name == "model_settings":
        _reject_secrets(value)


def _reject_secrets(value: object) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            plain = str(key).lower().replace("-", "_")  # pyright: ignore[reportUnknownArgumentType]
            if any(plain == word or plain.endswith(f"_{word}") for word in _NO_SECRETS):
                raise UsageError(
                    f"a thread's settings can't contain secrets: {key}", hint="Put keys in the environment."
                )
            _reject_secrets(item)  # pyright: ignore[reportUnknownArgumentType]


def _texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)  # pyright: ignore[reportUnknownVariableType]
