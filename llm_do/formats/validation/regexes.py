"""Regular expressions in project files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_do.diagnostics.codes import cases as problems
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import KeyPath, Node

__all__ = ["regex_fault", "unreadable_patterns"]


def regex_fault(node: Node, loc: KeyPath) -> Iterator[Diagnostic]:
    """What is wrong with the regular expression at a path, if there is one."""
    found = node.at(loc)
    if found is None or not isinstance(found.scalar, str):
        return
    try:
        re.compile(found.scalar)
    except (re.error, OverflowError, RecursionError) as error:
        yield problems.unreadable_regex(found.scalar, str(error)).at(found.place)


def unreadable_patterns(node: Node, loc: KeyPath) -> Iterator[Diagnostic]:
    """What is wrong with the regular expressions of a list."""
    found = node.at(loc)
    for index, _ in enumerate(found.items if found is not None else ()):
        yield from regex_fault(node, (*loc, index))
