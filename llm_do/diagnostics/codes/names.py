"""LD2xx: names and references."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.diagnostics.diagnostic import Location
from llm_do.text.words import did_you_mean, with_article

_LISTS = {"tool": "`tools`", "toolset": "`toolsets`", "agent": "`toolsets`", "flow": "`toolsets`"}
"""The list of an agent that each kind of name stands in."""

LD201 = Code(
    "LD201",
    "Unknown name",
    "error",
    "Nothing in the project has this name: no agent, exported tool, toolset or flow, and no built-in.",
    "correct the name, or define it",
    wrong="tools: [serach]",
    right="tools: [search]",
)


_NAMES = "name functions, not their file"


def without_file(name: str, known: Collection[str], functions: Mapping[str, str]) -> str | None:
    """What to write instead of a name with its file, or of a file."""
    file, _, last = name.replace("::", ".").replace(":", ".").rpartition(".")
    if last in known and file:
        return f"write `{last}`: names are the same in the whole project"
    if last != "py":
        return None
    defined = [function for function, path in functions.items() if path.rpartition("/")[2] == name]
    return f"name functions, not their file; {name} defines {', '.join(defined[:3])}" if defined else _NAMES


def unknown_name(noun: str, name: str, hint: str | None) -> Problem:
    """A name that nothing has."""
    return LD201.problem(f"there is no {noun} `{name}`", hint)


def toolset_type(noun: str, name: str, built_in: Sequence[str]) -> Problem:
    """The type of a toolset that the manifest configures, in place of a toolset's name."""
    configure = f'configure one under `toolsets` in project.json, such as `"NAME": {{"type": "{name}"}}`'
    choice = f"list {' or '.join(f'`{each}`' for each in built_in[:2])}, or {configure}" if built_in else configure
    return LD201.problem(f"there is no {noun} `{name}`, which is a type of toolset", choice)


def unexported_name(noun: str, name: str, file: str, variable: str) -> Problem:
    """A name that a Python file binds and doesn't export."""
    hint = f"{file} defines it but doesn't export it: add it to {variable}, as in {variable} = [{name}]"
    return LD201.problem(f"there is no {noun} `{name}`", hint)


def renamed_export(noun: str, name: str, file: str, exported: str) -> Problem:
    """The name that a Python file binds to what it exports under another."""
    return LD201.problem(f"there is no {noun} `{name}`", f"{file} exports it as `{exported}`: write that name")


def unknown_member(name: str, members: Iterable[str]) -> Problem:
    """A name in the expression of a flow made in code."""
    hint = did_you_mean(name, members) or "list it among the flow's agents"
    return LD201.problem(f"the flow has no member `{name}`", hint)


LD202 = Code(
    "LD202",
    "Duplicate name",
    "error",
    "Agents, tools, toolsets and flows share one namespace, so that a call by name is unambiguous.",
    "rename one of the two",
    wrong="TOOLS = [search]",
    right="TOOLS = [find]",
)


def duplicate_name(name: str, kind: str, first: Location | None) -> Problem:
    """A name that something of that kind has already."""
    return LD202.problem(f"`{name}` is already the name of the {kind} at {first}")


LD203 = Code(
    "LD203",
    "Reserved name",
    "error",
    "The name belongs to a built-in toolset, which every agent can list.",
    "choose another name",
    wrong="name: filesystem_cwd",
    right="name: files",
)


def reserved_name(name: str) -> Problem:
    """A built-in toolset's name."""
    return LD203.problem(f"`{name}` is the name of a built-in toolset")


LD204 = Code(
    "LD204",
    "Wrong kind of name",
    "error",
    "The name exists, but what it stands for can't be used here.",
    "use a name of the right kind",
    wrong="tools: [filesystem_project]",
    right="toolsets: [filesystem_project]",
)


def wrong_kind(name: str, kind: str, expected: str) -> Problem:
    """A name of one kind where another is expected, such as `a tool`."""
    hint = f"list it under {_LISTS[kind]}" if expected in ("a tool", "a toolset") else None
    return LD204.problem(f"`{name}` is {with_article(kind)}, not {expected}", hint)


