"""Split Google-style docstrings into parts: description, arguments, return value, exceptions and examples."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

from griffe import Docstring, DocstringSectionKind, parse_google

from scripts.pages.markdown import prose

__all__ = ["Parts", "parts_of"]


@dataclass
class Parts:
    """The parts of a docstring: the text outside sections, the meanings of arguments and exceptions, the doctests."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    returns: str = ""
    raises: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    examples: list[str] = field(default_factory=list[str])


def parts_of(thing: object, text: str | None = None) -> Parts:
    """Split the docstring of a class, a function or a property, or `text` instead of it.

    Example:
        >>> parts_of(None, "Add.\\n\\nArgs:\\n    a: One.\\n    b: Another.\\n").arguments
        {'a': 'One.', 'b': 'Another.'}
    """
    found = Parts()
    written = text if text is not None else getattr(thing, "__doc__", None)
    docstring = Docstring(inspect.cleandoc(written or ""), lineno=1)
    for section in parse_google(docstring, warnings=False, returns_named_value=False, returns_multiple_items=False):
        value = section.value
        match section.kind:
            case DocstringSectionKind.text:
                found.text += ("\n\n" if found.text else "") + prose(str(value))
            case DocstringSectionKind.parameters:
                found.arguments |= {each.name: prose(each.description) for each in value}
            case DocstringSectionKind.returns | DocstringSectionKind.yields:
                found.returns = " ".join(prose(each.description) for each in value)
            case DocstringSectionKind.raises:
                found.raises += [(str(each.annotation), prose(each.description)) for each in value]
            case DocstringSectionKind.examples:
                found.examples += [str(each) for kind, each in value if kind is DocstringSectionKind.examples]
            case DocstringSectionKind.admonition:
                found.examples += [str(value.description)] if section.value.kind == "example" else []
            case _:
                raise ValueError(f"a section of a kind that pages don't show: {section.kind}")
    return found
