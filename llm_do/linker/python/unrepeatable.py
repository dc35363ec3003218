"""What isn't the same when code runs again: clocks, random numbers, requests, files, found in a file's syntax tree.

Names are followed through imports, aliases and simple assignments; a call of a function of the same file is followed
into it. What `ctx.step` is given is left out, since it happens once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.linker.python.unrepeatable_calls import Kind, is_seedable, kind_of

__all__ = ["Function", "Unrepeatable", "find_unrepeatable"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Bound: TypeAlias = "str | ast.expr | None"
"""What a local name stands for: a dotted path, an expression, or something unknown."""

_DEPTH = 12
"""How many names are followed one after the other."""

_TOOLS = frozenset({"tools", "toolsets", "hooks"})
"""Keywords whose functions others call."""


@frozen
class Unrepeatable:
    """A call that isn't the same twice.

    Args:
        node: The call.
        kind: What it does.
    """

    node: ast.Call
    kind: Kind


def find_unrepeatable(tree: ast.Module, roots: Iterable[Function | ast.Lambda]) -> list[Unrepeatable]:
    """Find such calls in functions of a file, and in what they call there.

    Args:
        tree: The file.
        roots: The functions, defined anywhere in it.

    Example:
        >>> tree = ast.parse("import time as t\\ndef main(input, ctx):\\n    return t.time()")
        >>> [found.kind for found in find_unrepeatable(tree, [tree.body[1]])]
        ['clock']
    """
    search = _Search(_Module(tree))
    for root in roots:
        search.enter(root, [])
    return sorted(search.found.values(), key=lambda each: (each.node.lineno, each.node.col_offset))


class _Module:
    """The names of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, Function] = {}
        self.values: dict[str, _Bound] = {}
        for node in _own_nodes(tree.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions[node.name] = node
        self.values = dict(_bindings(tree.body))
        self.seeded = any(
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.func, ast.Attribute | ast.Name)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "seed"
            for node in ast.walk(tree)
        )


@dataclass(slots=True, eq=False)
class _Scope:
    """The names of one function."""

    names: Mapping[str, _Bound]
    functions: Mapping[str, Function]


