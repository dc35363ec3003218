"""Generate the pages about the public Python API: the signatures and docstrings of all public names."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Generic, Literal, Protocol

import llm_do
from llm_do.errors import LlmDoError
from scripts.pages.docstrings import Parts, parts_of
from scripts.pages.markdown import code, fenced, headings, joined, table
from scripts.pages.signatures import (
    assignment_of,
    attribute_docstring,
    class_signature,
    options_of,
    result_of,
    signature_of,
)

__all__ = ["MODULES", "TITLES", "Name", "index", "names", "places", "python", "sentence"]

HEAD = """\
# Python API

What programs and projects may import. [Embedding](../embedding.md) is the guide; [Authoring](../authoring.md),
[Toolkits](../toolkits.md), [Flows](../flows.md), [Threads](../threads.md) and [Toolsets](../toolsets.md) show most of
it at work. What is on these pages is public; everything else may change without notice. What most programs need is in
`llm_do`, which imports each name when it is first used; the rest is in the modules that the table names. Annotations
are as in the source; `...` as a default stands for a new object, or for leaving an option out. The tests run the
examples.
"""

MODULES: Mapping[str, Sequence[str] | None] = {
    "llm_do": None,
    "llm_do.errors": ("EXIT_CODES", "Status"),
    "llm_do.flows": None,
    "llm_do.messages": None,
    "llm_do.providers": None,
    "llm_do.testing": None,
    "llm_do.threads": None,
    "llm_do.toolkits": None,
    "llm_do.web": None,
    "llm_do.toolsets.approval": ("get_toolset_approval_config", "set_toolset_approval_config"),
    "llm_do.toolsets.filesystem": ("FileSystemConfig", "FileSystemToolset", "ReadOnlyFileSystemToolset"),
    "llm_do.toolsets.shell": ("ShellConfig", "ShellRule", "ShellToolset"),
    "llm_do.toolsets.shell.sandbox": ("SandboxStatus", "status"),
}
"""The documented modules with their names; None means all that a module exports and no earlier module has."""

TITLES = {
    "running": "Running",
    "projects": "Projects, agents, input",
    "tools": "Tools",
    "toolsets": "Toolsets",
    "toolkits": "Toolkits",
    "flows": "Flows",
    "threads": "Threads",
    "models": "Models",
    "messages": "Messages",
    "testing": "Testing",
    "web": "Serving",
    "errors": "Errors",
}
"""The title of each page, in the order of the table of names."""

PAGE_OF = {
    "runtime": "running",
    "policy": "running",
    "project": "projects",
    "diagnostics": "projects",
    "machines": "toolkits",
    "providers": "models",
}
"""The page of a room whose names are on another room's page."""

_LINK = re.compile(r"\(entry:([\w.]+)\)")


@dataclass
class Name:
    """A public name with the module it is imported from."""

    module: str
    name: str
    value: Any

    @property
    def page(self) -> str:
        """The page it is on: that of the room it is exported from, or of the room it comes from."""
        room = (_home(self) if self.module == "llm_do" else self.module).split(".")[1]
        return PAGE_OF.get(room, room)

    @property
    def heading(self) -> str:
        """The title of its entry."""
        return self.name if self.module == "llm_do" else f"{self.module}.{self.name}"

    @property
    def kind(self) -> Literal["class", "function", "object", "value"]:
        """The form of its entry."""
        ours = str(getattr(self.value, "__module__", "")).startswith("llm_do")
        if inspect.isclass(self.value):
            return "class" if ours else "value"
        if ours and (inspect.isroutine(self.value) or hasattr(self.value, "__wrapped__")):
            return "function"
        return "object" if type(self.value).__module__.startswith("llm_do") else "value"

    @property
    def parts(self) -> Parts:
        """The parts of its docstring."""
        match self.kind:
            case "class" | "function":
                return parts_of(self.value)
            case "object":
                return parts_of(type(self.value))
            case "value":
                return parts_of(None, attribute_docstring(_home(self), self.name))


@cache
def names() -> tuple[Name, ...]:
    """Return every public name, page by page."""
    found: list[Name] = []
    seen: set[str] = set()
    for module, chosen in MODULES.items():
        home = import_module(module)
        found += [Name(module, name, getattr(home, name)) for name in chosen or home.__all__ if name not in seen]
        seen |= {each.name for each in found}
    order = list(TITLES)
    return tuple(sorted(found, key=lambda each: (order.index(each.page), each.module, each.name.lower())))


def index() -> str:
    """Generate the page `python.md`: a table of all names."""
    rows = [[_link(each, each.name), code(each.module), sentence(each)] for each in names()]
    pages = "".join(f"- [{title}]({_file(page)})\n" for page, title in TITLES.items())
    return _linked("\n".join([HEAD, pages, "## Names\n", table(["name", "from", "what it is"], rows)]))


def python(page: str) -> str:
    """Generate one page."""
    parts = [f"# Python API: {TITLES[page]}\n", "[All names](python.md)\n"]
    for each in names():
        if each.page == page:
            parts += _entry(each)
    return _linked("\n".join(parts))


