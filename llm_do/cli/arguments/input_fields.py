"""`--field NAME=VALUE`: the fields of an input, each with a value of its type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set as AbstractSet
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from llm_do.errors import InputError, UsageError
from llm_do.project.inputs import describe_input, input_names
from llm_do.text.words import did_you_mean
from llm_do.ui.terminal.typed_values import json_or_text

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["read_fields"]

_LISTS = (list, tuple, set, frozenset, Sequence, AbstractSet, Iterable)


def read_fields(texts: Sequence[str], model: type[BaseModel] | None) -> dict[str, Any]:
    """Read `NAME=VALUE` texts; a field that takes a list may be given once an item."""
    names = input_names(model) if model is not None else {}
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--field {text!r} is not NAME=VALUE", hint=_name_hint(text, names))
        if model is not None and name not in names and model.model_config.get("extra") != "allow":
            hint = did_you_mean(name, names) or f"It takes {describe_input(model)}."
            raise InputError(f"the entry's input has no field {name!r}", hint=hint)
        found.setdefault(name, []).append(value)
    return {name: _value(name, values, names.get(name)) for name, values in found.items()}


def _name_hint(text: str, names: Iterable[str]) -> str:
    first = next(iter(names), "NAME")
    return f"Write --field {first}={text or 'VALUE'}." if "=" not in text else "Write --field NAME=VALUE."


def _value(name: str, texts: Sequence[str], info: FieldInfo | None) -> Any:
    if info is not None and _takes_list(info.annotation) and not (len(texts) == 1 and _takes_text(info.annotation)):
        return _list(texts, info)
    if len(texts) == 1:
        return _single(texts[0], info)
    if info is not None:
        raise UsageError(f"--field {name} is given {len(texts)} times, and takes one value", hint="Keep one of them.")
    return [json_or_text(text) for text in texts]


def _list(texts: Sequence[str], info: FieldInfo) -> Any:
    """The items of all texts, each an item or a JSON list of items, as JSON or, where that doesn't fit, as text."""
    data = [json_or_text(text) for text in texts]
    if len(texts) == 1 and (data[0] is None or _fits(info, data[0])):
        return data[0]
    items = [item for each in data for item in (cast("list[Any]", each) if isinstance(each, list) else [each])]
    return list(texts) if not _fits(info, items) and _fits(info, list(texts)) else items


def _single(text: str, info: FieldInfo | None) -> Any:
    """Text for a field of text, else JSON where it reads as JSON and the field takes it so."""
    if info is not None and _takes_text(info.annotation):
        return text
    data = json_or_text(text)
    if info is not None and not isinstance(data, str) and not _fits(info, data) and _fits(info, text):
        return text  # such as 123 for a path, or for one of several texts
    return data


def _fits(info: FieldInfo, value: object) -> bool:
    """Whether a value has a field's type."""
    kind: Any = cast("Any", Annotated)[info.annotation, info]
    try:
        TypeAdapter(kind).validate_python(value)
    except Exception:  # noqa: BLE001 - a type may be the project's own, and raise anything
        return False
    return True


def _choices(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _takes_text(annotation: object) -> bool:
    return str in _choices(annotation)


def _takes_list(annotation: object) -> bool:
    return any((get_origin(each) or each) in _LISTS for each in _choices(annotation))
