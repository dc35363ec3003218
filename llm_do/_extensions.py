"""Extension points: what a room needs of the rooms above it, without importing them.

A point is declared beside the code that uses it. `llm_do.assembly` fills it when it is first used, so nothing of the
rooms above is imported before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

__all__ = ["ExtensionPoint", "find_fillers"]

T = TypeVar("T")

find_fillers: Callable[[], Mapping[str, Callable[[], None]]] = dict
"""Finds the function that fills each point, by the point's name; `llm_do` sets it."""


class ExtensionPoint(Generic[T]):
    """A place for one thing that a higher room provides.

    Example:
        >>> greet: ExtensionPoint[Callable[[str], str]] = ExtensionPoint("greet")
        >>> greet.provide("Hello, {}".format)
        >>> greet.get()("Ada")
        'Hello, Ada'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: T | None = None

    def provide(self, value: T) -> None:
        """Fill the point."""
        self._value = value

    def get(self) -> T:
        """What fills the point."""
        if self._value is None:
            find_fillers()[self.name]()
        assert self._value is not None, f"nothing fills the extension point {self.name!r}"
        return self._value
