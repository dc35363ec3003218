"""Packages that do nothing but export names of their modules, which are imported when such a name is first used.

The SDKs of OpenAI and Anthropic define each type of their API in a module of its own. Importing one imports all, and a
run uses few. Here such a package answers for its names by PEP 562: modules and classes are the same, only later.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

__all__ = ["asking_about", "defer_packages", "exported_names"]

P = ParamSpec("P")
R = TypeVar("R")

DEFERRED = ("openai.types", "anthropic.types")
"""The packages concerned, with those in them."""

_EXPORT = re.compile(r"from \.(\w[\w.]*) import (?:\(\s*((?:\w+ as \w+,\s*)+)\)|(\w+ as \w+))[ \t]*(?:\n|$)")
_NAME = re.compile(r"(\w+) as (\w+)")
_NONE: frozenset[str] = frozenset()
_ASKED_ABOUT: ContextVar[frozenset[str]] = ContextVar("asked_about", default=_NONE)
_IGNORED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n|from __future__ import annotations\n)*")


def defer_packages() -> None:
    """Import the modules of such packages at their first use, from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def asking_about(names: frozenset[str], function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Call a function that asks whether values are instances of classes, without importing these classes for it.

    A class whose module hasn't been imported has no instances, so what stands in for it can answer without the module.
    Other threads and tasks get the classes themselves, and so does the function for anything but this question.

    Args:
        names: The classes with their packages, such as `openai.types.responses.Response`.
        function: What to call.
        arguments: Its arguments.
        named: Its named arguments.
    """
    token = _ASKED_ABOUT.set(names)
    try:
        return function(*arguments, **named)
    finally:
        _ASKED_ABOUT.reset(token)


def exported_names(text: str) -> dict[str, str] | None:
    """Read which names a package exports, and the modules that they come from, relative to it.

    Args:
        text: The source of its `__init__.py`.

    Returns:
        None if it has any other statement, or a name that is also a module's.

    Example:
        >>> exported_names("from .shared import Metadata as Metadata\\n")
        {'Metadata': 'shared'}
        >>> exported_names("from .shared import Metadata as Metadata\\nprint(Metadata)\\n") is None
        True
    """
    names: dict[str, str] = {}
    modules: set[str] = set()
    position = _after_ignored(text, 0)
    while position < len(text):
        found = _EXPORT.match(text, position)
        if found is None:
            return None
        modules.add(found[1].partition(".")[0])
        for name, exported in _NAME.findall(found[2] or found[3]):
            if name != exported:
                return None
            names[name] = found[1]
        position = _after_ignored(text, found.end())
    return names if modules.isdisjoint(names) else None


def _after_ignored(text: str, position: int) -> int:
    found = _IGNORED.match(text, position)
    return position if found is None else found.end()


class _StandIn(type):
    """The type of what stands in for a class whose module hasn't been imported."""

    _module: str

    def _imported(cls) -> Any:
        return asking_about(_NONE, lambda: getattr(importlib.import_module(cls._module), cls.__name__))

    def __instancecheck__(cls, instance: object) -> bool:
        return cls._module in sys.modules and isinstance(instance, cls._imported())

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls._module in sys.modules and issubclass(subclass, cls._imported())

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return cls._imported()(*arguments, **named)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._imported(), name)


@cache
def _stand_in(module: str, name: str) -> _StandIn:
    # Asked for with each chunk of a stream; a class takes time to make, and more to collect.
    return _StandIn(name, (), {"_module": module})


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(DEFERRED):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.submodule_search_locations and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        names = exported_names(self.get_data(self.path).decode("utf-8", "replace"))
        if names is None:
            super().exec_module(module)
            return
        package, kept = self.name, vars(module)

        def get(name: str) -> object:
            if name == "__all__":
                return list(names)
            if name in names:
                module = f"{package}.{names[name]}"
                if f"{package}.{name}" in _ASKED_ABOUT.get() and module not in sys.modules:
                    return _stand_in(module, name)
                value: object = getattr(importlib.import_module(module), name)
            elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}") is not None:
                # Modules of the package would be there, too, because others import them.
                value = importlib.import_module(f"{package}.{name}")
            else:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            kept[name] = value
            return value

        kept["__getattr__"] = get
        kept["__dir__"] = lambda: sorted({*kept, *names})
