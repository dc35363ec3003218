"""A person's configuration, `$XDG_CONFIG_HOME/llm-do/config.toml`: a default model, aliases of models, and colours.

It never has approvals. What is wrong in it is a fault with its line, and the rest is used: a spelling mistake must not
keep anyone from their work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, cast

from llm_do._bounded_files import read_bounded_text
from llm_do._home_folder import home_folder
from llm_do._startup.frozen import frozen
from llm_do.models.providers.model_names import PROVIDERS, find_name_fault, split_name
from llm_do.text.words import closest_match

__all__ = ["ALIAS_NAME", "ConfigFault", "UserConfig", "config_file", "is_reserved", "load_user_config"]

ALIAS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What the name of an alias looks like; it never has a colon, so no model's name is one."""

KEYS = ("model", "aliases", "color")

_LONGEST = 1 << 20
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_NO_APPROVALS = (
    "`approvals` can't be configured for all projects: that would allow calls in projects that you haven't reviewed"
)
_WHERE_APPROVALS = (
    "remove the table, and write rules into the project's own `approvals`; `llm-do approvals list` shows what you have "
    "allowed permanently"
)


@frozen
class ConfigFault:
    """What is wrong in a configuration.

    Args:
        message: What it is.
        hint: What to do.
        line: Its line, counted from 1.
        grave: Whether nothing should run before it is mended.
    """

    message: str
    hint: str
    line: int
    grave: bool = False


@frozen
class UserConfig:
    """What a person has configured for all projects.

    Args:
        file: Where the configuration is, or would be; None without a home folder.
        exists: Whether it is there.
        model: The models that are used where no one else names any, in the order they are tried.
        aliases: Models by alias.
        color: Whether output is coloured: where a terminal shows it, or never.
        faults: What is wrong in the file.
    """

    file: Path | None = None
    exists: bool = False
    model: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    color: Literal["auto", "never"] = "auto"
    faults: tuple[ConfigFault, ...] = ()


