"""Messages, events and states as the JSON text that stores keep; secrets are redacted here, before writing."""

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
"""The shortest value redacted as a secret: shorter ones occur by chance in too much unrelated text."""

_LOGIN = re.compile(r"[a-z][a-z0-9+.-]*://([^/\s:@]*:([^/\s@]+)@)", re.IGNORECASE)
"""The user and password in a URL, such as a database's."""

_QUOTE = r"(?:\\*[\"'])?"
_HEADER = re.compile(
    rf"((?:proxy-)?authorization|x-api-key|api-key){_QUOTE}\s*[:=]\s*{_QUOTE}(?:(?:bearer|basic|token|digest|apikey)\s+)?"
    r"(?!\[redacted)[A-Za-z0-9._~+/=:-]{4,}",
    re.IGNORECASE,
)
"""A header and its value, in a header line, in JSON, or in JSON inside a JSON string."""

_BETWEEN = re.compile(rf"({_QUOTE})\s*[:=]\s*({_QUOTE})")
"""The separator between a header's name and its value."""


class Redactor:
    """Removes secrets from JSON text: environment variables whose name or value looks like a key, passwords in
    variables that hold URLs, and `Authorization` headers.

    Args:
        environ: The variables.

    Example:
        >>> redact = Redactor({"ACME_API_KEY": "sk-123456789"})
        >>> redact('{"args": "curl -H sk-123456789"}')
        '{"args": "curl -H [redacted ACME_API_KEY]"}'
        >>> Redactor({"DATABASE_URL": "postgres://me:tr0ub4dor@db/main"})('"postgres://me:tr0ub4dor@db/main"')
        '"postgres://me:[redacted DATABASE_URL]@db/main"'
        >>> redact('"Authorization: Bearer abcdef"')
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
        """Redact the text; JSON stays valid JSON."""
        if self._values is not None:
            text = self._values.sub(lambda found: f"[redacted {self._names[found[0]]}]", text)
        if "uthorization" in text or "AUTHORIZATION" in text or "pi-" in text or "PI-" in text:
            text = _HEADER.sub(_without_value, text)
        return text


@lru_cache(maxsize=1024)  # every run looks at all variables, and they hardly ever change
def _secrets(name: str, value: str) -> tuple[str, ...]:
    """Return the parts of a variable's value that must not be stored."""
    logins = list(_LOGIN.finditer(value))
    if _SECRET_NAME.search(name.upper()) or (not logins and is_secret_value(value)):
        found = [value]
    else:
        found = [login[2] if len(login[2]) >= _SHORTEST else login[1] for login in logins]
        found += [unquote(each) for each in found]
    return tuple(each for each in found if len(each) >= _SHORTEST)


def _without_value(found: re.Match[str]) -> str:
    header, name = found[0], found[1]
    between = _BETWEEN.match(header[len(name) :])
    if between is None or (between[1] and not between[2]):
        # A JSON key whose value is a number or a literal such as `true`: not a secret, and it has to stay JSON.
        return header
    return f"{name}{between[0]}[redacted]"


@lru_cache(maxsize=4)
def _redactor(items: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(items))


def redactor() -> Redactor:
    """Return a redactor for the current environment."""
    # Looked up one by one: another thread may remove a variable in the meantime.
    all_now = ((name, os.environ.get(name)) for name in os.environ)
    return _redactor(tuple((name, value) for name, value in all_now if value is not None and _secrets(name, value)))


def event_text(data: Mapping[str, Any], redact: Redactor) -> str:
    """Serialize an event as JSON text."""
    try:
        text = to_json(data, fallback=str, bytes_mode="base64", inf_nan_mode="null", serialize_unknown=True)
    except ValueError:
        plain = to_jsonable_python(
            data, fallback=str, bytes_mode="base64", inf_nan_mode="constants", serialize_unknown=True
        )
        text = to_json(replace_surrogates_in_data(plain), inf_nan_mode="null")
    return redact(text.decode())


def message_text(message: ModelMessage, redact: Redactor | None = None) -> str:
    """Serialize a message as JSON text that `message_of` reads back."""
    try:
        text = ModelMessagesTypeAdapter.dump_json([message])[1:-1].decode()
    except ValueError:
        # A lone surrogate, which a caller's prompt may contain.
        text = to_json(replace_surrogates_in_data(ModelMessagesTypeAdapter.dump_python([message], mode="json")))[
            1:-1
        ].decode()
    return text if redact is None else redact(text)


def message_of(text: str) -> ModelMessage:
    """Read a message that `message_text` wrote."""
    try:
        return ModelMessagesTypeAdapter.validate_json(f"[{text}]")[0]
    except ValueError as error:
        raise StoreError(
            f"a stored message can't be read: {' '.join(str(error).split())[:200]}",
            hint="It was written by another version, or it is damaged.",
        ) from error


def state_text(value: Any, whose: str) -> str:
    """Serialize a state as JSON text; lone surrogates, which UTF-8 can't encode, are replaced."""
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"the state of {whose} isn't JSON data: {error}", hint="Keep only text, numbers, lists and objects in it."
        ) from error


def same_json(one: Any, other: Any) -> bool:
    """Compare two values as JSON: numbers and booleans differ, and the order of an object's keys doesn't matter.

    Example:
        >>> same_json({"a": 1, "b": (2,)}, {"b": [2], "a": 1}), same_json(1, True)
        (True, False)
    """
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    # Parsed back first, so that every object key is a string.
    return json.dumps(json.loads(state_text(value, "this comparison")), sort_keys=True)