def built_in_name(name: str, expected: str) -> Problem:
    """A built-in toolset where something else is expected."""
    hint = f"list it under {_LISTS['toolset']}" if expected == "a tool" else None
    return LD204.problem(f"`{name}` is a built-in toolset, not {expected}", hint)


def not_an_agent(name: str, mode: str) -> Problem:
    """A member of a flow made in code, in a mode that takes agents only."""
    return LD204.problem(f"`{name}` is not an agent, which mode {mode} needs", "give the flow an agent in its place")


LD205 = Code(
    "LD205",
    "No entry",
    "error",
    "Without a manifest the entry is the agent named main, else the only agent; here there is neither.",
    "call one of them main, name one .agent file as the project, or write a project.json with an entry",
    wrong="name: a",
    right="name: main\ntoolsets: [b]",
)


def no_entry(agents: Iterable[str]) -> Problem:
    """A folder without a manifest, and the agents in it."""
    listed = ", ".join(sorted(agents))
    return LD205.problem(
        f"no agent is called main, and there are several: {listed}" if listed else "there is no agent to run"
    )


LD206 = Code(
    "LD206",
    "No such file",
    "error",
    "A listed path or pattern matches no file, so something that the project needs is missing.",
    "correct the path, or remove it",
    wrong='"agent_files": ["*.agent", "agent/*.agent"]',
    right='"agent_files": ["*.agent", "agents/*.agent"]',
)


def unmatched_pattern(pattern: str) -> Problem:
    """A glob of the manifest."""
    return LD206.problem(f"`{pattern}` matches no file")


def missing_file(path: str, name: str, siblings: Iterable[str]) -> Problem:
    """A path of the manifest, its last part, and the files in its folder."""
    return LD206.problem(f"there is no file `{path}`", did_you_mean(name, siblings))


LD207 = Code(
    "LD207",
    "Path leaves the project",
    "error",
    "Paths in a manifest are relative to its folder and stay in it, symbolic links included.",
    "name files below the manifest's folder",
    wrong='"python_files": ["../shared/tools.py"]',
    right='"agent_files": ["*.agent"]',
)


def path_outside(path: str, link: str | None) -> Problem:
    """A path of the manifest, and the name of the link through which it leaves."""
    return LD207.problem(f"`{path}` leaves the project" + (f" through the link {link}" if link else ""))


def working_directory_outside(folder: str) -> Problem:
    """A shell's `cwd`."""
    message = f"commands would run in `{folder}`, which is outside the project"
    return LD207.problem(message, "name a folder of the project: commands run nowhere else")


LD208 = Code(
    "LD208",
    "Not an ordinary file",
    "error",
    "A listed path names a folder, a device or a pipe.",
    "list ordinary files only",
    wrong='"agent_files": ["main.agent", "agents"]',
    right='"agent_files": ["main.agent", "agents/*.agent"]',
)


def folder_listed(path: str) -> Problem:
    """A path that names a folder."""
    return LD208.problem(f"`{path}` is a folder", f"list the files in it, such as `{path.rstrip('/')}/*`")


def not_ordinary(file: str) -> Problem:
    """A path that names a device, a pipe or a socket."""
    return LD208.problem(f"`{file}` is not an ordinary file")


LD209 = Code(
    "LD209",
    "Invalid exported name",
    "error",
    "A name becomes a tool name: a letter or _, then up to 63 letters, digits, _ and -.",
    "use a letter or _, then up to 63 letters, digits, _ and -",
    wrong='TOOLS = {"look up": find}',
    right='TOOLS = {"look_up": find}',
)


def invalid_export_name(name: str, kind: str) -> Problem:
    """A name that an export can't have."""
    return LD209.problem(f"{name!r} can't be the name of {with_article(kind)}")


def key_not_text(variable: str, key: str) -> Problem:
    """A key of an exported dict, as it is described."""
    return LD209.problem(f"{variable} has a key that is not a name: {key}", "use a string that is a valid name")


LD210 = Code(
    "LD210",
    "Module outside the project",
    "error",
    "References lead into the listed Python files only, never to an installed module.",
    "references lead into the files listed in python_files only",
    wrong="input_model_ref: os.path",
    right="input_model_ref: schemas.Pitch",
)


