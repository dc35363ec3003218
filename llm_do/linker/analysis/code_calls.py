"""Which agents, flows and functions a project's own code calls, as its source says.

A function that gets a context can call any name. Its calls are known if the source uses the context only for calls with
literal names and for what calls nothing, here and in the functions of its file that it passes the context to.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from llm_do._bounded_files import read_bounded
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.diagnostics.labels import file_label
from llm_do.project.functions import takes_context
from llm_do.tools import NamedTool

__all__ = ["CodeCall", "CodeCalls", "calls_in", "context_parameter"]

_CALLS = frozenset({"call", "call_agent"})
_NAMES = ("ctx", "context")
_WITH_CONTEXT = frozenset({"deps"})
"""Attributes that are a context themselves."""
_HARMLESS = frozenset(
    {
        *("call_id", "cancelled", "depth", "messages", "path", "project", "prompt", "retry", "run_id", "run_step"),
        *("state", "step", "thread", "thread_id", "tool_call_id", "tool_name", "usage", "user", "user_id", "warn"),
    }
)
"""Attributes of a context with which nothing can be called."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_REPEATS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)


@frozen
class CodeCall:
    """One place that calls a name.

    Args:
        name: What is called.
        place: Where.
        repeated: Whether it is in a loop, or in a function that is called in one, so that it may happen any number of
            times.
    """

    name: str
    place: Location
    repeated: bool = False


@frozen
class CodeCalls:
    """The calls that a function makes.

    Args:
        calls: The calls with known names.
        unknown: Where it may call any name; None if every call is known.
        repeated: The first place that may happen any number of times; None if there is none.
    """

    calls: tuple[CodeCall, ...] = ()
    unknown: Location | None = None
    repeated: Location | None = None


def context_parameter(function: object, *, first: bool = False) -> str | None:
    """Return the name of the parameter through which a function can call others; None if it has none.

    With `first`, whatever is passed first is a context.

    Example:
        >>> def step(input, ctx): ...
        >>> def add(a: int, b: int): ...
        >>> context_parameter(step), context_parameter(add)
        ('ctx', None)
    """
    takes_first = first or getattr(function, "takes_ctx", None) is True
    function = _plain(function)
    if not callable(function):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if takes_context(function):
        return parameters[1].name
    named = (each.name for each in parameters if each.name in _NAMES or "Context" in str(each.annotation))
    return next(named, parameters[0].name if takes_first and parameters else None)


def calls_in(function: object, root: Path, place: Location | None, *, first: bool) -> CodeCalls:
    """Return what a function of the project calls.

    Args:
        function: The function, or the object of a tool.
        root: The project's folder.
        place: Where it was declared, for one whose source can't be read.
        first: Whether whatever is passed first is a context.
    """
    name = context_parameter(function, first=first)
    if name is None:
        return CodeCalls()
    plain = inspect.unwrap(_plain(function))  # pyright: ignore[reportArgumentType]
    code = getattr(plain, "__code__", None)
    nowhere = CodeCalls(unknown=place or Location(""))
    if code is None:
        return nowhere
    file = Path(code.co_filename)
    try:
        tree = ast.parse(read_bounded(file))
    except (OSError, ValueError, SyntaxError):
        return nowhere
    label = file_label(root, file) if file.is_relative_to(root) else str(file)
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    found = next((node for node in ast.walk(tree) if isinstance(node, _Function) and _is(node, code)), None)
    if found is None:
        return nowhere
    reader = _Reader(label, functions)
    reader.read(found, name, repeated=False)
    return CodeCalls(tuple(reader.calls), reader.unknown, reader.repeated)


def _plain(function: object) -> object:
    """Return the function behind the objects that tools are made of."""
    while True:
        if isinstance(function, NamedTool):
            function = cast("object", function.function)
        elif isinstance(function, partial):
            function = cast("partial[object]", function).func
        elif hasattr(function, "takes_ctx") and callable(getattr(function, "function", None)):  # PydanticAI's Tool
            function = cast("object", function.function)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        else:
            return function


def _is(node: _Function, code: object) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.name == getattr(code, "co_name", None) and first == getattr(code, "co_firstlineno", None)


@dataclass(slots=True)
class _Reader:
    """Reads the functions of one file that get a context."""

    label: str
    functions: dict[str, _Function]
    calls: list[CodeCall] = field(default_factory=list[CodeCall])
    unknown: Location | None = None
    repeated: Location | None = None
    seen: set[tuple[str, str, bool]] = field(default_factory=set[tuple[str, str, bool]])

    def read(self, function: _Function, name: str, *, repeated: bool) -> None:
        """Read one function, whose parameter `name` is a context."""
        key = (function.name, name, repeated)
        if key in self.seen:  # it calls itself, or is called twice
            self._note_repeated(function)
            return
        self.seen.add(key)
        parents = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == name:
                self._use(node, parents, function, repeated=repeated)

    def _use(self, node: ast.expr, parents: dict[ast.AST, ast.AST], function: _Function, *, repeated: bool) -> None:
        parent = parents.get(node)
        again = repeated or _in_loop(node, parents, function)
        if isinstance(parent, ast.Attribute):
            if parent.attr in _WITH_CONTEXT:
                self._use(parent, parents, function, repeated=repeated)
            elif parent.attr in _CALLS:
                self._call(parent, parents.get(parent), again)
            elif parent.attr not in _HARMLESS:
                self._unknown(parent)
            return
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and node in parent.args:
            inner = self.functions.get(parent.func.id)
            parameters = [*inner.args.posonlyargs, *inner.args.args] if inner is not None else []
            at = parent.args.index(node)
            starred = any(isinstance(each, ast.Starred) for each in parent.args[:at])
            if inner is not None and at < len(parameters) and not starred:
                if again:
                    self._note_repeated(parent)
                self.read(inner, parameters[at].arg, repeated=again)
                return
        self._unknown(node)

    def _call(self, attribute: ast.Attribute, call: ast.AST | None, repeated: bool) -> None:
        if not isinstance(call, ast.Call) or call.func is not attribute:
            self._unknown(attribute)
            return
        first = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "name"), None)
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            self._unknown(call)
        else:
            self.calls.append(CodeCall(first.value, self._place(call), repeated))
        if repeated:
            self._note_repeated(call)

    def _unknown(self, node: ast.expr) -> None:
        self.unknown = self.unknown or self._place(node)

    def _note_repeated(self, node: ast.expr | _Function) -> None:
        self.repeated = self.repeated or self._place(node)

    def _place(self, node: ast.expr | _Function) -> Location:
        return Location(self.label, node.lineno, node.col_offset + 1)


def _in_loop(node: ast.AST, parents: dict[ast.AST, ast.AST], function: _Function) -> bool:
    """Whether a part of a function may run more than once: in a loop, or in a function inside it."""
    return any(isinstance(each, (*_REPEATS, *_COMPREHENSIONS, *_NESTED)) for each in _above(node, parents, function))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST], function: _Function) -> Iterator[ast.AST]:
    while (found := parents.get(node)) is not None and found is not function:
        yield found
        node = found
