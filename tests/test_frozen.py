"""Values behave as frozen dataclasses do."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from llm_do._frozen import frozen


@frozen
class Point:
    x: object
    y: int = 0
    note: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    x: object
    y: int = 0
    note: str = field(default="", repr=False, compare=False)


@frozen(kw_only=True)
class Named(Point):
    name: str

    def __repr__(self) -> str:
        return "my own"


@frozen
class Folded:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return 7


def test_a_value_compares_hashes_and_shows_as_a_dataclass_does() -> None:
    assert Point(1) == Point(1, 0, "another note")
    assert Point(1) != Point(2)
    assert Point(1) != Reference(1)
    assert hash(Point(1, 2)) == hash(Reference(1, 2))
    assert repr(Point("a", 2)) == repr(Reference("a", 2)).replace("Reference", "Point")


def test_a_value_that_holds_itself_can_be_shown() -> None:
    held: list[object] = []
    point = Point(held)
    held.append(point)
    assert repr(point) == "Point(x=[...], y=0)"


def test_a_value_cannot_be_changed_and_has_no_other_attributes() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    assert not hasattr(point, "__dict__")


def test_a_value_is_a_dataclass_to_the_standard_library() -> None:
    assert [each.name for each in fields(Named)] == ["x", "y", "note", "name"]
    assert replace(Point(1), y=3) == Point(1, 3)
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_a_derived_value_counts_its_own_fields_and_is_no_equal_of_its_base() -> None:
    assert Named(x=1, name="a") != Named(x=1, name="b")
    assert Named(x=1, name="a") != Point(1)


def test_methods_of_a_class_are_its_own() -> None:
    assert repr(Named(x=1, name="a")) == "my own"
    assert Folded("A") == Folded("a")
    assert hash(Folded("A")) == 7
