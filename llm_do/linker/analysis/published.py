"""Toolsets of installed packages, for names that neither the project nor llm-do has.

A package is imported only in a folder that is open; in a closed one its toolset is known by name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from llm_do._entry_points import Published, describe, find_published, import_fault
from llm_do._startup.code_access import is_open
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import environment
from llm_do.diagnostics.diagnostic import Location
from llm_do.linker.analysis.names import Names
from llm_do.linker.python.exports import refuse_toolset
from llm_do.linker.python.python_files import run_user_code
from llm_do.project.agent_spec import AgentSpec, ToolsetRef
from llm_do.project.flow_spec import every_caller
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BUILTINS

__all__ = ["UnreadToolset", "load", "may_import", "register_published", "single"]


@frozen
class UnreadToolset:
    """A toolset of an installed package that wasn't imported, because the folder is closed."""

    published: Published


def register_published(names: Names) -> None:
    """Register the toolsets of installed packages that agents list and nothing else has."""
    seen: set[str] = set()
    for name, place in _unknown(names):
        if name in seen:
            continue
        seen.add(name)
        found = find_published("toolsets", name)
        if found and not _register(name, found, place, names):
            names.refused.add(name)


def may_import(names: Names) -> bool:
    """Whether the project's folder is open, so that a package that its files name may be imported."""
    return names.root is None or is_open(names.root)


def single(what: str, found: Sequence[Published], place: Location, names: Names) -> Published | None:
    """Return the only package that publishes a name; report it if there are several."""
    if len(found) > 1:
        names.report(environment.published_twice(what, list(map(str, found))), place)
        return None
    return found[0]


def _unknown(names: Names) -> Iterator[tuple[str, Location]]:
    """The names of toolsets that agents list and that nothing has, with their places."""
    for spec, place in every_caller(names.taken):
        for item in spec.toolsets if isinstance(spec, AgentSpec) else ():
            ref = ToolsetRef(item) if isinstance(item, str) else item
            if not isinstance(ref, ToolsetRef) or ref.value is not None:
                continue
            own = (names.taken, names.refused, names.functions, names.toolsets, BUILTINS)
            if not any(ref.name in each for each in own) and not names.broken.may_have(ref.name):
                yield ref.name, ref.place or place or Location("")


def _register(name: str, found: Sequence[Published], place: Location, names: Names) -> bool:
    what = f"the toolset `{name}`"
    published = single(what, found, place, names)
    if published is None:
        return False
    value: object = UnreadToolset(published)
    if may_import(names):
        loaded = load(what, published, refuse_toolset, place, names)
        if loaded is None:
            return False
        value = loaded
    else:
        names.unread_packages.append(f"{what} of {published}")
    names.packages[published.distribution] = published.version
    names.taken[name] = Registered(name, "toolset", value)
    return True


def load(
    what: str, published: Published, refuse: Callable[[object], str | None], place: Location, names: Names
) -> object | None:
    """Import what a package publishes; report what is wrong with it and return None."""
    try:
        with run_user_code():
            value = published.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a package's code may raise anything, also SystemExit
        names.report(environment.published_unusable(what, str(published), import_fault(error)), place)
        return None
    advice = refuse(value)
    if advice is not None:
        reason = f"`{published.target}` is {describe(value)}" + (f": {advice}" if advice else "")
        names.report(environment.published_unusable(what, str(published), reason), place)
        return None
    return value
