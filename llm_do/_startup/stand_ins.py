"""Stand-ins for modules that others import at their top and hardly ever use: each is imported when it is used."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["defer_docstring_parser", "import_plugin_search", "plain_text"]

_SECTION = re.compile(r"^[^\S\n]*:?\w(?:[^\S\n]|[\w-])*:|---", re.MULTILINE)
"""What a docstring with sections has, in any of the styles that PydanticAI knows: a line that begins with words and a
colon, or a line of dashes."""


def import_plugin_search() -> None:
    """Import pydantic's search for plugins, but `importlib.metadata` only when something is searched for.

    Pydantic imports the search when it makes the first model; what stands in for that module is only there meanwhile.
    """
    stand_in = _StandIn("importlib.metadata")

    def entry_points(**selected: Any) -> Any:  # which pydantic takes, and calls for a search
        return stand_in.real.entry_points(**selected)

    if not stand_in.put(entry_points):
        return
    try:
        from pydantic import create_model

        create_model("First")
    finally:
        stand_in.remove()


def defer_docstring_parser() -> None:
    """Have PydanticAI import the parser of docstrings for the first one that has sections; others are plain text."""
    stand_in = _StandIn("pydantic_ai._griffe")

    def doc_descriptions(function: Any, *, docstring_format: str) -> Any:
        stand_in.bind()  # PydanticAI, which is being imported at the first call, isn't there before
        text: object = getattr(function, "__doc__", None)
        if text is None:
            return None, {}
        if docstring_format == "auto" and isinstance(text, str) and (plain := plain_text(text)):
            return plain, {}
        return stand_in.real.doc_descriptions(function, docstring_format=docstring_format)

    stand_in.put(doc_descriptions)


class _StandIn(ModuleType):
    """A module in the place of another: whatever it doesn't have is the real module's, which is imported then."""

    def put(self, function: Any) -> bool:
        """Stand in for the module with this function of its own, unless it has been imported."""
        if self.__name__ in sys.modules:
            return False
        setattr(self, function.__name__, function)
        sys.modules[self.__name__] = self
        return True

    def bind(self) -> None:
        """Make it the attribute of its package that an import of the module would have made of it."""
        package, _, name = self.__name__.rpartition(".")
        if name not in vars(sys.modules[package]):
            setattr(sys.modules[package], name, self)

    def remove(self) -> None:
        """Give the place back."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    @property
    def real(self) -> Any:
        """The real module, which is in its place from now on."""
        self.remove()
        return import_module(self.__name__)

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # which the import system asks for
            raise AttributeError(name)
        return getattr(self.real, name)


def plain_text(docstring: str) -> str:
    """Return the text of a docstring without sections, as the parser returns it; empty if it may have some.

    Example:
        >>> plain_text("Add two numbers. "), plain_text("Args: x")
        ('Add two numbers.', '')
    """
    return "" if _SECTION.search(docstring) else inspect.cleandoc(docstring.rstrip())
