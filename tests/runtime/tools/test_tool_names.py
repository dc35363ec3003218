"""Every tool's name is valid for providers, wherever it comes from, or the run fails with its origin."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import FunctionToolset, RunContext, Tool as PydanticTool

from llm_do import AgentSpec, RunError
from llm_do.project.agent_spec import ToolsetRef
from tests.support.runs import runtime_of
from tests.support.scripted import script


def add(a: int) -> int:
    """Add one."""
    return a + 1


def named(name: str) -> PydanticTool[Any]:
    return PydanticTool(add, name=name)


def given(name: str) -> dict[str, Any]:
    """The ways to give an agent a tool with that name."""

    def factory(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return FunctionToolset([named(name)])

    return {
        "a tool": {"tools": [named(name)]},
        "a toolset": {"toolsets": [FunctionToolset([named(name)], id="kit")]},
        "a factory": {"toolsets": [factory]},
        "a prefix": {"toolsets": [ToolsetRef("kit", prefix=name[:-4], value=FunctionToolset([named(name[-3:])]))]},
        "a prefix of a factory": {
            "toolsets": [ToolsetRef("kit", prefix=name[:-4], value=lambda ctx: FunctionToolset([named(name[-3:])]))]
        },
    }


@pytest.mark.parametrize("way", given("a_add"))
@pytest.mark.parametrize("name", ["é_add", "a.b_add", "a b_add", "x" * 61 + "_add"])
def test_a_name_that_no_provider_accepts_ends_the_run_before_it_is_sent(name: str, way: str) -> None:
    model = script("done")
    with pytest.raises(RunError, match="can't be named") as raised:
        runtime_of([AgentSpec("main", model=model, **given(name)[way])]).run_sync("go")
    assert repr(name) in str(raised.value)
    assert raised.value.agent_path == "main"
    assert model.asked == []


@pytest.mark.parametrize("way", given("a_add"))
@pytest.mark.parametrize("name", ["x_add", "a-b_add", "9_add", "x" * 60 + "_add"])
def test_any_other_name_is_sent(name: str, way: str) -> None:
    model = script("done")
    runtime_of([AgentSpec("main", model=model, **given(name)[way])]).run_sync("go")
    assert model.asked[0].tools == [name]
