"""Dynamic types: shown to the model as the context is when it is asked, and enforced as it is at the call's turn."""

# The short spelling of dynamic types is one that checkers of names take for a forward reference.
# ruff: noqa: F821, UP037, UP045

from __future__ import annotations

import inspect
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from llm_do import DynamicStr, Toolkit, ToolkitError, Update
from llm_do.toolkits import (
    DynamicArray,
    DynamicConditional,
    DynamicConst,
    DynamicConstraints,
    DynamicFiltered,
    DynamicFloat,
    DynamicFormat,
    DynamicInt,
    DynamicNested,
    DynamicPattern,
    DynamicUnion,
)
from tests.support.scripted import call
from tests.support.tables import each_row
from tests.toolkits.kits import play

USERS = [{"id": "bob", "active": True}, {"id": "ann", "active": False}, {"id": "cid", "active": True}]
CONTEXT: dict[str, Any] = {
    "projects": ["alpha", "beta"],
    "numbers": [1, 2, 3],
    "prices": [0.5, 2],
    "range": {"minimum": 1, "maximum": 5},
    "short": {"maxLength": 3},
    "kind": "email",
    "ticket": "^T-[0-9]+$",
    "version": 3,
    "users": USERS,
    "team": {"members": ["x", "y"], "lead": "x"},
    "shape": {"type": "object", "required": ["w"], "properties": {"w": {"type": "integer"}}},
    "admin": False,
    "none": [],
    "words": "text",
}

TYPES: list[tuple[Any, dict[str, Any], list[Any], list[Any]]] = [
    (DynamicStr["projects"], {"type": "string", "enum": ["alpha", "beta"]}, ["alpha"], ["gamma", "", 1, None]),
    (DynamicStr["short"], {"type": "string", "maxLength": 3}, ["abc"], ["abcd"]),
    (DynamicStr["users"], {"type": "string", "enum": ["bob", "ann", "cid"]}, ["ann"], ["dan"]),
    (DynamicInt["numbers"], {"type": "integer", "enum": [1, 2, 3]}, [2], [4, "x", 2.5]),
    (DynamicInt["range"], {"type": "integer", "minimum": 1, "maximum": 5}, [1, 5], [0, 6]),
    (DynamicFloat["prices"], {"type": "number", "enum": [0.5, 2]}, [0.5, 2], [1]),
    (DynamicFloat["range"], {"type": "number", "minimum": 1, "maximum": 5}, [1.5], [5.5]),
    (
        DynamicArray["projects"],
        {"type": "array", "items": {"enum": ["alpha", "beta"]}},
        [[], ["beta"]],
        [["gamma"], "alpha"],
    ),
    (DynamicArray["range"], {"type": "array", "items": {"minimum": 1, "maximum": 5}}, [[1]], [[9]]),
    (DynamicFormat["kind"], {"type": "string", "format": "email"}, ["a@b.c"], ["nobody"]),
    (DynamicPattern["ticket"], {"type": "string", "pattern": "^T-[0-9]+$"}, ["T-1"], ["T-"]),
    (DynamicConst["version"], {"const": 3}, [3], [4, "3", True]),
    (DynamicFiltered["users", "active_only"], {"enum": ["bob", "cid"]}, ["cid"], ["ann"]),
    (DynamicFiltered[("users", "active_only", "sort_desc")], {"enum": ["cid", "bob"]}, ["bob"], ["ann"]),
    (DynamicFiltered[("numbers", "sort_desc")], {"enum": [3, 2, 1]}, [1], [0]),
    (DynamicFiltered[("projects", "sort_asc")], {"enum": ["alpha", "beta"]}, ["beta"], ["x"]),
    (DynamicNested["team.members"], {"enum": ["x", "y"]}, ["y"], ["z"]),
    (DynamicNested["team.lead"], {"const": "x"}, ["x"], ["y"]),
    (DynamicConstraints["shape"], CONTEXT["shape"], [{"w": 1}], [{}, {"w": "x"}, []]),
    (DynamicUnion[("projects", "numbers")], {"enum": ["alpha", "beta", 1, 2, 3]}, ["alpha", 3], ["x", 4]),
    (DynamicUnion[("projects", "range")], {"anyOf": [{"enum": ["alpha", "beta"]}, CONTEXT["range"]]}, ["beta", 4], [9]),
    (DynamicConditional[("admin", "projects", "numbers")], {"enum": [1, 2, 3]}, [1], ["alpha"]),
    (Annotated[str, DynamicStr("projects")], {"type": "string", "enum": ["alpha", "beta"]}, ["beta"], ["x"]),
]


