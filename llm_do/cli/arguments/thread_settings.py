"""A thread's settings as a person writes them: `KEY=VALUE`, with dotted keys. The thread validates them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from llm_do.errors import UsageError
from llm_do.threads.managers.state_manager import config_key
from llm_do.ui.terminal.typed_values import json_or_text

__all__ = ["parse_changes"]


def parse_changes(values: Sequence[str], now: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to change.

    Example:
        >>> parse_changes(["history_limit=20", "model_settings.top_p=0.5"], {"model_settings": {"seed": 1}})
        {'history_limit': 20, 'model_settings': {'seed': 1, 'top_p': 0.5}}
    """
    found: dict[str, Any] = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{text!r} is not a setting", hint="Write KEY=VALUE, such as history_limit=20.")
        name, *path = config_key(key).split(".")
        data = json_or_text(value) if value else None
        found[name] = _replace_value(found.get(name, now.get(name)), path, data, key) if path else data
    return found


def _replace_value(old: object, path: Sequence[str], value: Any, key: str) -> dict[str, Any]:
    """A copy of an object with another value at a path; None removes it."""
    if not isinstance(old, Mapping | None):
        raise UsageError(
            f"{key} can't be set: {path[0]!r} would be in {json.dumps(old)[:40]}, which is not an object",
            hint=f"Write the complete setting as JSON: {key.partition('.')[0]}='{{...}}'.",
        )
    name, *rest = path
    new = dict(cast("Mapping[str, Any]", old or {}))
    if rest:
        new[name] = _replace_value(new.get(name), rest, value, key)
    elif value is None:
        new.pop(name, None)
    else:
        new[name] = value
    return new
