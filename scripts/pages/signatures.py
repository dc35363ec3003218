"""How the code writes public things: signatures of classes and functions, and what a module's name is assigned."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from typing_extensions import is_typeddict

from llm_do.errors import LlmDoError
from scripts.pages.docstrings import parts_of

__all__ = ["assignment_of", "attribute_docstring", "class_signature", "options_of", "result_of", "signature_of"]

_WIDTH = 100


def class_signature(name: str, kind: type) -> str:
    """Format how a class is made; protocols, enums and errors without arguments of their own show only their name."""
    fixed = issubclass(kind, enum.Enum | LlmDoError) and "__init__" not in vars(kind)
    if fixed or kind.__init__ is object.__init__ or getattr(kind, "_is_protocol", False):
        return f"class {name}"
    return f"class {signature_of(name, kind)}"


def signature_of(name: str, function: Any, *, drop: bool = False) -> str:
    """Format a signature on one line if it fits, else with a line for each parameter."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return f"{name}(...)"
    parameters = list(signature.parameters.values())
    if drop:
        parameters = parameters[1:]
    if options := options_of(function):
        named = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind)
            for option, (kind, _) in options.items()
        ]
        parameters = [each for each in parameters if each.kind is not each.VAR_KEYWORD] + named
    shown = _parameters([each for each in parameters if not each.name.startswith("_")])
    result = "" if inspect.isclass(function) else f" -> {_annotation(signature.return_annotation)}"
    word = "async " if inspect.iscoroutinefunction(function) else ""
    line = f"{word}{name}({', '.join(shown)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{word}{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){result}"


def options_of(function: Any) -> dict[str, tuple[Any, str]]:
    """Return the options that a function or a class accepts by `**options: Unpack[...]`, with types and meanings."""
    if inspect.isclass(function):
        function = function.__init__
    if not inspect.isfunction(function):
        return {}
    for annotation in function.__annotations__.values():
        found = re.fullmatch(r"Unpack\[(\w+)\]", str(annotation))
        kind = function.__globals__.get(found[1]) if found else None
        if kind is not None and is_typeddict(kind):
            meanings = _meanings(kind)
            return {
                name: (getattr(declared, "__forward_arg__", declared), meanings[name])
                if get_origin(declared) is not Annotated
                else _option(declared)
                for name, declared in kind.__annotations__.items()
            }
    return {}


def _option(declared: Any) -> tuple[str, str]:
    """Return the type and the meaning of an option that is `Annotated` with an `Option`."""
    kind, option = get_args(declared)
    text = getattr(kind, "__forward_arg__", None) or re.sub(r"\b(?:collections\.abc|typing)\.", "", str(kind))
    return text, option.help


def _meanings(kind: Any) -> dict[str, str]:
    """Return the meanings of the keys of a `TypedDict` from its docstring and those of the classes it names."""
    meanings: dict[str, str] = {}
    for word in re.findall(r"`(\w+)`", kind.__doc__ or ""):
        named = getattr(import_module(kind.__module__), word, None)
        if inspect.isclass(named):
            meanings |= _meanings(named) if is_typeddict(named) else parts_of(named).arguments
    return meanings | parts_of(kind).arguments


def _parameters(parameters: Sequence[inspect.Parameter]) -> list[str]:
    shown: list[str] = []
    starred = False
    for number, each in enumerate(parameters):
        if each.kind is each.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        if each.kind is each.VAR_POSITIONAL:
            starred = True
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        text = stars + each.name
        if each.annotation is not each.empty:
            text += f": {_annotation(each.annotation)}"
        if each.default is not each.empty:
            text += f" = {_default(each.default)}"
        shown.append(text)
        last = number + 1 == len(parameters) or parameters[number + 1].kind is not each.POSITIONAL_ONLY
        if each.kind is each.POSITIONAL_ONLY and last:
            shown.append("/")
    return shown


def _default(value: object) -> str:
    if isinstance(value, type | str | int | float | bytes | tuple | None | frozenset):
        return value.__name__ if isinstance(value, type) else repr(value)
    return "..."


def _annotation(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return "None"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(
        r"\b(?:typing|typing_extensions|collections\.abc|llm_do(?:\.\w+)*|pydantic_ai(?:\.\w+)*)\.(?=\w)", "", text
    )


def result_of(function: Any) -> str:
    """Format the type of what a function returns."""
    return _annotation(inspect.signature(function).return_annotation)


@cache
def _source(module: str) -> str:
    return Path(inspect.getsourcefile(import_module(module)) or "").read_text(encoding="utf-8")


def _assigned(module: str, name: str) -> tuple[ast.stmt, ast.stmt | None]:
    """Return the statement that assigns a module's name, and the one after it."""
    body = ast.parse(_source(module)).body
    for number, statement in enumerate(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return statement, body[number + 1] if number + 1 < len(body) else None
    raise LookupError(f"{module} assigns no {name}")


def assignment_of(module: str, name: str) -> str:
    """Return the source of the statement that assigns a name."""
    text = ast.get_source_segment(_source(module), _assigned(module, name)[0]) or ""
    return re.sub(r": TypeAlias = (['\"]?)(.+?)\1$", r" = \2", text, flags=re.DOTALL)


def attribute_docstring(module: str, name: str) -> str:
    """Return the text below the statement that assigns a module's name."""
    after = _assigned(module, name)[1]
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return after.value.value
    return ""