def kit_of(annotation: Any, default: Any = ..., context: dict[str, Any] = CONTEXT) -> tuple[Toolkit, list[Any]]:
    """A toolkit with one tool of one parameter, and what reached it."""
    kit, reached = Toolkit("kit", context=context), []

    def pick(value: Any) -> str:
        """Pick."""
        reached.append(value)
        return "picked"

    pick.__annotations__ = {"value": annotation}
    if default is not ...:
        pick.__defaults__ = (default,)
    kit.tool(pick)
    return kit, reached


def test_there_are_twelve_of_them_and_each_is_tested() -> None:
    kinds = {type(annotation.__metadata__[0]).__name__ for annotation, *_ in TYPES}
    assert len(kinds) == 12


@pytest.mark.sample(8)
@pytest.mark.parametrize(("annotation", "schema", "good", "bad"), TYPES, ids=[str(each[0])[-60:] for each in TYPES])
def test_the_schema_is_the_contexts_and_is_enforced(annotation: Any, schema: Any, good: Any, bad: Any) -> None:
    kit, reached = kit_of(annotation)
    turns = [call("pick", value=value) for value in (*good, *bad)]
    played = play(*turns, "done", kits=[kit], max_steps=20)
    assert played.schema("pick")["properties"]["value"] == schema
    assert played.statuses == ["success"] * len(good) + ["refused"] * len(bad)
    assert reached == good


@each_row(
    "annotation, reason",
    [
        (DynamicStr["missing"], "it needs 'missing' in the context"),
        (DynamicStr["none"], "it needs a value in 'none', which is empty"),
        (DynamicStr["numbers"], "it needs strings in 'numbers', which holds something else"),
        (DynamicInt["projects"], "it needs integers in 'projects', which holds something else"),
        (DynamicFloat["words"], "it needs a list in 'words'"),
        (DynamicPattern["projects"], "it needs a regular expression in 'projects'"),
        (DynamicFormat["version"], "it needs a format's name in 'version'"),
        (DynamicConstraints["words"], "it needs a JSON Schema in 'words'"),
        (DynamicFiltered[("projects", "active_only")], "it needs the filter 'active_only', which raised TypeError"),
        (DynamicFiltered[("off", "active_only")], "it needs a value in 'off' that active_only leaves"),
        (DynamicConditional[("missing", "projects", "numbers")], "it needs 'missing' in the context"),
        (DynamicConditional[("admin", "projects", "missing")], "it needs 'missing' in the context"),
        (DynamicUnion[("projects", "missing")], "it needs 'missing' in the context"),
        (DynamicNested["team.boss"], "it needs 'team.boss' in the context"),
        (DynamicPattern["bad"], "it needs a valid regular expression in 'bad': "),
        (DynamicConstraints["wrong"], "it needs a JSON Schema in 'wrong'"),
    ],
)
def test_what_the_context_lacks_makes_the_tool_unavailable_with_that_reason(annotation: Any, reason: str) -> None:
    off = [{"id": "x", "active": False}]
    kit, reached = kit_of(annotation, context={**CONTEXT, "off": off, "bad": "(", "wrong": {"type": "strin"}})
    assert not kit.is_tool_available("pick")
    assert (kit.get_availability_reason("pick") or "").startswith(reason)
    assert kit.generate_schemas() == []
    fitting = 1 if annotation.__origin__ in (int, float) else "x"
    played = play(call("pick", value=fitting), "done", kits=[kit])
    assert played.shown[0] == []
    assert played.statuses == ["refused"]
    assert reason in played.outputs[0]
    assert reached == []


@pytest.mark.parametrize(
    ("annotation", "value", "shown", "good"),
    [
        (DynamicNested["v"], [date(2026, 1, 2)], {"enum": ["2026-01-02"]}, "2026-01-02"),
        (DynamicNested["v"], [{"id": UUID(int=1), "name": "x"}], {"enum": [str(UUID(int=1))]}, str(UUID(int=1))),
        (DynamicConst["v"], date(2026, 1, 2), {"const": "2026-01-02"}, "2026-01-02"),
        (DynamicArray["v"], [Decimal("1.5")], {"type": "array", "items": {"enum": ["1.5"]}}, ["1.5"]),
    ],
)
def test_values_that_json_says_otherwise_are_shown_and_taken_so(
    annotation: Any, value: Any, shown: dict[str, Any], good: Any
) -> None:
    kit, reached = kit_of(annotation, context={"v": value})
    played = play(call("pick", value=good), call("pick", value="other"), "done", kits=[kit])
    assert played.schema("pick", 0)["properties"]["value"] == shown
    assert played.statuses == ["success", "refused"]
    assert reached == [good]


