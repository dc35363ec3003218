"""LD3xx: Python files and what they export."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["PYTHON"]

PYTHON: dict[str, Code] = {
    "LD301": Code(
        "Python syntax",
        "error",
        "The file is not valid Python.",
    ),
    "LD302": Code(
        "Import failed",
        "error",
        "The file raised while it was imported. The place is the project's own line nearest to the fault.",
    ),
    "LD303": Code(
        "Not a Python file",
        "error",
        "A file listed in python_files ends in .py.",
    ),
    "LD304": Code(
        "Export of the wrong shape",
        "error",
        "TOOLS, TOOLSETS and AGENTS are dicts or lists, __all__ a list of names.",
    ),
    "LD305": Code(
        "Can't be exported",
        "error",
        "TOOLS holds functions and tool objects, TOOLSETS toolset instances and factories, AGENTS agent specs.",
    ),
    "LD306": Code(
        "Export without a name",
        "error",
        "A member of a list is named by itself or by a module-level variable; this one has neither name.",
    ),
    "LD307": Code(
        "Export that doesn't exist",
        "error",
        "__all__ names something that the file doesn't define.",
    ),
    "LD308": Code(
        "Two names for one agent",
        "error",
        "An agent is called by its own name, so its key in AGENTS has to be the same.",
    ),
    "LD310": Code(
        "Import doesn't end",
        "error",
        "The file was still being imported when the time for it was over. What takes long belongs into a function.",
    ),
    "LD311": Code(
        "Import ended the process",
        "error",
        "The file ended the interpreter while it was imported, by a crash or on purpose.",
    ),
}
