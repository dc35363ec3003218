"""Names that a package exports but imports only when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

__all__ = ["lazy_exports"]

_IMPORT_SYSTEM = "importlib._bootstrap"
"""The module that looks up the names of `from package import name`."""


def lazy_exports(
    package: str, names: Mapping[str, str], successor: Callable[[str], str | None] = lambda _: None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names live in the modules given.

    `successor` gives a sentence about a name that the package doesn't have, such as where it has gone.

    Example:
        >>> get, names = lazy_exports("demo", {"sqrt": "math"})
        >>> get("sqrt")(9.0)
        3.0
    """

    def get(name: str) -> object:
        module = names.get(name)
        if module is None:
            # Lower-case names may be modules of the package, which the import system asks for here first.
            advice = successor(name) if name[:1].isupper() else None
            caller = sys._getframe(1).f_globals.get("__name__")  # pyright: ignore[reportPrivateUsage]
            if advice is not None and caller == _IMPORT_SYSTEM:
                # `from package import name`: Python would replace an AttributeError's text by its own.
                raise ImportError(f"cannot import name {name!r} from {package!r}: {advice}", name=package)
            where = f": {advice}" if advice is not None else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{where}")
        return getattr(importlib.import_module(module), name)

    def listing() -> list[str]:
        return sorted(names)

    return get, listing