@pytest.mark.parametrize("value", [[object()], [float("nan")], ["\ud800"]])
def test_values_that_json_cannot_say_make_the_tool_unavailable(value: Any) -> None:
    kit, _ = kit_of(DynamicNested["v"], context={"v": value})
    assert (kit.get_availability_reason("pick") or "").startswith("it can't read 'v': ")
    assert play("done", kits=[kit]).shown == [[]]


def test_an_unknown_filter_is_an_error_before_anything_runs() -> None:
    kit, _ = kit_of(DynamicFiltered[("users", "activ_only")])
    with pytest.raises(ToolkitError, match="the filter 'activ_only', which doesn't exist"):
        kit.generate_schemas()
    played_kit, _ = kit_of(DynamicFiltered[("users", "activ_only")])
    result = play_error(played_kit)
    assert "activ_only" in str(result.error)
    assert result.steps == 0
    kit.register_filter("activ_only", lambda items: items)
    assert kit.is_tool_available("pick")


def play_error(kit: Toolkit) -> Any:
    """A run that can't begin."""
    from tests.support.runs import agent, carry_out, runtime_of
    from tests.support.scripted import script

    return carry_out(runtime_of([agent("main", script("done"), toolsets=[kit])]))


def test_a_filter_of_ones_own_gets_a_list_it_may_change() -> None:
    kit, _ = kit_of(DynamicFiltered[("projects", "mine")])

    def mine(items: list[Any]) -> list[Any]:
        items.reverse()
        return items[:1]

    kit.register_filter("mine", mine)
    assert play("done", kits=[kit]).schema("pick")["properties"]["value"] == {"enum": ["beta"]}
    assert kit.context["projects"] == ["alpha", "beta"]


class Choice(BaseModel):
    project: DynamicStr["projects"] = Field(alias="projectId", description="Which one.")
    size: int = 3


@pytest.mark.parametrize(
    ("annotation", "default", "good", "bad"),
    [
        (Optional[DynamicStr["projects"]], None, [None, "alpha"], ["gamma"]),
        (DynamicStr["projects"] | None, None, [None, "alpha"], ["gamma"]),
        (list[DynamicStr["projects"]], ..., [[], ["alpha", "beta"]], [["alpha", "gamma"]]),
        (dict[str, DynamicInt["numbers"]], ..., [{"a": 1}], [{"a": 9}]),
        (Annotated[DynamicStr["projects"], Field(description="Which.")], ..., ["alpha"], ["gamma"]),
        (Annotated[DynamicStr["projects"], Field(alias="val")], ..., [], ["gamma"]),
        (list[Choice], ..., [[], [{"projectId": "alpha"}]], [[{"projectId": "gamma"}]]),
        (Choice | None, None, [None, {"projectId": "beta", "size": 1}], [{"projectId": "gamma"}]),
    ],
)
def test_they_work_wherever_a_type_may_stand(annotation: Any, default: Any, good: list[Any], bad: list[Any]) -> None:
    kit, reached = kit_of(annotation, default)
    name = "val" if "val" in str(annotation) else "value"
    turns = [call("pick", {name: value}) for value in (*good, *bad)]
    played = play(*turns, "done", kits=[kit])
    assert played.statuses == ["success"] * len(good) + ["refused"] * len(bad)
    assert len(reached) == len(good)


def test_the_only_parameter_may_be_a_model() -> None:
    kit, reached = kit_of(Choice)
    played = play(call("pick", projectId="alpha"), call("pick", projectId="gamma"), "done", kits=[kit])
    assert played.statuses == ["success", "refused"]
    assert [choice.project for choice in reached] == ["alpha"]
    assert played.schema("pick")["properties"]["projectId"]["enum"] == ["alpha", "beta"]


def test_a_default_is_the_authors_choice_and_a_value_the_models() -> None:
    kit, reached = kit_of(DynamicStr["projects"], "all of them")
    played = play(call("pick"), call("pick", value="all of them"), "done", kits=[kit])
    assert played.statuses == ["success", "refused"]
    assert reached == ["all of them"]


def test_the_model_is_told_what_it_may_choose_from() -> None:
    kit, _ = kit_of(DynamicStr["projects"])
    played = play(call("pick", value="gamma"), "done", kits=[kit])
    assert played.outputs == ["invalid arguments for pick: value: 'gamma' is not one of ['alpha', 'beta']"]


def shrinking() -> tuple[Toolkit, list[str]]:
    """A toolkit in which a project can be picked once."""
    kit, reached = Toolkit("kit", context={"projects": ["a", "b"]}), []

    @kit.tool
    def use(ctx, project: DynamicStr["projects"]):
        """Use a project up."""
        reached.append(project)
        return Update(f"used {project}", projects=[each for each in ctx.state["projects"] if each != project])

    @kit.tool
    def add(name: str):
        """Add a project."""
        return "added", {"projects": [*kit.context["projects"], name]}

    return kit, reached


