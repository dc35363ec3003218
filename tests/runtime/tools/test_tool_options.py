"""The options that authors declare on a tool; invalid ones are rejected."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Tool as PydanticTool

from llm_do import Project, Tool, tool
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


@each_row(
    "options, fault",
    [
        ({"approval": "denied"}, "approval is 'allow', 'ask' or 'deny', not 'denied'"),
        ({"approval": True}, "not True"),
        ({"timeout": 0}, "timeout is a number of seconds above 0, not 0"),
        ({"timeout": "3"}, "not '3'"),
    ],
)
def test_an_invalid_option_is_rejected_where_it_is_declared(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        tool(**options)(send)


class Sender(Tool):
    name = "send"
    approval = "denied"  # type: ignore[assignment]

    async def execute(self, **kwargs: Any) -> str:
        return "sent"


@pytest.mark.parametrize(
    "item", [Sender(), PydanticTool(send, metadata={"approval": "denied"})], ids=["object", "PydanticAI's"]
)
def test_a_tool_object_with_an_invalid_approval_never_runs(item: Any) -> None:
    result = carry_out(runtime_of([agent("main", script([call("send", to="ann")], "fin"), tools=[item])]))

    assert result.status == "failed"
    assert "not 'denied'" in str(result.error)


def test_the_linker_locates_an_invalid_approval(tmp_path: Any) -> None:
    (tmp_path / "tools.py").write_text(
        "from llm_do import tool\n\n@tool(approval='denied')\ndef send(to: str) -> str:\n    return to\n"
    )
    (tmp_path / "main.agent").write_text("---\nname: main\ntools: [send]\n---\n")

    with pytest.raises(Exception, match="not 'denied'") as error:
        Project.load(tmp_path)
    [found] = [item for item in error.value.diagnostics if "denied" in item.message]
    assert (found.file, found.line) == ("tools.py", 3)
