"""What a tool says of its approval in a word that there isn't: where no link has told it, each call is denied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import UsageError
from llm_do.project.tool_schemas import make_schema
from llm_do.tools import Tool, approval_fault
from llm_do.toolsets.approval import ApprovalToolset, set_toolset_approval_config
from tests.runtime.approval.letters import RAN, send
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

WORDS = ["denied", "DENY", "blocked", "Allow", "", True, False, 0, ["deny"], range(3)]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


class Coming(WrapperToolset[Any]):
    """A toolset that only a run can ask for its tools."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return await super().get_tools(ctx)


def kit(said: object) -> FunctionToolset[Any]:
    return FunctionToolset([PydanticTool(send, metadata={"approval": said})])


MAKERS: dict[str, Callable[[object], Any]] = {
    "known": kit,
    "told by a wrapper": lambda said: FunctionToolset([send]).with_metadata(approval=said),
    "known at run time only": lambda said: Coming(kit(said)),
    "made by a factory": lambda said: lambda ctx: kit(said),
    "guarded": lambda said: ApprovalToolset(kit(said), "approve_all"),
}


@pytest.mark.parametrize("said", WORDS, ids=range(len(WORDS)))
@pytest.mark.parametrize("made", MAKERS)
def test_a_word_that_there_is_not_denies_every_call(made: str, said: object) -> None:
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[MAKERS[made](said)])
    result = carry_out(runtime_of([spec], approvals="approve_all"))

    assert RAN == []
    [(_, outcome, text)] = results_of(result.messages)
    assert outcome == "denied"
    assert "approval is 'allow', 'ask' or 'deny', not" in text


def test_no_word_leaves_a_call_to_the_rules() -> None:
    spec = agent("main", script([call("send", to="ann")], "fin"), toolsets=[kit(None)])
    carry_out(runtime_of([spec], approvals="approve_all"))
    assert RAN == ["ann"]


@pytest.mark.parametrize("said", WORDS, ids=range(len(WORDS)))
def test_no_tool_is_made_of_an_object_with_such_a_word(said: Any) -> None:
    class Query(Tool):
        name = "query"
        approval = said

    for item in (Query(), PydanticTool(send, metadata={"approval": said})):
        with pytest.raises(ValueError, match="approval is 'allow', 'ask' or 'deny', not"):
            make_schema(item)


def test_a_word_that_there_is_not_is_shown_in_short() -> None:
    assert len(approval_fault("x" * 10_000) or "") < 200


@pytest.mark.parametrize(
    "entry",
    [{"preapproved": True}, {"pre_approved": "no"}, {"blocked": "yes"}, {"approval": "deny"}, {"blocked": None}],
)
def test_what_means_nothing_can_not_be_said_of_a_toolsets_tool(entry: Any) -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([send])
    with pytest.raises(ValueError, match=r"'send' is pre_approved, approval_required and blocked, True or False, not"):
        set_toolset_approval_config(toolset, {"send": entry})


class Nameless(Tool):
    async def execute(self, **kwargs: Any) -> str:
        return "done"


@pytest.mark.parametrize("own", ["", None, 5])
def test_an_object_without_a_name_is_no_tool(own: Any) -> None:
    item = Nameless()
    item.name = own
    with pytest.raises(UsageError, match="the tool object Nameless has no name") as caught:
        make_schema(item)
    assert "name =" in str(caught.value.hint)
    assert make_schema(item, "given").tool.tool_def.name == "given"

    runtime = runtime_of([agent("main", script([call("execute")], "fin"), tools=[item])], approvals="approve_all")
    result = carry_out(runtime)
    assert "the tool object Nameless has no name" in str(result.error)
