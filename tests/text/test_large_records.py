"""Large models and dataclasses that are converted in parts are the same data as in one go."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SerializeAsAny,
    computed_field,
    field_serializer,
    model_serializer,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass

from llm_do.text.json_data import NotDataError, to_json_data
from llm_do.text.large_data import conversion, record_fields
from llm_do.text.large_data.conversion import is_large, json_parts, large_json_data
from tests.support.tables import each_row


class Color(Enum):
    RED = "red"


class Row(BaseModel):
    id: int
    name: str = "né"
    color: Color = Color.RED


class LongRow(Row):
    note: str = "longer"


class Table(BaseModel):
    model_config = ConfigDict(extra="allow")

    before: str = "b"
    rows: list[Row] = Field(default_factory=list, serialization_alias="theRows", min_length=0)
    by_name: dict[str, list[Row]] = {}
    by_number: dict[int, Row] = {}
    fixed: tuple[int, str, float] = (1, "two", float("inf"))
    several: tuple[int, ...] = ()
    numbers: Sequence[int] = ()
    unique: frozenset[str] = frozenset()
    anything: Any = None
    plain: list = []  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType]
    inner: Row | None = None
    either: list[Row] | dict[str, Row] = []
    as_any: list[SerializeAsAny[Row]] = []
    left_out: list[int] = Field([], exclude=True)
    only_long: list[int] = Field([], exclude_if=lambda items: len(items) < 5)
    joined: Annotated[list[str], PlainSerializer(",".join)] = []
    counted: list[int] = []
    tree: list[Table] = []

    @field_serializer("counted")
    def _count(self, items: list[int]) -> str:
        return f"{len(items)} numbers"

    @computed_field
    @property
    def size(self) -> int:
        """The number of rows, of all of them."""
        return len(self.rows)


class Own(BaseModel):
    rows: list[Row]

    @model_serializer
    def _write(self) -> str:
        return f"{len(self.rows)} rows"


class Rows(RootModel[list[Row]]):
    pass


class Open(BaseModel):
    """A model that declares no field."""

    model_config = ConfigDict(extra="allow")


class Dated(BaseModel):
    """A model whose further fields have a type."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, list[Annotated[int, PlainSerializer(str)]]] = Field(init=False)  # pyright: ignore

    first: int = 1


@dataclasses.dataclass
class Plain:
    rows: list[Any]
    name: str = "x"
    _hidden: int = 1


@dataclasses.dataclass(slots=True)
class Slots:
    rows: list[Any]


@pydantic_dataclass
class Checked:
    rows: list[Row]
    named: dict[str, Row] = Field(default_factory=dict, serialization_alias="n")


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.fixture(params=[2, 5, 12])
def small_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take everything apart that has more than a few parts."""
    monkeypatch.setattr(conversion, "_NODES", request.param)
    monkeypatch.setattr(conversion, "_CHARACTERS", request.param * 2)


def rows(count: int = 7) -> list[Row]:
    return [Row(id=number) for number in range(count)]


@pytest.mark.usefixtures("small_parts")
@each_row(
    "value",
    [
        Table(rows=rows(), more=rows(3)),  # pyright: ignore[reportCallIssue]
        Open(rows=rows(), inner=Open(more=rows(3)), text="é" * 40),  # pyright: ignore[reportCallIssue]
        Dated(some=list(range(9)), others=[1]),  # pyright: ignore[reportCallIssue]
        Table(by_name={"a": rows(), "b": [], "c": rows(1)}, by_number=dict(enumerate(rows()))),
        Table(several=tuple(range(9)), numbers=list(range(9)), unique=frozenset("abcdefghi")),
        Table(anything=rows(), plain=[*rows(), {"a": rows()}, b"x"], inner=LongRow(id=1)),
        Table(anything=Table(rows=rows()), numbers=range(9)),
        Table(rows=[LongRow(id=1), *rows()], as_any=[LongRow(id=1), *rows()]),
        Table(either={"a": Row(id=1), "b": Row(id=2)}),
        Table(left_out=list(range(9)), only_long=list(range(4))),
        Table(only_long=list(range(9)), joined=list("abcdefghi"), counted=list(range(9))),
        Table(tree=[Table(tree=[Table(rows=rows())]), Table(rows=rows())]),
        Own(rows=rows()),
        Rows(rows()),
        [Rows(rows()), Own(rows=rows())],
        Plain(rows()),
        Plain([Plain(rows(3)), {"x": Slots(rows())}]),
        Checked(rows(), dict(zip("abcdefg", rows(), strict=True))),
        {"a": Checked(rows()), "b": [Table(rows=rows())], 3: {1.5: rows()}},
        [deque(rows()), {*range(9)}, Pair(rows(), {"é" * 20: "\ud800" * 20})],
        [Color.RED] * 9,
        [b"\xff\xfe" * 20, bytearray(range(30)), {"a": b"\xfb"}],
    ],
)
def test_a_record_in_parts_is_the_same_data(value: Any) -> None:
    whole = to_json_data(value)
    assert large_json_data(value) == whole
    assert list(json.loads("".join(json_parts(value)))) == list(json.loads(json.dumps(whole)))
    assert json.loads("".join(json_parts(value))) == json.loads(json.dumps(whole))
    if isinstance(whole, dict):
        assert list(large_json_data(value)) == list(whole)


@pytest.mark.usefixtures("small_parts")
def test_fields_that_a_model_does_not_declare_are_converted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []

    def note(convert: Any) -> Any:
        def noting(value: Any, **options: Any) -> Any:
            data = convert(value, **options)
            converted.append(str(data).count("name"))
            return data

        return noting

    monkeypatch.setattr(record_fields, "fields_data", note(record_fields.fields_data))
    monkeypatch.setattr(conversion, "to_json_data", note(conversion.to_json_data))
    large_json_data(Open(rows=rows(100)))  # pyright: ignore[reportCallIssue]

    assert sum(converted) == 100
    assert max(converted) < 10


def test_a_record_is_large_by_what_its_fields_have() -> None:
    many: list[Any] = list(range(6_000))
    for value in (Table(plain=many), Plain(many), Slots(many), Checked([Row(id=1)] * 6_000), Rows([Row(id=1)] * 6_000)):
        assert is_large(value)
        assert is_large([{"in": value}])
    assert not is_large([Table(rows=rows()), Plain([]), {1, 2}])


def test_a_model_that_was_built_without_values_is_converted() -> None:
    value = Table.model_construct(rows=[Row(id=1)] * 6_000)
    del value.__dict__["before"]
    assert large_json_data(value) == to_json_data(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    itself: list[Any] = list(range(6_000))
    itself.append({"again": itself})
    with pytest.raises(ValueError, match="contains itself"):
        large_json_data(itself)
    with pytest.raises(ValueError, match="contains itself"):
        list(json_parts(Plain([Plain(itself)])))


def test_what_has_no_content_is_found_in_a_large_record() -> None:
    with pytest.raises(NotDataError):
        large_json_data(Table(anything=[*range(6_000), object()]), strict=True)
