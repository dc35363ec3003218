"""Variables in `.env` files: keys of providers, and what `${NAME}` in a manifest stands for.

They never become part of the environment, so that no tool, command or server that a run starts can see them, except for
what a manifest names. Models take nothing but keys from them: an address in a file that comes with a project would have
the environment's key sent to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from llm_do._bounded_files import open_ordinary
from llm_do._startup.option_names import option_name
from llm_do.errors import UsageError
from llm_do.models.providers.model_names import PROVIDERS, expand_user

__all__ = ["ENV_FILE", "keys_of", "read_variables", "with_variables"]

ENV_FILE = ".env"
"""The file in a project's folder that is read if it exists."""

_LONGEST = 1 << 20
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*?)\s*")
_QUOTED = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_ESCAPE = re.compile(r"\\(.)")


def read_variables(folder: Path | None, file: str | None = None) -> dict[str, str]:
    """Read the variables in a project's `.env`, and in a file that the caller names, which has precedence.

    Args:
        folder: The project's folder; None for a project without one.
        file: The file; it has to exist.

    Raises:
        UsageError: The named file can't be read.
    """
    found: dict[str, str] = {}
    if folder is not None:
        # None, or not one that holds variables.
        with suppress(OSError, ValueError), open_ordinary(folder / ENV_FILE) as stream:
            found |= _variables(stream.read(_LONGEST).decode("utf-8-sig"))
    if file is not None:
        try:
            with expand_user(file).open(encoding="utf-8-sig") as stream:  # it may be a pipe
                found |= _variables(stream.read(_LONGEST))
        except OSError as error:
            raise UsageError(
                f"the env file {file} can't be read: {error.strerror or error}",
                hint=f"{option_name('--env-file')} names a file of lines such as OPENAI_API_KEY=...",
            ) from error
        except ValueError as error:
            raise UsageError(f"the env file {file} is not text in UTF-8", hint="Save it as UTF-8.") from error
    return found


def with_variables(environ: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """An environment with variables from files, which never replace those that it has; an empty one counts as missing.

    Example:
        >>> with_variables({"OPENAI_API_KEY": "own"}, {"OPENAI_API_KEY": "k", "XAI_API_KEY": "x"})
        {'OPENAI_API_KEY': 'own', 'XAI_API_KEY': 'x'}
    """
    return {**dict(environ), **{name: value for name, value in found.items() if not environ.get(name)}}


def keys_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The keys of providers among variables, which are all that models take from files.

    Example:
        >>> keys_of({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://example.org", "LLM_DO_MODEL": "test"})
        {'OPENAI_API_KEY': 'k'}
    """
    names = {name for info in PROVIDERS.values() for name in info.keys}
    return {name: value for name, value in variables.items() if name in names}


def _variables(text: str) -> dict[str, str]:
    lines = (_LINE.fullmatch(line) for line in text.splitlines())
    pairs = ((line["name"], _value(line["value"])) for line in lines if line is not None)
    return {name: value for name, value in pairs if value and "\0" not in value}


def _value(text: str) -> str:
    """The value of a line as shells and other tools read it: quoted, or up to a comment."""
    quoted = _QUOTED.match(text)
    if quoted is None:
        return _COMMENT.sub("", text).strip()
    if quoted["single"] is not None:
        return quoted["single"]
    return _ESCAPE.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), quoted["double"])
