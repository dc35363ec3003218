"""Where a Python file defines its names, and which names it mentions: read from its syntax tree.

Positions are for diagnostics; what the names are bound to is known only after the import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from llm_do._startup.frozen import frozen

__all__ = ["Facts", "Span", "column_of", "read_facts"]

_CALLS = {"call", "call_agent"}


@frozen
class Span:
    """Line and column of a stretch of text, from 1, and its end (exclusive)."""

    line: int
    column: int
    end_line: int
    end_column: int


@frozen
class Facts:
    """What is known of a Python file without running it.

    Args:
        names: Module-level names, each where it was bound first.
        imported: Those that nothing but an import binds.
        members: Members of module-level lists and dicts: variable and index or key, to where they stand.
        strings: Every short string constant: names that the code may call.
        calls_anything: Somewhere a name that isn't a constant is called, so any name may be meant.
        acts: Importing it calls something for what that does, such as registering a model.
        modules: What it imports anywhere: `a`, `a.b` and `a.b.c` for `from a.b import c`, which may be a module.
    """

    names: Mapping[str, Span] = field(default_factory=dict[str, Span])
    members: Mapping[tuple[str, int | str], Span] = field(default_factory=dict[tuple[str, "int | str"], Span])
    strings: frozenset[str] = frozenset()
    calls_anything: bool = False
    acts: bool = False
    imported: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()


def read_facts(tree: ast.Module, source: bytes) -> Facts:
    """Collect the facts of a parsed file.

    Example:
        >>> import ast
        >>> text = "TOOLS = {'add': add}"
        >>> read_facts(ast.parse(text), text.encode()).members["TOOLS", "add"].column
        10
    """
    lines = source.splitlines()
    names: dict[str, Span] = {}
    members: dict[tuple[str, int | str], Span] = {}
    made: set[str] = set()
    for statement in _module_level(tree.body):
        for name, node in _bindings(statement):
            names.setdefault(name, _span(node, lines, name))
            if not isinstance(node, ast.alias):
                made.add(name)
        for key, node in _members(statement):
            members.setdefault(key, _span(node, lines))
    strings: set[str] = set()
    modules: set[str] = set()
    dynamic = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and len(node.value) <= 64:
                strings.add(node.value)
        elif isinstance(node, ast.Call) and not dynamic:
            dynamic = _calls_anything(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules.update(_modules(node))
    acts = any(isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) for node in _module_level(tree.body))
    return Facts(names, members, frozenset(strings), dynamic, acts, frozenset(names.keys() - made), frozenset(modules))


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.TryStar):
            for part in ("body", "orelse", "finalbody"):
                yield from _module_level(getattr(statement, part, []))
            if isinstance(statement, ast.Try | ast.TryStar):
                for handler in statement.handlers:
                    yield from _module_level(handler.body)


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt | ast.expr | ast.alias]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, statement
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield (alias.asname or alias.name.partition(".")[0]), alias
    else:
        for target in _targets(statement):
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    yield node.id, node


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign | ast.AugAssign) else []


def _members(statement: ast.stmt) -> Iterator[tuple[tuple[str, int | str], ast.expr]]:
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return
    for target in _targets(statement):
        if not isinstance(target, ast.Name):
            continue
        if isinstance(statement.value, ast.Dict):
            for key in statement.value.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield (target.id, key.value), key
        elif isinstance(statement.value, ast.List | ast.Tuple | ast.Set):
            for index, item in enumerate(statement.value.elts):
                yield (target.id, index), item


def _modules(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that a statement may import, those around them included; without the dots in front."""
    around = [statement.module] if isinstance(statement, ast.ImportFrom) and statement.module else []
    for alias in statement.names:
        parts = ".".join([*around, alias.name]).split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _calls_anything(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _CALLS:
        return False
    first = node.args[0] if node.args else next((item.value for item in node.keywords if item.arg == "name"), None)
    return not isinstance(first, ast.Constant)


def _span(node: ast.stmt | ast.expr | ast.alias, lines: list[bytes], name: str = "") -> Span:
    """The place of a node; for a definition, that of the name behind `def` or `class`."""
    line, start = node.lineno, node.col_offset
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        text = lines[line - 1] if line <= len(lines) else b""
        found = text.find(b" " + name.encode(), start)
        start = found + 1 if found >= 0 else start
        return Span(line, column_of(lines, line, start), line, column_of(lines, line, start) + len(name))
    end_line, end = node.end_lineno or line, node.end_col_offset or start
    return Span(line, column_of(lines, line, start), end_line, column_of(lines, end_line, end))


def column_of(lines: Sequence[bytes], line: int, offset: int) -> int:
    """The column of a syntax tree's offset: trees count UTF-8 bytes from 0, we count characters from 1.

    Example:
        >>> column_of(["é = x".encode()], 1, 5)
        5
    """
    text = lines[line - 1][:offset] if line <= len(lines) else b""
    return len(text.decode(errors="replace")) + 1 if text else offset + 1
