"""Values behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from llm_do._startup.frozen import frozen


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


def test_a_value_compares_hashes_and_prints_like_a_dataclass() -> None:
    assert Point(1) == Point(1, 0, "another note")
    assert Point(1) != Point(2)
    assert Point(1) != Reference(1)
    assert hash(Point(1, 2)) == hash(Reference(1, 2))
    assert repr(Point("a", 2)) == repr(Reference("a", 2)).replace("Reference", "Point")


def test_a_value_that_contains_itself_can_be_printed() -> None:
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


def test_a_derived_value_has_its_own_fields_and_never_equals_its_base() -> None:
    assert Named(x=1, name="a") != Named(x=1, name="b")
    assert Named(x=1, name="a") != Point(1)


def test_methods_of_a_class_are_its_own() -> None:
    assert repr(Named(x=1, name="a")) == "my own"
    assert Folded("A") == Folded("a")
    assert hash(Folded("A")) == 7


@frozen
class Order:
    number: int
    lines: list[str] = field(default_factory=list)
    counted: int = field(init=False, default=0)
    seen: list[int] = field(init=False, default_factory=list)
    rush: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counted", len(self.lines))


class Marked(Order):
    """Only derives from a value."""


def test_a_value_is_created_like_a_dataclass() -> None:
    order = Order(1, rush=True)
    order.lines.append("late")
    assert (order.counted, order.seen, Order(2, ["a", "b"]).counted, Order(3).lines) == (0, [], 2, [])
    assert replace(order, number=4) == Order(4, ["late"], rush=True)
    with pytest.raises(TypeError, match=r"Order\.__init__\(\) missing 1 required positional argument: 'number'"):
        Order()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'counted'"):
        Order(1, counted=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("made_before", [False, True])
def test_the_signature_of_a_value_can_be_inspected(made_before: bool) -> None:
    @frozen
    class Fresh:
        number: int
        lines: list[str] = field(default_factory=list)
        rush: bool = field(default=False, kw_only=True)

    if made_before:
        Fresh(1)

    shown = "(number: 'int', lines: 'list[str]' = <factory>, *, rush: 'bool' = False) -> 'None'"
    assert str(inspect.signature(Fresh)).replace("-> None", "-> 'None'") == shown


def test_a_derived_class_may_have_attributes_and_its_own_init() -> None:
    class Started(Order):
        def __init__(self, text: str) -> None:
            super().__init__(len(text))
            self.text = text

    marked, started = Marked(1, rush=True), Started("abc")
    marked.mark = "x"  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        marked.number = 2  # type: ignore[misc]
    assert (marked.rush, started.number, started.text) == (True, 3, "abc")
    assert list(inspect.signature(Started).parameters) == ["text"]


def test_a_value_is_copied_completely() -> None:
    order = Order(1, ["a"])
    assert copy.deepcopy(order) == order
    assert copy.deepcopy(order).lines is not order.lines
    with pytest.raises(FrozenInstanceError):
        del order.number  # type: ignore[misc]