def _file(page: str) -> str:
    return f"python-{page}.md"


@cache
def places() -> Mapping[str, str]:
    """Return the link to each name's entry."""
    found: dict[str, str] = {}
    for page in TITLES:
        mine = [each for each in names() if each.page == page]
        # The titles of methods, which stand between those of names, make numbers of anchors go up.
        text = "\n".join([f"# Python API: {TITLES[page]}\n", *(part for each in mine for part in _entry(each))])
        anchors = dict(reversed(headings(text)))
        found |= {each.heading: f"{_file(page)}#{anchors[code(each.heading)]}" for each in mine}
    return found


def _linked(text: str) -> str:
    return _LINK.sub(lambda found: f"({places()[found[1]]})", text)


def _link(each: Name, text: str) -> str:
    """Return a link to a name's entry, whose anchor is known once the page is complete."""
    return f"[{code(text)}](entry:{each.heading})"


def sentence(each: Name) -> str:
    """Return the first sentence of a name's docstring."""
    text = each.parts.text.partition("\n\n")[0]
    return re.split(r"(?<=[.!?])\s(?=[A-Z`])", text)[0]


def _entry(each: Name) -> Iterator[str]:
    yield f"## {code(each.heading)}\n"
    value = each.value
    match each.kind:
        case "class":
            yield fenced(class_signature(each.name, value), "python")
            yield from _bases(value)
            yield from _describe(each.parts)
            yield from _class_body(each.name, value)
        case "function":
            yield fenced(signature_of(each.name, value), "python")
            yield from _describe(each.parts, value)
        case "object":
            yield from _describe(each.parts)
            yield from _instance(each.name, type(value))
        case "value":
            yield fenced(assignment_of(_home(each), each.name), "python")
            yield from _describe(each.parts)


def _describe(parts: Parts, function: Any = None) -> Iterator[str]:
    if parts.text:
        yield f"{parts.text}\n"
    arguments = dict(parts.arguments)
    if options := options_of(function):
        arguments = {name: meaning for name, meaning in arguments.items() if name != "options"}
        arguments |= {name: meaning for name, (_, meaning) in options.items()}
    if arguments:
        yield "".join(f"- {code(name)}: {meaning}\n" for name, meaning in arguments.items())
    if parts.returns:
        yield f"Returns: {parts.returns}\n"
    if parts.raises:
        yield "Raises:\n"
        yield "".join(f"- {code(kind)}: {when}\n" for kind, when in parts.raises)
    for example in parts.examples:
        yield fenced(example, "pycon")


def _class_body(name: str, kind: type) -> Iterator[str]:
    if issubclass(kind, LlmDoError):
        yield f"The status is {code(kind.status)}.\n"
    if issubclass(kind, enum.Enum):
        yield "".join(f"- {code(f'{name}.{member.name}')} is {code(repr(member.value))}\n" for member in kind)
    properties = [(key, value) for key, value in _members(kind) if isinstance(value, property)]
    if properties:
        yield "".join(
            f"- {code(f'.{key}')} ({code(result_of(value.fget))}): {parts_of(value).text.partition(chr(10))[0]}\n"
            for key, value in properties
        )
    for key, value in _members(kind):
        if not isinstance(value, property):
            yield from _method(f"{name}.{key}", value)


def _instance(name: str, kind: type) -> Iterator[str]:
    """Describe an object that is callable and has methods."""
    yield from _method(name, vars(kind)["__call__"])
    for key, value in _members(kind):
        if not isinstance(value, property):
            yield from _method(f"{name}.{key}", value)


def _method(name: str, value: Any) -> Iterator[str]:
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    yield f"### {code(name)}\n"
    yield fenced(signature_of(name, function, drop=not isinstance(value, staticmethod)), "python")
    yield from _describe(parts_of(function), function)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties of a class, including those of its bases in this package."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("llm_do") or (base is LlmDoError and kind is not LlmDoError):
            continue
        for key, value in vars(base).items():
            if key.startswith("_") or key in seen:
                continue
            if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value):
                seen.add(key)
                if _documented(value):
                    yield key, value


def _documented(value: Any) -> bool:
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return bool(function.__doc__)


def _bases(kind: type) -> Iterator[str]:
    named = {id(each.value): each for each in names()}
    shown = [
        _link(named[id(base)], base.__name__) if id(base) in named else code(base.__name__)
        for base in kind.__bases__
        if base not in (object, Generic, Protocol)
        # The members of our own bases that aren't public are listed as the class's.
        if id(base) in named or not base.__module__.startswith("llm_do")
    ]
    if shown:
        yield f"Derives from {joined(shown, 'and')}.\n"


def _home(each: Name) -> str:
    """Return the module that defines a name."""
    if each.module == "llm_do":
        return str(vars(llm_do)["_EXPORTS"][each.name])
    exports = getattr(import_module(each.module), "_EXPORTS", {})
    return str(exports.get(each.name, each.module))
