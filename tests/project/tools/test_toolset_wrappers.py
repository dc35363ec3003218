"""Wrapped toolsets: the tools they are known to have, and the toolsets a call passes through."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import FunctionToolset, RunContext, Tool as PydanticTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ExternalToolset, WrapperToolset
from pydantic_ai.usage import RunUsage

from llm_do import AgentSpec
from llm_do.linker.analysis.inventory import Inventory
from llm_do.linker.analysis.permissions import permission_for
from llm_do.policy.rules import build_policy
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.project import RuntimeSettings
from llm_do.project.registry import Registered
from llm_do.project.tools.toolset_wrappers import find_shown_tools, wrapper_levels
from tests.support.tables import each_row


def find(part: str) -> str:
    """Find a part."""
    return part


def count(part: str, more: int = 0) -> int:
    """Count parts."""
    return more


def parts() -> FunctionToolset[Any]:
    return FunctionToolset([find, count])


def yes(*_: Any) -> bool:
    return True


class Calling(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        return await super().call_tool(name, tool_args, ctx, tool)


WRAPPED: dict[str, AbstractToolset[Any]] = {
    "plain": parts(),
    "prefixed": parts().prefixed("x"),
    "twice prefixed": parts().prefixed("x").prefixed("y"),
    "renamed": parts().renamed({"look": "find"}),
    "renamed and prefixed": parts().renamed({"look": "find"}).prefixed("x"),
    "approval required": parts().approval_required(yes),
    "filtered": parts().filtered(yes),
    "prepared": parts().prepared(lambda ctx, tools: tools),
    "with metadata": parts().with_metadata(approval="allow").prefixed("x"),
    "with return schemas": parts().include_return_schemas(),
    "of its own call": Calling(parts()),
    "combined": CombinedToolset([parts().prefixed("x"), FunctionToolset([find]).approval_required()]),
}


@each_row("name", WRAPPED)
def test_the_listed_tools_are_those_a_run_shows(name: str) -> None:
    toolset = WRAPPED[name]
    run = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    shown = asyncio.run(toolset.get_tools(run))
    listed = find_shown_tools(toolset)

    assert listed is not None
    assert {tool.definition.name: tool.definition.metadata for tool in listed} == {
        name: tool.tool_def.metadata for name, tool in shown.items()
    }
    for tool in listed:
        last, own = tool.levels[-1]
        assert tool.levels[0] == (toolset, tool.definition.name)
        assert own in last.tools  # type: ignore[attr-defined]
        if name != "combined":
            assert wrapper_levels(toolset, tool.definition.name) == list(tool.levels)


def test_tools_that_a_run_may_hide_are_marked_conditional() -> None:
    deferred = parts().defer_loading(["find"]).prefixed("x")
    prepared = FunctionToolset([PydanticTool(find, prepare=lambda ctx, tool: None)])

    assert [tool.conditional for tool in find_shown_tools(parts().filtered(yes).prefixed("x")) or ()] == [True, True]
    assert [tool.conditional for tool in find_shown_tools(deferred) or ()] == [True, False]
    assert [(tool.conditional, tool.prepared) for tool in find_shown_tools(prepared) or ()] == [(True, True)]
    assert [tool.conditional for tool in find_shown_tools(parts().approval_required(yes)) or ()] == [False, False]


def test_a_wrapper_with_its_own_code_is_not_looked_through() -> None:
    class Listing(WrapperToolset[Any]):
        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            return {}

    class PerRun(WrapperToolset[Any]):
        async def for_run(self, ctx: RunContext[Any]) -> Any:
            return self

    class Growing(FunctionToolset[Any]):
        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            return {}

    for toolset in (
        Listing(parts()),
        PerRun(parts()),
        Growing([find]),
        ExternalToolset([]).prefixed("x"),
        CombinedToolset([parts(), ExternalToolset([])]),
        lambda ctx: parts(),
    ):
        assert find_shown_tools(toolset) is None


def known(toolset: Any, **ref: Any) -> Any:
    names = {"kit": Registered("kit", "toolset", toolset)}
    return Inventory(names).of(AgentSpec("main", toolsets=[ToolsetRef("kit", **ref)]))


def test_an_agents_wrapped_tools_are_known_by_the_names_its_model_sees() -> None:
    found = known(parts().approval_required(yes).prefixed("x"), prefix="kit", exclude=("*_count",))

    [tool] = found.tools
    assert (tool.name, tool.tool, tool.toolset, tool.facts.arguments) == ("kit_x_find", "x_find", "kit", ("part",))
    assert (tool.facts.decides, tool.conditional) == (True, False)
    assert list(found.open) == []


def test_approval_required_by_a_wrapper_is_not_a_permission_of_the_tool() -> None:
    kit = FunctionToolset([PydanticTool(find, metadata={"approval": "allow"})])
    [plain], [wrapped] = known(kit).tools, known(kit.approval_required(yes).prefixed("x")).tools

    def right(tool: Any, **rules: Any) -> str:
        policy, _ = build_policy({"default": "allow", **rules})
        return permission_for(tool, "main", policy, RuntimeSettings()).effect

    assert (right(plain), right(wrapped)) == ("allow", "ask")
    assert right(wrapped, allow=["x_find"]) == "allow"


def test_facts_that_a_function_may_change_are_unknown() -> None:
    found = known(parts().prepared(lambda ctx, tools: tools))

    assert [(tool.name, tool.facts.arguments, tool.schema, tool.conditional) for tool in found.tools] == [
        ("find", None, None, True),
        ("count", None, None, True),
    ]


def test_facts_set_outside_a_tool_are_known() -> None:
    assert [tool.approval for tool in known(parts().with_metadata(approval="deny").prefixed("x")).tools] == ["deny"] * 2
