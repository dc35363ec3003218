"""References to variables in the manifest: `${NAME}`, and `${NAME:-default}` for one that may be missing.

They stand for variables of the environment, and of the files that count for a project (`.env`). An empty variable
counts as missing where there is a default, as in a shell. They are replaced where a value is used, never where it is
read, so that what they stand for isn't kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["UnsetVariableError", "expand_known", "expand_variables", "references", "stray_reference", "unset_variables"]

_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}")
_STRAY = re.compile(r"\$\{[^}]{0,40}\}?")


class UnsetVariableError(LookupError):
    """A variable without a default isn't set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """Replace the references in a text.

    Args:
        text: The text.
        environ: The variables.

    Raises:
        UnsetVariableError: A variable isn't set, and has no default.

    Example:
        >>> expand_variables("${HOST:-localhost}:${PORT}", {"PORT": "80"})
        'localhost:80'
    """

    def value(found: re.Match[str]) -> str:
        default = found["default"]
        known = environ.get(found["name"])
        if known is None and default is None:
            raise UnsetVariableError(found["name"])
        return known or default or ""

    return _REFERENCE.sub(value, text)


def expand_known(text: str, environ: Mapping[str, str]) -> str:
    """Replace the references to variables that are set, and leave the others as they are.

    Example:
        >>> expand_known("${HOST:-localhost}:${PORT}", {"PORT": "80"})
        '${HOST:-localhost}:80'
    """
    return _REFERENCE.sub(lambda found: environ.get(found["name"]) or found[0], text)


def references(text: str) -> Iterator[str]:
    """Yield the names of the variables in a text.

    Example:
        >>> list(references("${HOST:-localhost}:${PORT}"))
        ['HOST', 'PORT']
    """
    for found in _REFERENCE.finditer(text):
        yield found["name"]


def unset_variables(text: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables of a text that aren't set and have no default."""
    for found in _REFERENCE.finditer(text):
        if found["default"] is None and found["name"] not in environ:
            yield found["name"]


def stray_reference(text: str) -> str | None:
    """The first `${` of a text that is no reference, with what follows it; None if there is none.

    Example:
        >>> stray_reference("${HOME}/${my var}"), stray_reference("${HOME}")
        ('${my var}', None)
    """
    found = _STRAY.search(_REFERENCE.sub("", text))
    return found[0] if found is not None else None
