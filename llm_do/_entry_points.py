"""What installed packages publish for llm-do: toolsets and models, by their entry points.

Finding one reads metadata only; `load` imports the package's code.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["GROUPS", "Group", "Published", "describe", "find_published", "import_fault"]

Group = Literal["toolsets", "models"]

GROUPS: tuple[Group, ...] = ("toolsets", "models")
"""The groups of entry points, `llm_do.toolsets` and `llm_do.models`."""


class Published(NamedTuple):
    """An entry point of an installed package."""

    name: str
    """The toolset, or the prefix of the models."""

    target: str
    """The object, as `module:attribute`."""

    distribution: str
    """The package that publishes it."""

    version: str
    """The version of that package."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    def load(self) -> object:
        """Import the object; whatever the package's code raises is raised."""
        from importlib.metadata import EntryPoint

        return EntryPoint(self.name, self.target, "").load()


def find_published(group: Group, name: str | None = None) -> tuple[Published, ...]:
    """Find what installed packages publish, all of a group or all of one name; nothing is imported.

    Example:
        >>> find_published("toolsets", "no-package-has-this")
        ()
    """
    from importlib.metadata import entry_points

    group_name = f"llm_do.{group}"
    found = entry_points(group=group_name) if name is None else entry_points(group=group_name, name=name)
    each = [(point, point.dist) for point in found]
    made = {Published(point.name, point.value, dist.name, dist.version) for point, dist in each if dist is not None}
    return tuple(sorted(made))


def import_fault(error: BaseException) -> str:
    """Say what an import has raised.

    Example:
        >>> import_fault(ModuleNotFoundError("No module named 'acme'"))
        "its import raised ModuleNotFoundError: No module named 'acme'"
    """
    text = " ".join(str(error).split())[:300]
    return f"its import raised {type(error).__name__}{f': {text}' if text else ''}"


def describe(value: object) -> str:
    """Say what an object of the wrong type is.

    Example:
        >>> describe(3), describe(int)
        ('a value of type int', 'the class int')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
