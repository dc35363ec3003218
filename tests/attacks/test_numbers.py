"""NaN satisfies no limit, so a tool whose schema has one never receives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from llm_do import Tool, Toolkit
from tests.support.scripted import call
from tests.toolkits.kits import play


class Pay(Tool):
    name = "pay"
    description = "Pay."
    parameters: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"amount": {"type": "number", "minimum": 0, "maximum": 100}},
        "required": ["amount"],
    }

    def __init__(self) -> None:
        self.paid: list[float] = []

    async def execute(self, **kwargs: Any) -> str:
        self.paid.append(kwargs["amount"])
        return "paid"


@pytest.mark.parametrize("in_a_toolkit", [False, True])
@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity", "1e999", "100.5"])
def test_the_limits_of_a_tools_schema_apply_to_every_number_a_model_can_write(amount: str, in_a_toolkit: bool) -> None:
    pay, kit = Pay(), Toolkit("kit")
    kit.add_tool("pay", pay)
    where: dict[str, Any] = {"kits": [kit]} if in_a_toolkit else {"tools": [pay]}

    played = play(call("pay", f'{{"amount": {amount}}}'), call("pay", amount=1.5), "done", **where)

    assert played.statuses == ["refused", "success"]
    assert played.outputs[0].startswith("invalid arguments for pay: amount: ")
    assert pay.paid == [1.5]