@dataclass(eq=False)
class _Search:
    """Goes through functions, each once."""

    module: _Module
    found: dict[ast.Call, Unrepeatable] = field(default_factory=dict[ast.Call, Unrepeatable])
    _seen: set[ast.AST] = field(default_factory=set[ast.AST])

    def enter(self, function: Function | ast.Lambda, outer: list[_Scope]) -> None:
        """Go through a function that is called."""
        if function in self._seen:
            return
        self._seen.add(function)
        body = function.body if isinstance(function.body, list) else [ast.Expr(function.body)]
        inner = {node.name: node for node in _own_nodes(body) if isinstance(node, Function)}
        names = {**dict(_parameters(function.args)), **dict(_bindings(body))}
        scopes = [*outer, _Scope(names, inner)]
        for statement in body:
            self._visit(statement, scopes)

    def _visit(self, node: ast.AST, scopes: list[_Scope]) -> None:
        if isinstance(node, ast.ClassDef):
            return
        if isinstance(node, Function):
            for each in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
                if each is not None:
                    self._visit(each, scopes)
            return
        if isinstance(node, ast.Lambda):
            self.enter(node, scopes)
            return
        if isinstance(node, ast.Name):
            self._mention(node, scopes)
            return
        if isinstance(node, ast.Call):
            self._call(node, scopes)
            return
        for child in ast.iter_child_nodes(node):
            self._visit(child, scopes)

    def _call(self, node: ast.Call, scopes: list[_Scope]) -> None:
        once = _step_function(node)
        path = self._path(node.func, scopes)
        if path is not None and once is None and not (self.module.seeded and is_seedable(path)):
            kind = kind_of(path, node)
            if kind is not None:
                self.found[node] = Unrepeatable(node, kind)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.keyword) and (child.arg in _TOOLS or child.value is once):
                continue
            if child is not once:
                self._visit(child, scopes)

    def _mention(self, node: ast.Name, scopes: list[_Scope]) -> None:
        """Follow a name to the function or the value that it stands for."""
        for number in range(len(scopes), 0, -1):
            scope = scopes[number - 1]
            if node.id in scope.functions:
                self.enter(scope.functions[node.id], scopes[:number])
                return
            if node.id in scope.names:
                return
        if node.id in self.module.functions:
            self.enter(self.module.functions[node.id], [])
            return
        value = self.module.values.get(node.id)
        if isinstance(value, ast.expr) and value not in self._seen:
            self._seen.add(value)
            self._visit(value, [])

    def _path(self, node: ast.expr, scopes: list[_Scope], depth: int = 0) -> str | None:
        """The dotted path of what an expression stands for, with `()` where something is called."""
        if depth > _DEPTH:
            return None
        if isinstance(node, ast.Await):
            return self._path(node.value, scopes, depth + 1)
        if isinstance(node, ast.Attribute):
            base = self._path(node.value, scopes, depth + 1)
            return f"{base}.{node.attr}" if base is not None else None
        if isinstance(node, ast.Call):
            base = self._path(node.func, scopes, depth + 1)
            return f"{base}()" if base is not None else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            base = self._path(node.left, scopes, depth + 1)
            return base if base == "pathlib.Path()" else None
        return self._name(node, scopes, depth) if isinstance(node, ast.Name) else None

    def _name(self, node: ast.Name, scopes: list[_Scope], depth: int) -> str | None:
        for number in range(len(scopes), 0, -1):
            scope = scopes[number - 1]
            if node.id in scope.functions:
                return None
            if node.id in scope.names:
                return self._bound(scope.names[node.id], scopes[:number], depth)
        if node.id in self.module.functions:
            return None
        if node.id in self.module.values:
            return self._bound(self.module.values[node.id], [], depth)
        return f"builtins.{node.id}"

    def _bound(self, bound: _Bound, scopes: list[_Scope], depth: int) -> str | None:
        return self._path(bound, scopes, depth + 1) if isinstance(bound, ast.expr) else bound


def _step_function(node: ast.Call) -> ast.expr | None:
    """What `ctx.step` is given to do once; None if it is another call."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "step":
        return None
    named = next((each.value for each in node.keywords if each.arg == "function"), None)
    given = node.args[1] if len(node.args) > 1 else named
    if isinstance(given, ast.Call):  # its result is passed, so it is called each time
        made = given.func.attr if isinstance(given.func, ast.Attribute) else getattr(given.func, "id", "")
        return given if made == "partial" else None
    return given


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a body, without those inside of functions and classes that it defines."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _parameters(args: ast.arguments) -> Iterator[tuple[str, _Bound]]:
    """The parameters of a function; one that is annotated with a class is an object of it."""
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        annotation = each.annotation
        yield each.arg, ast.Call(annotation, [], []) if isinstance(annotation, ast.Name | ast.Attribute) else None
    for rest in (args.vararg, args.kwarg):
        if rest is not None:
            yield rest.arg, None


def _bindings(body: Iterable[ast.AST]) -> Iterator[tuple[str, _Bound]]:
    """The names that a body binds; one that is bound in several ways is unknown."""
    found: dict[str, list[_Bound]] = {}
    outer: set[str] = set()
    for node in _own_nodes(body):
        if isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
        for name, bound in _bound_by(node):
            found.setdefault(name, []).append(bound)
    for name, all_bound in found.items():
        if name not in outer:
            same = len(all_bound) == 1 or len({each for each in all_bound if isinstance(each, str)}) == 1
            yield name, all_bound[0] if same else None


def _bound_by(node: ast.AST) -> Iterator[tuple[str, _Bound]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            path = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            yield alias.asname or alias.name, path
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from _targets(target, node.value)
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
        yield from _targets(node.target, None)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _targets(node.optional_vars, node.context_expr)
    elif isinstance(node, ast.ExceptHandler | ast.ClassDef | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, None
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, None


def _targets(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, _Bound]]:
    if isinstance(target, ast.Name):
        yield target.id, value
        return
    if isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                yield part.id, None
