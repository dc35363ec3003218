"""Secrets taken out of what is written, sent or shown: the journal, artifacts, telemetry, recordings, lines and errors.

Three things are exact: what a model reads, the call that a person is asked to approve, and the output of a run. Python
code that runs a project gets its events, results and exceptions as they are.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from llm_do.policy.secrets import is_secret_value
from llm_do.text.large_data.replacement import PIECE, replace_matches

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["RedactedFile", "Redactor", "protect_values", "redact_data", "redactor"]

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|PAT)(?:$|_)|_DSN$"
)
_SHORTEST = 8
"""The shortest value redacted as a secret: shorter ones occur by chance in too much unrelated text."""

_LOGIN = re.compile(r"[a-z][a-z0-9+.-]*://([^/\s:@]*:([^/\s@]+)@)", re.IGNORECASE)
"""The user and password in a URL, such as a database's."""

_QUOTE = r"(?:\\{0,256}[\"'])?"
_SPACE = r"\s{0,1000}"
_HEADER = re.compile(
    rf"((?:proxy-)?authorization|x-api-key|api-key){_QUOTE}{_SPACE}[:=]{_SPACE}{_QUOTE}"
    r"(?:(?:bearer|basic|token|digest|apikey)\s{1,1000})?"
    r"(?!\[redacted)[A-Za-z0-9._~+/=:-]{3,}[A-Za-z0-9_~+/=-]",
    re.IGNORECASE,
)
"""A header and its value, in a header line, in JSON, or in JSON inside a JSON string."""

_LONGEST_HEADER = 4096
"""Characters by which a header is known to be one, as many as its spaces can be; its value may go on."""

_BETWEEN = re.compile(rf"({_QUOTE})\s*[:=]\s*({_QUOTE})")
"""The separator between a header's name and its value."""


class Redactor:
    """Removes secrets from JSON text: environment variables whose name or value looks like a key, passwords in
    variables that hold URLs, and `Authorization` headers.

    Args:
        environ: The variables.
        others: Further ones, each with its name; several may have the same.

    Example:
        >>> redact = Redactor({"ACME_API_KEY": "sk-123456789"})
        >>> redact('{"args": "curl -H sk-123456789"}')
        '{"args": "curl -H [redacted ACME_API_KEY]"}'
        >>> Redactor({"DATABASE_URL": "postgres://me:tr0ub4dor@db/main"})('"postgres://me:tr0ub4dor@db/main"')
        '"postgres://me:[redacted DATABASE_URL]@db/main"'
        >>> redact('"Authorization: Bearer abcdef"')
        '"Authorization: [redacted]"'
    """

    def __init__(self, environ: Mapping[str, str], others: Iterable[tuple[str, str]] = ()) -> None:
        self._names: dict[str, str] = {}
        for name, value in (*environ.items(), *others):
            for secret in _secrets(name, value):
                for form in _forms(secret):
                    self._names.setdefault(form, name)
        longest = sorted(self._names, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest))) if longest else None
        self.longest = max(map(len, longest), default=0)

    def __call__(self, text: str) -> str:
        """Redact the text; JSON stays valid JSON."""
        if self._values is not None:
            text = replace_matches(
                self._values, lambda found: f"[redacted {self._names[found[0]]}]", text, self.longest
            )
        if _may_have_header(text):
            text = replace_matches(_HEADER, _without_value, text, _LONGEST_HEADER)
        return text

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets in the forms that they have in JSON text, each with the name of its variable."""
        return self._names

    def safe_cut(self, text: str, cut: int) -> int:
        """Return the last place up to `cut` where a text can be cut without cutting through a secret or a header."""
        cut = text.rfind("\n", 0, cut) + 1 or cut
        patterns = (self._values, _HEADER if _may_have_header(text) else None)
        found = [each.span() for pattern in patterns if pattern is not None for each in pattern.finditer(text)]
        for start, end in sorted(found, reverse=True):
            if start < cut < end:
                cut = start
        return cut


def _may_have_header(text: str) -> bool:
    """Whether a search for headers may find one; nearly all texts have none."""
    return "uthorization" in text or "AUTHORIZATION" in text or "pi-" in text or "PI-" in text


def _forms(secret: str) -> set[str]:
    """How a secret may be spelled: as it is or as Python shows it, in JSON, and in JSON inside JSON strings."""
    found = {secret, repr(secret)[1:-1]}
    for _ in range(3):
        found |= {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in found for ascii in (True, False)}
    return found


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
    return Redactor({}, items)


_protected: dict[tuple[str, str], None] = {}
"""Variables of files, each with its name; those of several projects may have the same."""


def protect_values(secrets: Mapping[str, str]) -> None:
    """Redact these too from now on, if they are secrets: variables of files, which the environment doesn't have."""
    _protected.update(dict.fromkeys(secrets.items()))


