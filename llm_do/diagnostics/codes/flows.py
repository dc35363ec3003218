"""LD5xx: flows."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["FLOWS"]

FLOWS: dict[str, Code] = {
    "LD501": Code(
        "Malformed flow expression",
        "error",
        "An expression is names joined by `>>` (then) and `|` (beside); where both meet, parentheses say which belongs "
        "together.",
    ),
    "LD502": Code(
        "Twice in a flow",
        "error",
        "A step's name tells it apart in paths, results and events, so that each stands in a flow once. To run an "
        "agent again, put it in a flow of its own.",
    ),
    "LD503": Code(
        "Flow that runs itself",
        "error",
        "A step of the flow is the flow itself, directly or through others: it would never end.",
    ),
    "LD504": Code(
        "Flow without members",
        "error",
        "A workflow has an expression, a list of members, or both.",
    ),
    "LD505": Code(
        "Member that nothing reaches",
        "warning",
        "A workflow lists it but its expression never names it, or it is in a handoff flow and no agent there hands "
        "over to it: it would never run.",
    ),
    "LD506": Code(
        "Handoff out of a flow",
        "error",
        "An agent in a handoff flow lists a target under `handoffs` that is not in the flow.",
    ),
    "LD507": Code(
        "Tool that clashes with a flow's",
        "error",
        "An agent has a tool named `delegate_to_NAME` or `transfer_to_NAME`, and its team or its `handoffs` give it "
        "one of that name.",
    ),
}
