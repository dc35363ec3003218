"""Code that runs again when a durable run is resumed: what in it isn't the same twice."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from llm_do._bounded_files import read_bounded
from llm_do.diagnostics.codes.environment import unrepeatable_call
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.linker.python.positions import column_of
from llm_do.linker.python.unrepeatable import Function, Unrepeatable, find_unrepeatable
from llm_do.linker.python.unrepeatable_calls import MENTIONED
from llm_do.project.flow_spec import FlowSpec, every_agent
from llm_do.project.functions import takes_context

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_replays"]


def check_replays(project: Project) -> list[Diagnostic]:
    """Warn of clocks, random numbers, requests and files in code that runs again, outside of `ctx.step`."""
    codes: dict[Path, dict[CodeType, bool]] = {}
    for function, has_context in _functions(project):
        code = getattr(inspect.unwrap(function), "__code__", None)
        if isinstance(code, CodeType):
            codes.setdefault(Path(code.co_filename), {}).setdefault(code, has_context)
    found: list[Diagnostic] = []
    for file, own in codes.items():
        if file.is_relative_to(project.root):
            found += _check_file(project.root, file, own)
    return found


def _functions(project: Project) -> Iterator[tuple[Callable[..., Any], bool]]:
    """The functions that run again, and whether they have a context to let something happen once."""
    if project.entry.function is not None:
        yield project.entry.function, True
    for item in project.registry.values():
        if item.kind == "tool" and callable(item.value) and takes_context(item.value):
            yield item.value, True
        elif item.kind == "flow" and isinstance(item.value, FlowSpec) and callable(item.value.aggregate):
            yield item.value.aggregate, False
    for spec, _ in every_agent(project.registry):
        if callable(spec.instructions):
            yield spec.instructions, False
        yield from ((guard, True) for guard in (*spec.input_guards, *spec.output_guards))
        for provider in spec.context_providers:
            function = provider if inspect.isroutine(provider) else getattr(provider, "get_context", None)
            if callable(function):
                yield function, inspect.iscoroutinefunction(function)
        yield from (
            (function, False) for kind in (spec.output_type, spec.input_model) for function in _validators(kind)
        )


def _validators(kind: object) -> Iterator[Callable[..., Any]]:
    """The functions that check an output: an output function, or those of a model."""
    if inspect.isfunction(kind):
        yield kind
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        decorators = kind.__pydantic_decorators__
        for group in (decorators.field_validators, decorators.model_validators, decorators.validators):
            for each in cast("dict[str, Any]", group).values():
                yield getattr(each.func, "__func__", each.func)


def _check_file(root: Path, file: Path, codes: dict[CodeType, bool]) -> Iterator[Diagnostic]:
    try:
        source = read_bounded(file)
        if not MENTIONED.search(source):
            return
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    lines, label = source.splitlines(), file_label(root, file)
    reported: set[ast.Call] = set()
    for has_context in (True, False):
        wanted = {(code.co_name, code.co_firstlineno) for code, own in codes.items() if own is has_context}
        roots = [node for node in ast.walk(tree) if isinstance(node, Function | ast.Lambda) and _start(node) in wanted]
        for each in _found(tree, roots):
            if each.node not in reported:
                reported.add(each.node)
                yield _diagnostic(each, label, lines, has_context=has_context)


def _found(tree: ast.Module, roots: list[Function | ast.Lambda]) -> list[Unrepeatable]:
    try:
        return find_unrepeatable(tree, roots)
    except RecursionError:  # an expression that is nested this deeply was made by a program
        return []


def _start(node: Function | ast.Lambda) -> tuple[str, int]:
    """The name and the first line of a function's code."""
    if isinstance(node, ast.Lambda):
        return "<lambda>", node.lineno
    return node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _diagnostic(found: Unrepeatable, label: str, lines: list[bytes], *, has_context: bool) -> Diagnostic:
    node = found.node.func
    line, end = node.lineno, node.end_lineno or node.lineno
    column, end_column = column_of(lines, line, node.col_offset), column_of(lines, end, node.end_col_offset or 0)
    place = Location(label, line, column, end, end_column) if end == line else Location(label, line, column)
    plain = isinstance(node, ast.Name | ast.Attribute) and not found.node.args and not found.node.keywords
    return unrepeatable_call(ast.unparse(node), found.kind, has_context=has_context, plain=plain).at(place)
