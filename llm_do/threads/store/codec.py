"""Messages, events and states as the JSON text that stores keep; secrets are taken out here, before it is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_json, to_jsonable_python

from llm_do.errors import StoreError, ToolError
from llm_do.policy.secrets import is_secret_value
from llm_do.text.surrogates import replace_surrogates, replace_surrogates_in_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["Redactor", "event_text", "message_of", "message_text", "redactor", "same_json", "state_text"]

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|PAT)(?:$|_)|_DSN$"
)
_SHORTEST = 8
"""Characters of a secret: shorter values stand in too many texts that have nothing to do with them."""

_LOGIN = re.compile(r"[a-z][a-z0-9+.-]*://([^/\s:@]*:([^/\s@]+)@)", re.IGNORECASE)
"""The user and the password in a URL, such as that of a database."""

_QUOTE = r"(?:\\*[\"'])?"
_HEADER = re.compile(
    rf"((?:proxy-)?authorization|x-api-key|api-key){_QUOTE}\s*[:=]\s*{_QUOTE}(?:(?:bearer|basic|token|digest|apikey)\s+)?"
    r"(?!\[redacted)[A-Za-z0-9._~+/=:-]{4,}",
    re.IGNORECASE,
)
"""A header and its value, in a header line, in JSON, or in JSON inside a JSON string."""

_BETWEEN = re.compile(rf"({_QUOTE})\s*[:=]\s*({_QUOTE})")
"""What stands between the two."""


class Redactor:
    """Takes secrets out of JSON text: values of variables that look like keys by their name or themselves, passwords in
    variables that hold URLs, and `Authorization` headers.

    Args:
        environ: The variables.

    Example:
        >>> hide = Redactor({"ACME_API_KEY": "sk-123456789"})
        >>> hide('{"args": "curl -H sk-123456789"}')
        '{"args": "curl -H [redacted ACME_API_KEY]"}'
        >>> Redactor({"DATABASE_URL": "postgres://me:tr0ub4dor@db/main"})('"postgres://me:tr0ub4dor@db/main"')
        '"postgres://me:[redacted DATABASE_URL]@db/main"'
        >>> hide('"Authorization: Bearer abcdef"')
        '"Authorization: [redacted]"'
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        for name, value in environ.items():
            for secret in _secrets(name, value):
                for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
                    self._names.setdefault(form, name)
        longest = sorted(self._names, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest))) if longest else None

    def __call__(self, text: str) -> str:
        """The text without secrets; JSON stays JSON."""
        if self._values is not None:
            text = self._values.sub(lambda found: f"[redacted {self._names[found[0]]}]", text)
        if "uthorization" in text or "AUTHORIZATION" in text or "pi-" in text or "PI-" in text:
            text = _HEADER.sub(_without_value, text)
        return text


@lru_cache(maxsize=1024)  # each run asks for every variable, of which hardly one changes
def _secrets(name: str, value: str) -> tuple[str, ...]:
    """What of a variable's value must not be written down."""
    logins = list(_LOGIN.finditer(value))
    if _SECRET_NAME.search(name.upper()) or (not logins and is_secret_value(value)):
        found = [value]
    else:
        found = [login[2] if len(login[2]) >= _SHORTEST else login[1] for login in logins]
        found += [unquote(each) for each in found]
    return tuple(each for each in found if len(each) >= _SHORTEST)


def _without_value(found: re.Match[str]) -> str:
    whole, name = found[0], found[1]
    between = _BETWEEN.match(whole[len(name) :])
    if between is None or (between[1] and not between[2]):
        # The key of a JSON object whose value is a number or a word of JSON's: that is no secret, and stays JSON.
        return whole
    return f"{name}{between[0]}[redacted]"


@lru_cache(maxsize=4)
def _redactor(items: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(items))


def redactor() -> Redactor:
    """The redactor of the environment as it is now."""
    # Looked up one by one: another thread may take a variable away in the middle.
    all_now = ((name, os.environ.get(name)) for name in os.environ)
    return _redactor(tuple((name, value) for name, value in all_now if value is not None and _secrets(name, value)))


def event_text(data: Mapping[str, Any], hide: Redactor) -> str:
    """An event as JSON text."""
    try:
        text = to_json(data, fallback=str, bytes_mode="base64", inf_nan_mode="null", serialize_unknown=True)
    except ValueError:
        plain = to_jsonable_python(
            data, fallback=str, bytes_mode="base64", inf_nan_mode="constants", serialize_unknown=True
        )
        text = to_json(replace_surrogates_in_data(plain), inf_nan_mode="null")
    return hide(text.decode())


def message_text(message: ModelMessage, hide: Redactor | None = None) -> str:
    """A message as JSON text that `message_of` reads back."""
    try:
        text = ModelMessagesTypeAdapter.dump_json([message])[1:-1].decode()
    except ValueError:
        # Half a character, which a caller's prompt may bring along.
        text = to_json(replace_surrogates_in_data(ModelMessagesTypeAdapter.dump_python([message], mode="json")))[
            1:-1
        ].decode()
    return text if hide is None else hide(text)


def message_of(text: str) -> ModelMessage:
    """The message that `message_text` wrote."""
    try:
        return ModelMessagesTypeAdapter.validate_json(f"[{text}]")[0]
    except ValueError as error:
        raise StoreError(
            f"a stored message can't be read: {' '.join(str(error).split())[:200]}",
            hint="It was written by another version, or damaged.",
        ) from error


def state_text(value: Any, whose: str) -> str:
    """A state as JSON text; halves of characters, which no file can hold, are replaced."""
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"the state of {whose} isn't JSON data: {error}", hint="Keep text, numbers, lists and objects in it."
        ) from error


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: numbers and booleans differ, the order of an object's keys doesn't matter.

    Example:
        >>> same_json({"a": 1, "b": (2,)}, {"b": [2], "a": 1}), same_json(1, True)
        (True, False)
    """
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    # Read back first: an object's keys are texts then, whatever they were.
    return json.dumps(json.loads(state_text(value, "this comparison")), sort_keys=True)