def config_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return where the configuration is; a relative `XDG_CONFIG_HOME` is ignored, as its specification says.

    Example:
        >>> config_file({"XDG_CONFIG_HOME": "/home/ann/config"}).as_posix()
        '/home/ann/config/llm-do/config.toml'
    """
    environ = os.environ if environ is None else environ
    named = Path(environ.get("XDG_CONFIG_HOME", ""))
    try:
        folder = named if named.is_absolute() else home_folder() / ".config"
    except RuntimeError:
        return None
    return folder / "llm-do" / "config.toml"


def load_user_config(environ: Mapping[str, str] | None = None) -> UserConfig:
    """Read the configuration, again only if the file has changed. Nothing is raised.

    Example:
        >>> load_user_config({"XDG_CONFIG_HOME": "/nowhere"}).exists
        False
    """
    file = config_file(environ)
    if file is None:
        return UserConfig()
    try:
        status = file.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
    except (OSError, ValueError):
        return UserConfig(file)
    known = _READ.get(file)
    if known is None or known[0] != stamp:
        known = _READ[file] = (stamp, _read(file))
    return known[1]


_READ: dict[Path, tuple[tuple[int, int, int], UserConfig]] = {}
"""Configurations that have been read, with the state of their files."""


def is_reserved(name: str) -> bool:
    """Whether an alias would hide a provider, or a model that llm-do has.

    Example:
        >>> is_reserved("openai"), is_reserved("local"), is_reserved("fast")
        (True, True, False)
    """
    return split_name(name)[0] == name or name in PROVIDERS


def _read(file: Path) -> UserConfig:
    import tomllib

    text = ""
    try:
        text = read_bounded_text(file, _LONGEST)
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found is not None and found[1] else text.count("\n") + 1
        reason = _AT_LINE.sub("", str(error))
        fault = ConfigFault(f"not valid TOML: {reason}", "correct the line; nothing of the file is used", line)
        return UserConfig(file, exists=True, faults=(fault,))
    except UnicodeDecodeError:
        fault = ConfigFault("not text in UTF-8", "save it as UTF-8; nothing of the file is used", 1)
        return UserConfig(file, exists=True, faults=(fault,))
    except (OSError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fault = ConfigFault(f"can't be read: {reason}", "make it a file that you may read", 1)
        return UserConfig(file, exists=True, faults=(fault,))
    return _Reader(file, text, data).read()


class _Reader:
    """Reads the values of one configuration, and collects what is wrong with them."""

    def __init__(self, file: Path, text: str, data: Mapping[str, Any]) -> None:
        self._file = file
        self._lines = text.splitlines()
        self._data = data
        self._faults: list[ConfigFault] = []

    def read(self) -> UserConfig:
        """Return what is right in the file, and the faults."""
        for key in self._data:
            if key == "approvals":
                self._report(_NO_APPROVALS, _WHERE_APPROVALS, key, grave=True)
            elif key not in KEYS:
                close = closest_match(key, KEYS)
                hint = f"did you mean `{close}`?" if close else f"the keys are {', '.join(KEYS)}"
                self._report(f"unknown key `{key}`", hint, key)
        aliases = self._aliases()
        model = self._models("model", self._data["model"], aliases) if "model" in self._data else ()
        color = self._color()
        return UserConfig(
            self._file, exists=True, model=model, aliases=aliases, color=color, faults=tuple(self._faults)
        )

    def _aliases(self) -> dict[str, tuple[str, ...]]:
        table: object = self._data.get("aliases", {})
        if not isinstance(table, dict):
            hint = 'write a table: [aliases], and below it lines such as fast = "openai:gpt-5-mini"'
            self._report("`aliases` must be a table", hint, "aliases")
            return {}
        declared = cast("dict[str, object]", table)
        aliases: dict[str, tuple[str, ...]] = {}
        for name, value in declared.items():
            if ALIAS_NAME.fullmatch(name) is None:
                self._report(
                    f"`{name}` can't be an alias", "use letters, digits, _ and -, starting with a letter", name
                )
            elif is_reserved(name):
                self._report(f"the alias `{name}` would hide a provider of that name", "choose another name", name)
            else:
                aliases[name] = self._models(name, value, declared)
        return {name: models for name, models in aliases.items() if models}

    def _models(self, key: str, value: object, aliases: Mapping[str, object]) -> tuple[str, ...]:
        many = cast("list[object]", value) if isinstance(value, list) else [value]
        models = tuple(each for each in many if isinstance(each, str) and each)
        if not many or len(models) < len(many):
            self._report(f"`{key}` must be a model's name, or a list of names", 'write "PROVIDER:NAME"', key)
            return ()
        for model in models:
            fault = None if model in aliases else find_name_fault(model, aliases=aliases)
            if fault is not None and not fault.may_register:
                self._report(f"the model `{model}` {fault.problem}", fault.hint, key)
                return ()
        return models

    def _color(self) -> Literal["auto", "never"]:
        value: object = self._data.get("color", "auto")
        if value in ("auto", "never"):
            return value
        if isinstance(value, bool):
            return "auto" if value else "never"
        self._report("`color` must be auto or never", 'write color = "auto"', "color")
        return "auto"

    def _report(self, message: str, hint: str, key: str, *, grave: bool = False) -> None:
        self._faults.append(ConfigFault(message, hint, self._line(key), grave))

    def _line(self, key: str) -> int:
        """The line of a key or of a table; 1 if it is written in a way that isn't found."""
        written = rf"[\"']?{re.escape(key)}[\"']?"
        pattern = re.compile(rf"\s*(?:\[+\s*{written}\s*[.\]]|(?:[\w.\s\"'-]+\.\s*)?{written}\s*[=.])")
        return next((number for number, line in enumerate(self._lines, 1) if pattern.match(line)), 1)
