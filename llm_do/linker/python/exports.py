"""What a project's Python files export: tools, toolsets and agents, each with its name and place.

`llm_do.linker.python.python_files` imports them; the linker checks that the names are free. Classes of other packages
are looked up among the loaded modules: a module that wasn't imported has no instances.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import names as name_problems, python as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.python.python_files import LoadedFile, run_user_code
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import NAME_PATTERN, Kind
from llm_do.text.words import with_article
from llm_do.tools import options_of

__all__ = [
    "Export",
    "accepts_arguments",
    "accepts_keywords",
    "display_name",
    "is_toolset",
    "read_exports",
    "refuse_toolset",
    "tool_name",
]

_NAME = re.compile(NAME_PATTERN)
_VARIABLES: Mapping[str, Kind] = {"TOOLSETS": "toolset", "AGENTS": "agent", "TOOLS": "tool", "FLOWS": "flow"}


@frozen
class Export:
    """One exported object.

    Args:
        name: The name it is registered under.
        kind: Tool, toolset or agent.
        value: The object.
        place: Where it stands in the list or dict, or where its name is bound.
        label: The file that exports it.
    """

    name: str
    kind: Kind
    value: Any
    place: Location
    label: str


@dataclass(slots=True)
class _Collector:
    entry: tuple[str, str] | None = None
    found: list[Export] = field(default_factory=list[Export])
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    taken: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    objects: set[int] = field(default_factory=set[int])
    refused: set[str] = field(default_factory=set[str])
    withheld: set[int] = field(default_factory=set[int])

    def add(self, name: str, kind: Kind, value: object, place: Location, label: str) -> None:
        if (id(value), name) in self.taken:
            return
        if not _NAME.match(name) or name.endswith("\n"):
            self.report(name_problems.invalid_export_name(name, kind), place)
            self.refuse(name)
            return
        self.taken.add((id(value), name))
        self.objects.add(id(value))
        self.found.append(Export(name, kind, value, place, label))

    def refuse(self, *names: str | None) -> None:
        """Remember names that should have been exported."""
        self.refused.update(name for name in names if name is not None)

    def report(self, problem: Problem, place: Location) -> None:
        self.faults.append(problem.at(place))


@frozen
class _Member:
    """A member of an exported list or dict; `key` is its key in a dict."""

    variable: str
    key: str | None
    value: object
    place: Location


def read_exports(
    files: Sequence[LoadedFile], entry: tuple[str, str] | None = None
) -> tuple[list[Export], list[Diagnostic], set[str]]:
    """Read what imported files export."""
    collector = _Collector(entry)
    for step in (_read_lists, _read_all, _find_withheld, _read_module_level):
        for file in files:
            try:
                with run_user_code():
                    step(file, collector)
            except Exception as error:  # noqa: BLE001 - a project's objects may raise when they are looked at
                collector.report(problems.exports_raised(type(error).__name__), Location(file.label))
    return collector.found, collector.faults, collector.refused - {export.name for export in collector.found}


def tool_name(value: object) -> str | None:
    """The name a tool gives itself: a tool object's, the one in its `@tool` options, or the function's.

    Example:
        >>> def add(a: int, b: int) -> int: ...
        >>> tool_name(add)
        'add'
    """
    declared = getattr(value, "name", None) if _is_tool_object(value) else options_of(value).name
    for name in (declared, getattr(_inside(value), "__name__", None)):
        if isinstance(name, str) and name and name != "<lambda>":
            return name
    return None


def display_name(value: object) -> str:
    """What messages call a tool: by its name, else by what it is."""
    return tool_name(value) or str(getattr(value, "__name__", type(value).__name__))


def _read_lists(file: LoadedFile, collector: _Collector) -> None:
    for variable, kind in _VARIABLES.items():
        for member in _members(file, variable, collector):
            reason = _REFUSALS[kind](member.value)
            if reason is not None:
                collector.refuse(member.key, tool_name(member.value))
                problem = problems.invalid_export(variable, member.key, _describe(member.value), kind, reason)
                collector.report(problem, member.place)
                continue
            _add_member(file, member, kind, collector)


def _add_member(file: LoadedFile, member: _Member, kind: Kind, collector: _Collector) -> None:
    own = member.value.name if isinstance(member.value, AgentSpec | FlowSpec) else None
    if own is not None and member.key is not None and member.key != own:
        collector.report(problems.two_names(kind, own, member.variable, member.key), member.place)
        collector.refuse(own, member.key)
        return
    name = member.key if member.key is not None else own or _list_name(file, kind, member.value)
    if name is None:
        collector.report(problems.nameless_export(member.variable, _describe(member.value)), member.place)
        return
    collector.add(name, kind, member.value, member.place, file.label)
    if name in collector.refused:
        collector.refuse(*(bound for bound, value in file.namespace.items() if value is member.value))


def _list_name(file: LoadedFile, kind: Kind, value: object) -> str | None:
    name = tool_name(value) if kind == "tool" else _toolset_name(value)
    if name is not None:
        return name
    return next((key for key, bound in file.namespace.items() if bound is value), None)


def _toolset_name(value: object) -> str | None:
    attributes = ("name", "id") if is_toolset(value) else ("__name__",)
    for attribute in attributes:
        name = getattr(value, attribute, None)
        if isinstance(name, str) and name and name != "<lambda>":
            return name
    return None


def _read_all(file: LoadedFile, collector: _Collector) -> None:
    if "TOOLS" in file.namespace or "__all__" not in file.namespace:
        return
    names = file.namespace["__all__"]
    if not isinstance(names, list | tuple):
        collector.report(problems.all_not_a_list(_describe(names)), file.place("__all__"))
        return
    for index, name in enumerate(cast("Sequence[object]", names)):
        place = file.place("__all__", index)
        if not isinstance(name, str) or name not in file.namespace:
            shown = repr(name) if isinstance(name, str) else _describe(name)
            collector.report(problems.undefined_export(shown, file.label), place)
            continue
        value = file.namespace[name]
        is_tool = inspect.isroutine(value) or _is_tool_object(value) or _is_partial(value)
        if not is_tool or (file.label, name) == collector.entry or id(value) in collector.objects:
            continue
        collector.add(options_of(value).name or name, "tool", value, place, file.label)


def _find_withheld(file: LoadedFile, collector: _Collector) -> None:
    """Find the toolsets that a file keeps to itself: those outside `TOOLSETS`, or under private names only."""
    own = {name: id(value) for name, value in file.namespace.items() if is_toolset(value)}
    public = {made for name, made in own.items() if "TOOLSETS" not in file.namespace and not name.startswith("_")}
    collector.withheld.update(
        made for name, made in own.items() if made not in public and name not in file.facts.imported
    )


def _read_module_level(file: LoadedFile, collector: _Collector) -> None:
    if "TOOLSETS" in file.namespace:
        return
    for variable, value in file.namespace.items():
        if not is_toolset(value) or variable.startswith("_"):
            continue
        if id(value) not in collector.objects | collector.withheld:
            collector.add(_toolset_name(value) or variable, "toolset", value, file.place(variable), file.label)


def _members(file: LoadedFile, variable: str, collector: _Collector) -> Iterator[_Member]:
    if variable not in file.namespace:
        return
    container = file.namespace[variable]
    if isinstance(container, Mapping):
        for key, value in cast("Mapping[object, object]", container).items():
            if isinstance(key, str):
                yield _Member(variable, key, value, file.place(variable, key))
            else:
                collector.report(name_problems.key_not_text(variable, _describe(key)), file.place(variable))
    elif isinstance(container, list | tuple):
        for index, value in enumerate(cast("Sequence[object]", container)):
            yield _Member(variable, None, value, file.place(variable, index))
    else:
        collector.refuse(tool_name(container))
        collector.report(problems.not_a_container(variable, _describe(container)), file.place(variable))


def _refuse_tool(value: object) -> str | None:
    """None when it is a tool, else what to do about it."""
    if inspect.isclass(value):
        return "export an instance of the class" if _is_subclass(value, "llm_do.tools", "Tool") else ""
    if is_toolset(value):
        return "export it in TOOLSETS"
    if isinstance(value, AgentSpec):
        return "export it in AGENTS"
    if _is_tool_object(value):
        return None
    if _is_partial(value) and not inspect.isroutine(_inside(value)):
        return "write a function that calls it"
    if callable(value):  # an object that can be called has no name, and no schema can be made of it
        return None if hasattr(_inside(value), "__name__") else "write a function that calls it"
    return ""


def refuse_toolset(value: object) -> str | None:
    """None when it is a toolset or a factory of one, else what to do about it."""
    if inspect.isclass(value):
        return f"export an instance, such as {value.__name__}(), or a function that returns one"
    if is_toolset(value):
        return None
    if isinstance(value, AgentSpec):
        return "export it in AGENTS"
    if _is_tool_object(value):
        return "export it in TOOLS"
    if not callable(value):
        return ""
    return None if accepts_arguments(value, 1) else "let the factory take one argument, the RunContext"


def _refuse_flow(value: object) -> str | None:
    if isinstance(value, FlowSpec):
        return None
    if inspect.isclass(value):
        return "export an instance of the class"
    return 'write Swarm([...], name="name")'


def _refuse_agent(value: object) -> str | None:
    if isinstance(value, AgentSpec):
        return None
    return 'write AgentSpec("name", instructions=...)'


_REFUSALS = {"tool": _refuse_tool, "toolset": refuse_toolset, "agent": _refuse_agent, "flow": _refuse_flow}


def accepts_arguments(function: object, count: int) -> bool:
    """Whether a callable can be called with `count` positional arguments; yes when its signature can't be read.

    Example:
        >>> accepts_arguments(lambda a, b=1: a, 2), accepts_arguments(lambda a: a, 2)
        (True, False)
    """
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*([None] * count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def accepts_keywords(function: object, names: Sequence[str]) -> bool:
    """Whether a callable can be called with these keywords; yes when its signature can't be read.

    Example:
        >>> accepts_keywords(lambda **data: None, ["agent"]), accepts_keywords(lambda agent: None, ["agent", "error"])
        (True, False)
    """
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def is_toolset(value: object) -> bool:
    """Whether an object is a toolset; what was never imported has no instances."""
    return _is_instance(value, "pydantic_ai.toolsets", "AbstractToolset")


def _is_partial(value: object) -> bool:
    return isinstance(value, functools.partial)


def _inside(value: object) -> object:
    """The function that a `partial` calls; anything else as it is."""
    return cast("functools.partial[Any]", value).func if _is_partial(value) else value


def _is_tool_object(value: object) -> bool:
    return _is_instance(value, "llm_do.tools", "Tool") or _is_instance(value, "pydantic_ai", "Tool")


def _is_instance(value: object, module: str, name: str) -> bool:
    known = _loaded(module, name)
    return known is not None and isinstance(value, known)


def _is_subclass(value: type, module: str, name: str) -> bool:
    known = _loaded(module, name)
    return known is not None and issubclass(value, known)


def _loaded(module: str, name: str) -> type | None:
    loaded = sys.modules.get(module)
    known: object = vars(loaded).get(name) if loaded is not None else None
    if known is None and loaded is not None:
        known = getattr(loaded, name, None)
    return known if isinstance(known, type) else None


def _describe(value: object) -> str:
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if isinstance(value, str | int | float | bool | None):
        return repr(value) if len(repr(value)) <= 40 else with_article(type(value).__name__)
    return with_article(type(value).__name__)
