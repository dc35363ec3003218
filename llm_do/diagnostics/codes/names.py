"""LD2xx: names and references."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["NAMES"]

NAMES: dict[str, Code] = {
    "LD201": Code(
        "Unknown name",
        "error",
        "Nothing in the project has this name: no agent, exported tool, toolset or flow, and no built-in.",
    ),
    "LD202": Code(
        "Name taken twice",
        "error",
        "Agents, tools, toolsets and flows share one namespace, so that a call by name is unambiguous.",
    ),
    "LD203": Code(
        "Reserved name",
        "error",
        "The name belongs to a built-in toolset, which every agent can list.",
    ),
    "LD204": Code(
        "Wrong kind of name",
        "error",
        "The name exists, but what it stands for can't be used here.",
    ),
    "LD205": Code(
        "No entry",
        "error",
        "Without a manifest the entry is the agent named main, else the only agent; here it is neither.",
    ),
    "LD206": Code(
        "Nothing matches",
        "error",
        "A listed path or pattern names no file, so something the project counts on is missing.",
    ),
    "LD207": Code(
        "Path leaves the project",
        "error",
        "Paths in a manifest are relative to its folder and stay in it, symbolic links included.",
    ),
    "LD208": Code(
        "Not an ordinary file",
        "error",
        "A listed path names a folder, a device or a pipe.",
    ),
    "LD209": Code(
        "Name can't be used",
        "error",
        "A name becomes a tool name: a letter or _, then up to 63 letters, digits, _ and -.",
    ),
    "LD210": Code(
        "Module isn't the project's",
        "error",
        "References lead into the listed Python files only, never to an installed module.",
    ),
    "LD211": Code(
        "Nothing of that name in the file",
        "error",
        "The file was imported, and it has no such name.",
    ),
    "LD212": Code(
        "Reference to something unsuitable",
        "error",
        "An input model is a subclass of AgentArgs, an output model a type that pydantic can validate, and an entry a "
        "function that takes (input, ctx).",
    ),
    "LD213": Code(
        "Default input doesn't fit",
        "error",
        "The entry's `args` are used when no input is given, so they have to fit its input model.",
    ),
    "LD214": Code(
        "Unknown template field",
        "error",
        "An agent with `template: true` names a field that its input doesn't have.",
    ),
}
