"""The part of the shop's books that support may see and change."""

from llm_do import ToolError, tool

CHARGES = {"1207": [49.90, 49.90], "1208": [12.00]}


@tool(approval="allow")
def charges(order: str) -> list[float]:
    """List what was charged for an order, in euros.

    Args:
        order: The order's number.
    """
    if order not in CHARGES:
        raise ToolError(f"there is no order {order}")
    return CHARGES[order]


@tool
def refund(order: str, euros: float) -> str:
    """Pay money back. A person has to approve this.

    Args:
        order: The order's number.
        euros: The amount to refund.
    """
    return f"refunded {euros:.2f} euros for order {order}"


TOOLS = [charges, refund]
