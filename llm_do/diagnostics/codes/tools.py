"""LD4xx: agents' tools, toolsets and states."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["TOOLS"]

TOOLS: dict[str, Code] = {
    "LD402": Code(
        "Two tools of one name in an agent",
        "error",
        "The model sees tools by name, so the names of one agent's tools have to differ.",
    ),
    "LD403": Code(
        "Derived name can't be used",
        "error",
        "A prefix makes a tool's name too long, or puts a character in it that providers refuse.",
    ),
    "LD404": Code(
        "Option that isn't taken",
        "error",
        "Every toolset takes prefix, include and exclude; one that the manifest configures also what its type takes.",
    ),
    "LD405": Code(
        "Not a tool",
        "error",
        "No tool can be made of a function or object: a parameter's type has no JSON Schema, the parameters that it "
        "declares are none, or it has no name.",
    ),
    "LD406": Code(
        "Refused by a provider",
        "warning",
        "A provider whose model the agent may use is known to refuse a request with this tool in it.",
    ),
    "LD407": Code(
        "Too many tools",
        "warning",
        "The agent has more tools than a provider takes in one request.",
    ),
    "LD408": Code(
        "Choice that chooses nothing",
        "warning",
        "A glob of `include` or `exclude` matches no tool of the toolset; most often it is misspelled.",
    ),
    "LD409": Code(
        "Primary argument that isn't there",
        "error",
        "Rules match a tool's primary argument, so it has to be one of its parameters.",
    ),
    "LD410": Code(
        "State that nothing unlocks",
        "warning",
        "Tools need a state that no tool of their toolkit, or of the agent's `states`, enables; most often one of the "
        "two is misspelled. A run that continues from another one may have it unlocked already.",
    ),
    "LD411": Code(
        "Tool that never becomes available",
        "warning",
        "Whatever is called, the states that the tool requires are never unlocked together while those that it forbids "
        "are locked.",
    ),
    "LD412": Code(
        "Dead end",
        "warning",
        "Calls can lead to a situation in which no tool of the machine is available: the model can only answer then.",
    ),
    "LD413": Code(
        "Gate of an unknown tool",
        "error",
        "`states` speaks of a tool that the agent doesn't have, so that the tool that is meant would not be gated.",
    ),
    "LD414": Code(
        "Toolkit that can't be used",
        "error",
        "A tool of the toolkit names a filter that doesn't exist, or no schema can be made of it.",
    ),
    "LD415": Code(
        "Parameter without a type",
        "warning",
        "A tool's parameter has no annotation. The schema that the model reads says nothing of it then, and whatever "
        "JSON it sends is passed on unchecked.",
    ),
    "LD416": Code(
        "Unknown approval",
        "error",
        "What a tool says as its `approval` is none of allow, ask and deny, so it would be neither denied nor asked "
        "about. Where only a run shows it, each call is denied.",
    ),
}
