"""Names that a package exports but imports only when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

__all__ = ["lazy_exports"]


def lazy_exports(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names live in the modules given.

    Example:
        >>> get, names = lazy_exports("demo", {"sqrt": "math"})
        >>> get("sqrt")(9.0)
        3.0
    """

    def get(name: str) -> object:
        module = names.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(module), name)

    def listing() -> list[str]:
        return sorted(names)

    return get, listing
