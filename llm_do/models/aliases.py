"""Aliases of models, such as `fast`: the one place where a name that anyone has written becomes names of models.

A project declares aliases under `models` in its manifest, a person under `[aliases]` in their configuration; the
project's win, since its files were written with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from llm_do.errors import ModelUnavailableError
from llm_do.models.providers.model_names import anchor_path
from llm_do.models.user_config import load_user_config

__all__ = ["Aliases", "find_cycle", "known_aliases", "resolve_aliases"]

Aliases: TypeAlias = Mapping[str, "str | Sequence[str]"]
"""A model, or several that are tried in order, by alias."""


def known_aliases(declared: Aliases, root: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return a project's aliases and the person's own; paths of scripts and weights are those of where each is written.

    Args:
        declared: The project's aliases.
        root: The project's folder.

    Example:
        >>> known_aliases({"fast": "openai:gpt-5-mini"})["fast"]
        ('openai:gpt-5-mini',)
    """
    config = load_user_config()
    folder = config.file.parent if config.file is not None else None
    own = {name: _anchored(models, folder) for name, models in config.aliases.items()}
    return {**own, **{name: _anchored(_as_tuple(models), root) for name, models in declared.items()}}


def resolve_aliases(
    names: str | Iterable[str], declared: Aliases | None = None, root: Path | None = None
) -> tuple[str, ...]:
    """Replace aliases by what they stand for; other names stay as they are.

    Args:
        names: A name, or several that are tried in order.
        declared: The project's aliases.
        root: The project's folder.

    Raises:
        ModelUnavailableError: An alias leads back to itself.

    Example:
        >>> aliases = {"fast": "openai:gpt-5-mini", "best": ["anthropic:claude-sonnet-5-5", "fast"]}
        >>> resolve_aliases("best", aliases)
        ('anthropic:claude-sonnet-5-5', 'openai:gpt-5-mini')
    """
    asked = _as_tuple(names)
    if all(":" in name and name not in (declared or ()) for name in asked):  # so it is no alias of the person's
        return tuple(dict.fromkeys(asked))
    known = known_aliases(declared or {}, root)
    return tuple(dict.fromkeys(each for name in asked for each in _resolved(name, known, ())))


def find_cycle(name: str, aliases: Aliases) -> tuple[str, ...] | None:
    """Return the way from an alias back to itself; None if there is none.

    Example:
        >>> find_cycle("a", {"a": "b", "b": ["openai:gpt-5", "a"]}), find_cycle("a", {"a": "b"})
        (('a', 'b', 'a'), None)
    """
    waiting: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while waiting:
        way = waiting.pop()
        for target in _as_tuple(aliases.get(way[-1], ())):
            if target == name:
                return (*way, target)
            if target in aliases and target not in seen:
                seen.add(target)
                waiting.append((*way, target))
    return None


def _resolved(name: str, known: Mapping[str, tuple[str, ...]], way: tuple[str, ...]) -> tuple[str, ...]:
    if name not in known:
        return (name,)
    if name in way:
        raise ModelUnavailableError(
            f"the model alias {name!r} leads back to itself: {' -> '.join((*way, name))}",
            hint="let one of them name a model, in `models` of project.json or in config.toml",
        )
    return tuple(each for target in known[name] for each in _resolved(target, known, (*way, name)))


def _as_tuple(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _anchored(names: tuple[str, ...], folder: Path | None) -> tuple[str, ...]:
    return names if folder is None else tuple(anchor_path(name, folder) for name in names)
