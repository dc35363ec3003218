"""A context keeps values that cannot be changed from outside; updates are all or nothing, copies cost nothing."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from llm_do import ContextValidationError, ToolkitError
from llm_do.machines.frozen_values import MOST_LEVELS
from llm_do.toolkits import Context, ToolkitState
from tests.support.tables import each_row

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def context(**values: Any) -> Context:
    return Context(initial_data=values)


def checked(**schemas: Any) -> Context:
    made = Context(validation_enabled=True)
    for key, schema in schemas.items():
        made.schema.define(key, schema)
    return made


def test_a_dotted_path_leads_into_dicts_and_lists() -> None:
    kept = context(project={"id": "alpha", "tags": [{"name": "x"}]})
    assert kept.get("project.id") == "alpha"
    assert kept.get("project.tags.0.name") == "x"
    assert kept.get("project.tags.1.name", "none") == "none"
    assert kept.get("project.id.more") is None
    assert kept.has("project.tags.0")
    assert "project.owner" not in kept


def test_a_literal_key_wins_over_a_path() -> None:
    kept = context(project={"id": "alpha", "a.b": 1})
    kept.set("project.id", "literal")
    assert kept.get("project.id") == "literal"
    assert kept.get("project.a.b") == 1
    assert kept["project"] == {"id": "alpha", "a.b": 1}


def test_a_key_that_is_there_with_nothing_in_it_is_there() -> None:
    kept = context(user=None)
    assert kept.has("user")
    assert kept.get("user", "default") is None


def test_missing_keys_raise_only_when_they_are_indexed_or_deleted() -> None:
    kept = context()
    with pytest.raises(KeyError):
        kept["user"]
    with pytest.raises(KeyError):
        kept.delete("user")
    assert kept.get("user") is None


def test_what_was_put_in_can_be_changed_without_changing_the_context() -> None:
    items = [{"id": 1}]
    kept = context(items=items)
    items[0]["id"] = 2
    items.append({"id": 3})
    assert kept.get("items") == [{"id": 1}]


@each_row(
    "change",
    [
        lambda kept: kept["items"].append(1),
        lambda kept: kept["items"].sort(),
        lambda kept: kept["items"].__setitem__(0, 1),
        lambda kept: kept["items"].__iadd__([1]),
        lambda kept: kept["items"][0].update(id=2),
        lambda kept: kept["items"][0].pop("id"),
        lambda kept: kept["items"][0].__ior__({"id": 2}),
        lambda kept: kept["items"][0].setdefault("x", 1),
        lambda kept: kept.data["items"].clear(),
        lambda kept: kept.initial_data["items"].clear(),
    ],
)
def test_what_comes_out_refuses_to_change(change: Any) -> None:
    kept = context(items=[{"id": 1}])
    with pytest.raises(TypeError, match="can't be changed in place"):
        change(kept)
    assert kept.to_dict() == {"items": [{"id": 1}]}


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_values_come_out_as_they_went_in(values: dict[str, Any]) -> None:
    kept = Context(initial_data=values)
    assert kept.to_dict() == values
    assert json.loads(json.dumps(dict(kept.data))) == json.loads(json.dumps(values))
    assert copy.deepcopy(dict(kept.data)) == values
    assert pickle.loads(pickle.dumps(dict(kept.data))) == values
    assert kept.deep_copy() == kept
    taken = kept.to_dict()
    for value in taken.values():
        if isinstance(value, list):
            value.append("mine")
        elif isinstance(value, dict):
            value["mine"] = 1
    assert kept.to_dict() == values


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    kept = context()
    with pytest.raises(ContextValidationError, match="contains itself"):
        kept.set("loop", loop)
    assert len(kept) == 0


def test_keys_are_strings() -> None:
    with pytest.raises(ToolkitError, match="strings"):
        Context(initial_data={1: 2})  # type: ignore[dict-item]


def test_a_copy_and_its_original_go_different_ways() -> None:
    kept = context(a=1)
    branch = kept.copy()
    branch.set("a", 2)
    kept.set("b", 3)
    assert (kept.to_dict(), branch.to_dict()) == ({"a": 1, "b": 3}, {"a": 2})


def test_a_deep_copy_shares_no_objects() -> None:
    class Session:
        user = "ann"

    kept = context(session=Session())
    assert kept.copy().get("session") is kept.get("session")
    assert kept.deep_copy().get("session") is not kept.get("session")


def test_an_error_names_key_and_rule() -> None:
    kept = checked(priority={"type": "integer", "minimum": 1, "maximum": 5})
    with pytest.raises(ContextValidationError, match=r"priority: 10 .*\(rule: maximum\)") as caught:
        kept.set("priority", 10)
    assert (caught.value.key, caught.value.rule) == ("priority", "maximum")
    with pytest.raises(ContextValidationError, match="type"):
        kept["priority"] = "high"
    kept.set("priority", 3)
    kept.set("other", "anything")


def test_an_update_of_several_keys_is_all_or_nothing() -> None:
    kept = checked(b={"type": "integer"})
    kept.set("a", 1)
    before = kept.data
    with pytest.raises(ContextValidationError):
        kept.update({"a": 2, "b": "no", "c": 3})
    assert kept.data is before


def test_schemas_survive_copies_and_stay_each_others() -> None:
    kept = checked(a={"type": "integer"})
    branch = kept.copy()
    branch.schema.define("b", {"type": "string"})
    with pytest.raises(ContextValidationError):
        branch.set("a", "x")
    with pytest.raises(ContextValidationError):
        branch.copy().deep_copy().set("b", 1)
    kept.set("b", 1)
    assert list(kept.schema) == ["a"]
    assert list(branch.schema) == ["a", "b"]


def test_without_validation_schemas_only_describe() -> None:
    kept = context()
    kept.schema.define("a", {"type": "integer"})
    kept.set("a", "text")
    assert kept.schema.get("a") == {"type": "integer"}


def test_a_schema_is_checked_itself_and_against_what_is_there() -> None:
    kept = Context(validation_enabled=True, initial_data={"a": "text"})
    with pytest.raises(ToolkitError, match="isn't a JSON Schema"):
        kept.schema.define("a", {"type": "intger"})
    with pytest.raises(ContextValidationError):
        kept.schema.define("a", {"type": "integer"})
    with pytest.raises(ToolkitError, match="it must be a dict, not 'integer'"):
        kept.schema.define("a", "integer")  # type: ignore[arg-type]
    loop: dict[str, Any] = {}
    loop["not"] = loop
    with pytest.raises(ToolkitError, match="contains itself"):
        kept.schema.define("a", loop)
    assert len(kept.schema) == 0


def test_formats_and_tuples_are_checked_as_json_knows_them() -> None:
    kept = checked(mail={"type": "string", "format": "email"}, pair={"type": "array", "maxItems": 2})
    kept.set("pair", (1, 2))
    with pytest.raises(ContextValidationError, match="maxItems"):
        kept.set("pair", (1, 2, 3))
    with pytest.raises(ContextValidationError, match="format"):
        kept.set("mail", "nobody")


def test_a_schema_never_fetches_what_it_refers_to() -> None:
    kept = checked(a={"$ref": "http://127.0.0.1:1/schema.json"})
    with pytest.raises(ContextValidationError, match="can't be checked"):
        kept.set("a", 1)


def test_a_sealed_context_is_for_reading() -> None:
    sealed = context(a=1).sealed()
    for change in (lambda: sealed.set("a", 2), lambda: sealed.delete("a"), lambda: sealed.schema.define("a", {})):
        with pytest.raises(ToolkitError, match="is read-only"):
            change()
    branch = sealed.copy()
    branch.set("a", 2)
    assert (sealed["a"], branch["a"]) == (1, 2)
    assert sealed.sealed() is sealed


@each_row(
    "schema", [{"minimum": 1}, {"maximum": 5}, {"exclusiveMinimum": 1}, {"exclusiveMaximum": 5}, {"multipleOf": 2}]
)
def test_what_is_not_a_number_keeps_no_limit_of_numbers(schema: dict[str, Any]) -> None:
    kept = checked(n=schema)
    with pytest.raises(ContextValidationError, match="n: nan is not a number"):
        kept.set("n", float("nan"))
    kept.set("n", 4)


class Pair(NamedTuple):
    items: list[int]
    name: str


def test_lists_inside_tuples_of_any_kind_are_frozen_too() -> None:
    items = [1]
    kept = context(pair=Pair(items, "x"), plain=(items,), same=("x", 1))
    items.append(2)
    for key in ("pair", "plain"):
        with pytest.raises(TypeError, match="can't be changed in place"):
            kept[key][0].append(3)
    assert kept["pair"] == Pair([1], "x")
    assert kept["pair"].name == "x"
    taken = kept.to_dict()
    assert type(taken["pair"]) is Pair
    taken["pair"].items.append(3)
    taken["plain"][0].append(3)
    assert kept.to_dict() == {"pair": Pair([1], "x"), "plain": ([1],), "same": ("x", 1)}


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"k": value}, lambda value: (value,)])
def test_values_nest_only_as_deep_as_all_that_reads_them_can_go(wrap: Any) -> None:
    kept, value = context(), 1
    for _ in range(MOST_LEVELS):
        value = wrap(value)
    kept.set("deep", value)
    state = ToolkitState(kept.sealed()).to_dict()
    assert pickle.loads(pickle.dumps(json.loads(json.dumps(state)))) == state
    with pytest.raises(ContextValidationError, match="nests more than 200 lists and dicts"):
        kept.set("deep", wrap(kept["deep"]))
    assert kept["deep"] == value


def test_a_path_that_leads_nowhere_is_found_to_at_once_however_long_it_is() -> None:
    kept = context(items=[1, 2], a={"b": 1})
    assert kept.get("items." + "9" * 5000, "none") == "none"
    assert kept.get("a." * 200_000, "none") == "none"
    kept.set("a." * 1000, 1)
    assert kept.get("a." * 1000) == 1


def test_a_value_made_by_the_class_of_a_frozen_one_is_kept_and_frozen_like_any_other() -> None:
    ctx = Context(initial_data={"rows": [{"id": 1}], "by": {"id": [1]}})
    inner = [2]

    ctx["rows"] = type(ctx["rows"])([*ctx["rows"], inner])
    ctx["by"] = type(ctx["by"])(ctx["by"], more=inner)
    inner.append(3)

    assert (ctx["rows"], ctx["by"]) == ([{"id": 1}, [2]], {"id": [1], "more": [2]})
