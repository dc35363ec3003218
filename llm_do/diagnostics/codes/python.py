"""LD3xx: Python files and what they export."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code, Problem

LD301 = Code(
    "LD301",
    "Python syntax",
    "error",
    "The file is not valid Python.",
    "correct the syntax",
    wrong="def add(a: int, b: int)",
    right="def add(a: int, b: int) -> int:",
)


def invalid_python(reason: str) -> Problem:
    """A file that Python can't parse; Python gives the reason."""
    return LD301.problem(f"the file is not valid Python: {reason}")


LD302 = Code(
    "LD302",
    "Import failed",
    "error",
    "The file raised an exception while it was imported. The location is the line of the project nearest to the fault.",
    "correct the line, or move what it does into a function",
    wrong="import requets",
    right="import urllib.request",
)


def import_raised(error: str, missing: str | None, install: str | None) -> Problem:
    """An exception, as text; the module that was not found, if that is what it says, and what installs it, if known."""
    hint = f"install the package that provides {missing!r} beside llm-do, or correct the name" if missing else None
    if install is not None:
        hint = f"install it with `{install}`"
    return LD302.problem(f"the import raised {error}", hint)


def import_exited(error: str) -> Problem:
    """A file that runs a program when it is imported."""
    hint = "keep what runs a program under `if __name__ == '__main__':`"
    return LD302.problem(f"the import ended the program: {error}", hint)


LD303 = Code(
    "LD303",
    "Not a Python file",
    "error",
    "A file listed in python_files ends in .py.",
    "remove it from python_files",
    wrong='"python_files": ["tools.txt"]',
    right='"agent_files": ["*.agent"]',
)


def not_python(file: str) -> Problem:
    """A listed file."""
    return LD303.problem(f"{file} is not a Python file")


LD304 = Code(
    "LD304",
    "Wrong type of export list",
    "error",
    "TOOLS, TOOLSETS and AGENTS are dicts or lists; __all__ is a list of names.",
    "write a list",
    wrong="TOOLS = add",
    right="TOOLS = [add]",
)


def all_not_a_list(value: str) -> Problem:
    """`__all__`, as it is described."""
    return LD304.problem(f"__all__ is {value}, not a list of names", "write __all__ = [...]")


def not_a_container(variable: str, value: str) -> Problem:
    """An export variable, and what it is bound to, as it is described."""
    hint = f"write {variable} = [...] or {variable} = {{...}}"
    return LD304.problem(f"{variable} is {value}, not a dict or a list", hint)


LD305 = Code(
    "LD305",
    "Invalid export",
    "error",
    "TOOLS holds functions and tool objects, TOOLSETS toolset instances and factories, AGENTS agent specs.",
    "remove it",
    wrong='TOOLSETS = {"files": FileSystemToolset}',
    right='TOOLSETS = {"files": FileSystemToolset()}',
)

_EXPECTED = {
    "tool": "a function or a tool object",
    "toolset": "a toolset or a factory `(ctx) -> toolset`",
    "agent": "an AgentSpec",
    "flow": "a flow, such as a Swarm",
}


def invalid_export(variable: str, key: str | None, value: str, kind: str, hint: str) -> Problem:
    """A member of an exported list or dict, as it is described; `kind` is what it should be."""
    where = f"{variable}[{key!r}]" if key is not None else variable
    return LD305.problem(f"{where} holds {value}, which is not {_EXPECTED[kind]}", hint)


def exports_raised(error: str) -> Problem:
    """The name of an error that was raised while exports were looked at."""
    return LD305.problem(f"reading the exports raised {error}", "export plain functions and toolset objects")


LD306 = Code(
    "LD306",
    "Export without a name",
    "error",
    "A member of a list is named by itself or by a module-level variable; this one has neither name.",
    "make the list a dict of names, or bind the member to a module-level name",
    wrong="TOOLSETS = [FunctionToolset()]",
    right='TOOLSETS = {"math": FunctionToolset()}',
)


def nameless_export(variable: str, value: str) -> Problem:
    """A member of an exported list, as it is described."""
    hint = f"make {variable} a dict of names, or bind the member to a module-level name"
    return LD306.problem(f"a member of {variable} has no name: {value}", hint)


LD307 = Code(
    "LD307",
    "Undefined export",
    "error",
    "__all__ names something that the file doesn't define.",
    "correct the name, or define it",
    wrong='__all__ = ["ad"]',
    right='__all__ = ["add"]',
)


def undefined_export(name: str, file: str) -> Problem:
    """A member of `__all__`, as it is described."""
    return LD307.problem(f"__all__ has {name}, which {file} doesn't define")


LD308 = Code(
    "LD308",
    "Two names for one agent",
    "error",
    "An agent is called by its own name, so its key in AGENTS has to be the same.",
    "use its own name as the key",
    wrong='AGENTS = {"writer": AgentSpec("author", instructions="Write.")}',
    right='AGENTS = {"author": AgentSpec("author", instructions="Write.")}',
)


def two_names(kind: str, name: str, variable: str, key: str) -> Problem:
    """An agent or a flow whose key isn't its name."""
    message = f"the {kind} is called {name!r}, but its key in {variable} is {key!r}"
    return LD308.problem(message, f"use {name!r} as the key")


LD310 = Code(
    "LD310",
    "Import timed out",
    "error",
    "The file was still being imported when the time limit was reached. Work that takes long belongs in a function.",
    "move what takes long or waits into a function; --import-timeout gives it more time",
    wrong="time.sleep(1000)",
    right="import time",
)


def import_timed_out(seconds: float) -> Problem:
    """The time that one file's import may take."""
    return LD310.problem(f"the import was still running after {seconds:g} s")


LD311 = Code(
    "LD311",
    "Import ended the process",
    "error",
    "The file ended the interpreter while it was imported, by a crash or on purpose.",
    "remove what ends or crashes it",
    wrong="os._exit(3)",
    right="def leave() -> str:",
)


def import_crashed(error: str) -> Problem:
    """What the interpreter said when it crashed."""
    return LD311.problem(f"the import ended the process: it crashed: {error}")


def import_killed(signal: str) -> Problem:
    """The name of a signal."""
    return LD311.problem(f"the import ended the process: it was killed by {signal}")


def import_left(code: int) -> Problem:
    """An exit code."""
    return LD311.problem(f"the import ended the process: it left with exit code {code}")
