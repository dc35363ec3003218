"""Where the functions of a project's Python files are defined: their parameters, and what their decorators say.

Read from the source when a diagnostic needs it; a function whose source isn't the project's has no location.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from llm_do._bounded_files import read_bounded
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.diagnostics.labels import file_label
from llm_do.linker.python.positions import column_of
from llm_do.tools import NamedTool

__all__ = ["Definition", "definition_of"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Definition:
    """A function's source.

    Args:
        label: The file, as diagnostics name it.
        node: The definition.
        lines: The file's lines, as bytes.
    """

    label: str
    node: _Function
    lines: tuple[bytes, ...]

    def mention_of(self, text: str) -> Location | None:
        """Where a decorator has a text as one of its values, such as a state; None where none has."""
        for decorator in self.node.decorator_list:
            for part in ast.walk(decorator):
                if isinstance(part, ast.Constant) and part.value == text:
                    return self._place(part)
        return None

    def parameter(self, name: str) -> Location | None:
        """The location of a parameter, None when there is none."""
        own = self.node.args
        found = (each for each in (*own.posonlyargs, *own.args, *own.kwonlyargs) if each.arg == name)
        return next(map(self._place, found), None)

    @property
    def start(self) -> Location:
        """The line that it begins with: its first decorator, where it has one."""
        return (
            self._place(self.node.decorator_list[0]) if self.node.decorator_list else self._place(self.node, end=False)
        )

    @property
    def place(self) -> Location:
        """The beginning of the definition itself."""
        return self._place(self.node, end=False)

    def _place(self, node: ast.expr | ast.arg | _Function, *, end: bool = True) -> Location:
        column = column_of(self.lines, node.lineno, node.col_offset)
        if not end or node.end_lineno != node.lineno:
            return Location(self.label, node.lineno, column)
        end_column = column_of(self.lines, node.lineno, node.end_col_offset or 0)
        return Location(self.label, node.lineno, column, node.lineno, end_column)


def definition_of(function: object, root: Path) -> Definition | None:
    """The source of a function."""
    function = function.function if isinstance(function, NamedTool) else function
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    if not isinstance(code, CodeType) or not Path(code.co_filename).is_relative_to(root):
        return None
    try:
        source = read_bounded(Path(code.co_filename))
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError):
        return None
    node = next(_definitions(tree, code), None)
    label = file_label(root, Path(code.co_filename))
    return Definition(label, node, tuple(source.splitlines())) if node is not None else None


def _definitions(tree: ast.Module, code: CodeType) -> Iterator[_Function]:
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                yield node