def unlisted_module(module: str, known: Iterable[str]) -> Problem:
    """A module that no listed file is."""
    return LD210.problem(f"module `{module}` is not one of the project's Python files", did_you_mean(module, known))


def ambiguous_module(module: str, files: Sequence[str]) -> Problem:
    """A module that several listed files may be."""
    choice = " or ".join(f"`{file}`" for file in files)
    return LD210.problem(f"module `{module}` may be {choice}", f"name the file, such as `{files[0]}:...`")


def unlisted_file(path: str, listed: Iterable[str], *, exists: bool) -> Problem:
    """A path that the manifest doesn't list."""
    hint = "add it to python_files" if exists else did_you_mean(path, listed)
    return LD210.problem(f"`{path}` is not one of the project's Python files", hint)


LD211 = Code(
    "LD211",
    "No such name in the file",
    "error",
    "The file was imported, and it doesn't define the name.",
    "correct the name, or define it in the file",
    wrong='"entry": {"function": "main.py:mian"}',
    right='"entry": {"function": "main.py:main"}',
)


def undefined_name(file: str, name: str, defined: Iterable[str]) -> Problem:
    """A name that a file doesn't define."""
    return LD211.problem(f"{file} has no `{name}`", did_you_mean(name, defined))


LD212 = Code(
    "LD212",
    "Unsuitable reference",
    "error",
    "An input model is a subclass of AgentArgs, an output model a type that pydantic can validate, and an entry a "
    "function that takes (input, ctx).",
    "refer to something of the right kind",
    wrong="def main():",
    right="def main(input, ctx):",
)


def not_a_function(reference: str) -> Problem:
    """A reference to something that can't be called."""
    return LD212.problem(f"`{reference}` is not a function", "refer to a function")


def wrong_parameters(reference: str, call: str, definition: str) -> Problem:
    """A function that can't be called as it will be."""
    return LD212.problem(f"`{reference}` can't be called with {call}", f"define it with {definition}")


def not_an_input_model(reference: str, *, is_class: bool) -> Problem:
    """A reference under `input_model_ref`."""
    hint = "derive the class from llm_do.AgentArgs" if is_class else "refer to a subclass of llm_do.AgentArgs"
    return LD212.problem(f"`{reference}` is not a subclass of AgentArgs", hint)


def no_json_schema(reference: str, reason: str) -> Problem:
    """An input model."""
    hint = "give its fields types that JSON can hold"
    return LD212.problem(f"`{reference}` has no JSON Schema: {reason}", hint)


def not_a_class(reference: str) -> Problem:
    """A reference under `output_model_ref`."""
    return LD212.problem(f"`{reference}` is not a class", "refer to a pydantic model or a dataclass")


def invalid_output_model(reference: str, reason: str) -> Problem:
    """A class that pydantic can't validate."""
    hint = "use a type that pydantic can validate"
    return LD212.problem(f"`{reference}` can't be an output: {reason}", hint)


LD213 = Code(
    "LD213",
    "Invalid default input",
    "error",
    "The entry's `args` are used when no input is given, so they have to fit its input model.",
    "correct `args`, or remove them",
    wrong='"args": {"imput": "hello"}',
    right='"args": {"input": "hello"}',
)


def invalid_default_input(reason: str, hint: str | None) -> Problem:
    """An entry's `args`; validation gives the reason, such as `input is not valid`."""
    return LD213.problem(f"the default {reason}", hint)


def default_input_raised(error: str) -> Problem:
    """The name of an error that a project's own validator raised."""
    return LD213.problem(f"validating the default input raised {error}")


LD214 = Code(
    "LD214",
    "Unknown template field",
    "error",
    "An agent with `template: true` names a field that its input doesn't have.",
    "name a field of the input",
    wrong="Judge {{compnay}}.",
    right="Judge {{company}}.",
)


def unknown_field(field: str, known: Sequence[str]) -> Problem:
    """A field in an agent's template."""
    hint = did_you_mean(field, known) or f"its input has {', '.join(known) or 'no fields'}"
    return LD214.problem(f"the template names `{field}`, which the input doesn't have", hint)
