"""A tool with an unknown `approval` value that the linker couldn't see: each call is denied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import RunContext, Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import UsageError
from llm_do.project.tools.tool_schemas import make_schema
from llm_do.tools import Tool, approval_fault
from llm_do.toolsets.approval import ApprovalToolset, set_toolset_approval_config
from tests.runtime.approval.letters import RAN, send
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

WORDS = ["denied", "DENY", "blocked", "Allow", "", True, False, 0, ["deny"], range(3)]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


class Coming(WrapperToolset[Any]):
    """A toolset whose tools are known only in a run."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return await super().get_tools(ctx)


def kit(approval: object) -> FunctionToolset[Any]:
    return FunctionToolset([PydanticTool(send, metadata={"approval": approval})])


MAKERS: dict[str, Callable[[object], Any]] = {
    "known": kit,
    "set by a wrapper": lambda approval: FunctionToolset([send]).with_metadata(approval=approval),
    "known at run time only": lambda approval: Coming(kit(approval)),
    "made by a factory": lambda approval: lambda ctx: kit(approval),
    "guarded": lambda approval: ApprovalToolset(kit(approval), "approve_all"),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("approval", WORDS, ids=range(len(WORDS)))
@pytest.mark.parametrize("made", MAKERS)
def test_an_unknown_approval_denies_every_call(made: str, approval: object) -> None:
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[MAKERS[made](approval)])
    result = carry_out(runtime_of([spec], approvals="approve_all"))

    assert RAN == []
    [(_, outcome, text)] = results_of(result.messages)
    assert outcome == "denied"
    assert "approval is 'allow', 'ask' or 'deny', not" in text


def test_without_an_approval_value_the_rules_decide() -> None:
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[kit(None)])
    carry_out(runtime_of([spec], approvals="approve_all"))
    assert RAN == ["ann"]


@each_row("value", WORDS)
def test_an_object_with_an_unknown_approval_becomes_no_tool(value: Any) -> None:
    class Query(Tool):
        name = "query"
        approval = value

    for item in (Query(), PydanticTool(send, metadata={"approval": value})):
        with pytest.raises(ValueError, match="approval is 'allow', 'ask' or 'deny', not"):
            make_schema(item)


def test_an_unknown_approval_is_truncated_in_the_message() -> None:
    assert len(approval_fault("x" * 10_000) or "") < 200


@each_row(
    "entry",
    [{"preapproved": True}, {"pre_approved": "no"}, {"blocked": "yes"}, {"approval": "deny"}, {"blocked": None}],
)
def test_invalid_facts_of_a_toolsets_tool_are_rejected(entry: Any) -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([send])
    with pytest.raises(
        ValueError, match=r"'send' takes pre_approved, approval_required or blocked, each True or False, not"
    ):
        set_toolset_approval_config(toolset, {"send": entry})


class Nameless(Tool):
    async def execute(self, **kwargs: Any) -> str:
        return "done"


@pytest.mark.parametrize("own", ["", None, 5])
def test_an_object_without_a_name_is_not_a_tool(own: Any) -> None:
    item = Nameless()
    item.name = own
    with pytest.raises(UsageError, match="the tool object Nameless has no name") as caught:
        make_schema(item)
    assert "name =" in str(caught.value.hint)
    assert make_schema(item, "given").tool.tool_def.name == "given"

    runtime = runtime_of([agent("main", script([call("execute")], "fin"), tools=[item])], approvals="approve_all")
    result = carry_out(runtime)
    assert "the tool object Nameless has no name" in str(result.error)
