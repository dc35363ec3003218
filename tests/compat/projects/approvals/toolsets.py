from pydantic_ai.toolsets import FunctionToolset

from llm_do.toolsets.approval import get_toolset_approval_config, set_toolset_approval_config

calc = FunctionToolset(id="calc")


@calc.tool_plain
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


set_toolset_approval_config(calc, {"add": {"pre_approved": True}})

ledger = FunctionToolset(id="ledger")


@ledger.tool_plain
def book(amount: int) -> str:
    """Book an amount."""
    return f"booked {amount}"


assert get_toolset_approval_config(calc) == {"add": {"pre_approved": True}}
TOOLSETS = [calc, ledger]
