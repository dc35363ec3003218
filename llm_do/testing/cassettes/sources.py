"""Where the parts of a request are written: files and lines of a project."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic_ai import Tool
from pydantic_ai.toolsets import FunctionToolset

from llm_do._bounded_files import read_bounded_text
from llm_do.project.agent_spec import AgentSpec

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["Place", "Sources", "first_change"]

Place: TypeAlias = "tuple[str | None, int | None]"
"""A file below the project, and a line in it."""

NOWHERE: Place = (None, None)

MOST_FILES = 300
"""Files in which a text is looked for."""

MOST_BYTES = 256 * 1024
"""The longest of them."""


class Sources:
    """Where a project's agents, tools and texts are written.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._root = project.root.resolve()
        self._registry = project.registry

    def agent(self, name: str) -> Place:
        """File and line of an agent."""
        spec = self._spec(name)
        return (spec.place.file, spec.place.line) if spec is not None and spec.place is not None else NOWHERE

    def setting(self, agent: str, name: str) -> Place:
        """File and line of an agent's setting: in its file, or in the manifest."""
        file, line = self.agent(agent)
        own = re.compile(rf"(?:^|[\s{{,\"']){re.escape(name)}[\"']?\s*:")
        frontmatter = _frontmatter(self._lines(file))
        found = next((number for number, text in enumerate(frontmatter, 1) if own.search(text)), None)
        if found is not None:
            return file, found
        if self._project.manifest is not None:
            manifest = self._shown(self._project.manifest)
            of_project = (number for number, text in enumerate(self._lines(manifest), 1) if f'"{name}"' in text)
            if (found := next(of_project, None)) is not None:
                return manifest, found
        return file, line

    def text(self, agent: str, old: str, new: str) -> Place:
        """Where a text that has changed is written now: in an agent's file, or in another that is put into it."""
        file, line = self.agent(agent)
        changed = first_change(old, new)
        if not changed:
            return file, line
        own = self._line_with(file, changed)
        if own is not None:
            return file, own
        for other in islice(self._files(), MOST_FILES):
            if (found := self._line_with(other, changed)) is not None:
                return other, found
        spec = self._spec(agent)
        providers = spec.context_providers if spec is not None else ()
        of_code = (self.code(each) for each in (*providers, *self._project.context_providers))
        return next((place for place in of_code if place != NOWHERE), (file, line))

    def tool(self, name: str) -> Place:
        """File and line of a tool that is one of the project's functions or agents."""
        found = self._registry.get(name)
        if found is not None and found.kind == "agent":
            spec = self._spec(name)
            of_input = self.code(spec.input_model) if spec is not None and spec.input_model is not None else NOWHERE
            return of_input if of_input != NOWHERE else self.agent(name)
        if found is not None:
            value = found.value
            return self.code(cast("Tool[Any]", value).function if isinstance(value, Tool) else value)
        for item in self._registry.values():
            value = item.value
            if isinstance(value, FunctionToolset):
                tools = cast("FunctionToolset[Any]", value).tools
                own = tools.get(name) or tools.get(name.removeprefix(f"{item.name}_"))
                if own is not None:
                    return self.code(own.function)
        return NOWHERE

    def output(self, agent: str) -> Place:
        """File and line of an agent's output type, or of the key that declares it."""
        spec = self._spec(agent)
        found = self.code(spec.output_type) if spec is not None and inspect.isclass(spec.output_type) else NOWHERE
        return found if found != NOWHERE else self.setting(agent, "output")

    def result(self, args: Mapping[str, Any], old: object, new: object) -> Place:
        """The file that a tool has read, if one of its arguments names it, and the line in it that has changed."""
        for value in args.values():
            if isinstance(value, str) and value and "\0" not in value and len(value) < 500:
                path = (self._root / value).resolve()
                if path.is_relative_to(self._root) and path.is_file():
                    file = self._shown(path)
                    changed = first_change(str(old), str(new))
                    return file, self._line_with(file, changed, inside=True) if changed else None
        return NOWHERE

    def code(self, value: Any) -> Place:
        """File and line of a function or a class of the project."""
        try:
            value = inspect.unwrap(value) if callable(value) else value
            file = inspect.getsourcefile(value)
            line = inspect.getsourcelines(value)[1]
        except (OSError, TypeError, ValueError):
            return NOWHERE
        if file is None or not Path(file).resolve().is_relative_to(self._root):
            return NOWHERE
        return self._shown(Path(file)), line

    def _spec(self, name: str) -> AgentSpec | None:
        found = self._registry.get(name)
        return found.value if found is not None and isinstance(found.value, AgentSpec) else None

    def _shown(self, path: Path) -> str:
        path = path.resolve()
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def _lines(self, file: str | None) -> list[str]:
        if file is None:
            return []
        path = self._root / file
        try:
            return read_bounded_text(path, MOST_BYTES).splitlines()
        except (OSError, UnicodeDecodeError):
            return []

    def _line_with(self, file: str | None, changed: str, *, inside: bool = False) -> int | None:
        """The first line that is a text, or that has something in common with a line of a tool's result."""

        def is_it(line: str) -> bool:
            return line == changed or (inside and bool(line) and (line in changed or changed in line))

        lines = enumerate(self._lines(file), 1)
        return next((number for number, line in lines if is_it(line.strip())), None)

    def _files(self) -> Iterator[str]:
        """The project's files, those that were linked first."""
        linked = dict.fromkeys(self._shown(path) for path in self._project.files)
        yield from linked
        for path in sorted(self._root.rglob("*")):
            file = self._shown(path)
            if file not in linked and path.is_file() and not any(part.startswith(".") for part in Path(file).parts):
                yield file


def _frontmatter(lines: Iterable[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if found and line.strip() == "---":
            break
        found.append(line)
    return found


def first_change(old: str, new: str) -> str:
    """The first line of a text that isn't as it was in an older one; what stands before it if lines were deleted.

    Example:
        >>> first_change("a\\nb\\nc", "a\\nB\\nc"), first_change("a\\nb\\nc", "a\\nc")
        ('B', 'a')
    """
    before, after = old.splitlines(), new.splitlines()
    for tag, _, _, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lines = [line.strip() for line in after[start:end]] or [line.strip() for line in reversed(after[:start])]
        return next((line for line in lines if line), "")
    return ""