_latest: tuple[object, dict[tuple[str, str], None], Redactor] | None = None
"""The last redactor, the environment that it was made for, and the variables of files."""


def redactor() -> Redactor:
    """Return a redactor for the current environment and the variables of files."""
    global _latest
    # As the interpreter keeps it, since every run asks: decoding all names and values takes fifty times as long.
    encoded: object = getattr(os.environ, "_data", None)
    if _latest is not None and _latest[0] == encoded and _latest[1] == _protected and encoded is not None:
        return _latest[2]
    made = copy.copy(encoded), dict(_protected), _current_redactor()
    _latest = made
    return made[2]


def _current_redactor() -> Redactor:
    # Looked up one by one: another thread may remove a variable in the meantime.
    all_now = (*((name, os.environ.get(name)) for name in os.environ), *tuple(_protected))
    return _redactor(tuple((name, value) for name, value in all_now if value is not None and _secrets(name, value)))


def redact_data(data: Any) -> Any:
    """Return JSON data without secrets; the data itself if it has none.

    Example:
        >>> redact_data({"headers": {"Authorization": "Bearer abcdef"}, "tries": 2})
        {'headers': {'Authorization': '[redacted]'}, 'tries': 2}
    """
    text = json.dumps(data, ensure_ascii=False)
    clean = redactor()(text)
    return data if clean == text else json.loads(clean)


class RedactedFile(io.RawIOBase):
    """A binary file for writing from whose text secrets are removed, also where they come in several pieces.

    Args:
        file: The file, which it owns.
        redact: The redactor.
    """

    def __init__(self, file: BinaryIO, redact: Redactor) -> None:
        self._file = file
        self._redact = redact
        self._kept = redact.longest + _LONGEST_HEADER
        self._pieces: list[bytes] = []
        self._size = 0
        self._least = self._most = 2 * self._kept + 65_536

    def writable(self) -> bool:
        """Whether it can be written: yes."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Write bytes; the last of them are written with what comes next."""
        raw = bytes(data)
        # A search holds up all other threads until it ends.
        for start in range(0, len(raw), PIECE):
            self._add(raw[start : start + PIECE])
        return len(raw)

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._most:
            text = self._text()
            cut = self._redact.safe_cut(text, max(len(text) - self._kept, 0))
            self._put(text[:cut])
            rest = text[cut:].encode("utf-8", "surrogateescape")
            self._pieces, self._size = [rest], len(rest)
            self._most = max(self._least, 2 * len(rest))  # a header's value that goes on and on isn't cut

    def close(self) -> None:
        """Write the rest, and close the file."""
        if self.closed:
            return
        try:
            self._put(self._text())
        finally:
            self._pieces = []
            self._file.close()
            super().close()

    def _text(self) -> str:
        return b"".join(self._pieces).decode("utf-8", "surrogateescape")

    def _put(self, text: str) -> None:
        self._file.write(self._redact(text).encode("utf-8", "surrogateescape"))