def test_a_value_that_went_stale_within_the_response_is_refused() -> None:
    kit, reached = shrinking()
    played = play([call("use", project="a"), call("use", project="a")], "done", kits=[kit])
    assert reached == ["a"]
    assert played.outputs[1] == "invalid arguments for use: project: 'a' is not one of ['b']"


def test_a_value_that_came_up_within_the_response_is_taken() -> None:
    kit, reached = shrinking()
    played = play([call("add", name="c"), call("use", project="c")], "done", kits=[kit])
    assert reached == ["c"]
    assert played.schema("use", 0)["properties"]["project"]["enum"] == ["a", "b"]
    assert played.statuses == ["success", "success"]


def test_the_schema_follows_the_context_from_request_to_request() -> None:
    kit, _ = shrinking()
    played = play(call("use", project="a"), call("use", project="b"), "done", kits=[kit])
    shown = [played.schema("use", number)["properties"]["project"]["enum"] for number in (0, 1)]
    assert shown == [["a", "b"], ["b"]]
    assert played.shown[2] == ["add"]


def test_the_schema_of_a_run_is_never_anothers() -> None:
    kit, _ = shrinking()
    first = play(call("use", project="a"), "done", kits=[kit])
    second = play("done", kits=[kit])
    assert first.schema("use")["properties"]["project"]["enum"] == ["b"]
    assert second.schema("use")["properties"]["project"]["enum"] == ["a", "b"]


@each_row(
    "make, message",
    [
        (lambda: DynamicFiltered["users"], "names no filter"),
        (lambda: DynamicStr[("a", "b")], "takes one key"),
        (lambda: DynamicStr[()], r"DynamicStr takes \(key, more\), not \(\)"),
        (lambda: DynamicConditional["a"], r"takes \(condition, if_true, if_false\), not 'a'"),
        (lambda: DynamicConditional[("a", "b", "c", "d")], r"takes \(condition, if_true, if_false\)"),
        (lambda: DynamicStr[5], "are strings, not 5"),
        (lambda: DynamicFiltered[("users", len)], "are strings, not <built-in function len>"),
        (lambda: Annotated[str, DynamicUnion("a", None)], "are strings, not None"),  # type: ignore[arg-type]
    ],
)
def test_a_type_that_is_given_too_little_or_too_much_says_so(make: Any, message: str) -> None:
    with pytest.raises(ToolkitError, match=message):
        make()


def test_a_tool_that_is_shown_though_it_cannot_be_called_keeps_its_static_schema() -> None:
    kit, _ = kit_of(DynamicStr["missing"])
    assert play("done", kits=[kit], gate="refuse").schema("pick")["properties"]["value"] == {"type": "string"}


@pytest.mark.parametrize("raw", ['{"value": NaN}', '{"value": "nan"}'])
def test_what_is_not_a_number_keeps_no_limit_of_numbers(raw: str) -> None:
    kit, reached = kit_of(DynamicFloat["range"])
    played = play(call("pick", raw), "done", kits=[kit])
    assert played.outputs == ["invalid arguments for pick: value: nan is not a number"]
    assert reached == []


@pytest.mark.parametrize("schema", [{"$ref": "#/nowhere"}, {"$ref": "#"}, {"$ref": "http://127.0.0.1:1/schema.json"}])
def test_a_schema_that_cannot_be_checked_refuses_every_value_and_the_run_goes_on(schema: dict[str, Any]) -> None:
    kit, reached = kit_of(DynamicConstraints["wrong"], context={"wrong": schema})
    played = play(call("pick", value=1), "done", kits=[kit])
    assert played.result.status == "completed"
    assert played.statuses == ["refused"]
    assert "its schema can't be checked" in played.outputs[0]
    assert reached == []


@pytest.mark.parametrize("name", ["default", "enum", "const", "examples", "properties", "type", "items"])
def test_a_parameter_may_be_named_as_a_keyword_of_schemas_is(name: str) -> None:
    def pick(**arguments: Any) -> str:
        """Pick."""
        reached.append(arguments[name])
        return "picked"

    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=DynamicStr["projects"])
    pick.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    pick.__annotations__ = {name: DynamicStr["projects"]}
    kit, reached = Toolkit("kit", context=CONTEXT), []
    kit.tool(pick)
    played = play(call("pick", {name: "gamma"}), call("pick", {name: "beta"}), "done", kits=[kit])
    assert played.statuses == ["refused", "success"]
    assert reached == ["beta"]
    assert played.schema("pick")["properties"][name]["enum"] == ["alpha", "beta"]
