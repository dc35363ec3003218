"""References from files to Python code: `path.py:name` and `module.Class`, and whether what they lead to is fit.

They lead into the listed Python files; the classes that an agent names, into any Python file of the project.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from llm_do.diagnostics.codes import names as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.python.exports import accepts_arguments, accepts_keywords
from llm_do.linker.python.python_files import LoadedFile, PythonFiles, run_user_code
from llm_do.project.inputs import AgentArgs

__all__ = ["References"]


@dataclass(slots=True)
class References:
    """Resolves references, keeping what is wrong with them and which files they led to.

    Args:
        root: The project's folder.
        python: Its imported files.
        listed: Labels of all listed Python files.
        patterns: What the manifest lists; a listed file that doesn't exist is reported there, not again at a reference.
        faults: What was wrong so far.
        used: Labels of the files that references led to.
        unlisted: Files that are imported because an agent names a class in them.
    """

    root: Path
    python: PythonFiles
    listed: list[str]
    patterns: list[str] = field(default_factory=list[str])
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    used: set[str] = field(default_factory=set[str])
    unlisted: list[Path] = field(default_factory=list[Path])

    def function(self, reference: str, place: Location, arguments: int, shape: str) -> Callable[..., Any] | None:
        """The function of `path.py:name` when it can be called with `arguments` arguments."""
        found = self._find(reference, place)
        if found is None:
            return None
        value = found[0]
        if not callable(value) or inspect.isclass(value):
            self._report(problems.not_a_function(reference), place)
            return None
        if not accepts_arguments(value, arguments):
            self._report(problems.wrong_parameters(reference, shape, shape), place)
            return None
        return value

    def guard(self, reference: str, place: Location) -> Callable[..., Any] | None:
        """The function of `path.py:name` when it can be called with a value, or with a value and the context."""
        found = self._find(reference, place)
        value = found[0] if found is not None else None
        if callable(value) and not inspect.isclass(value) and accepts_arguments(value, 2):
            return value
        return self.function(reference, place, 1, "(value) or (value, ctx)")

    def hook(self, reference: str, place: Location, keywords: Sequence[str]) -> Callable[..., Any] | None:
        """The function of `path.py:name` when it can be called with these keywords."""
        found = self._find(reference, place)
        if found is None:
            return None
        value, shape = found[0], f"({', '.join(f'{name}=' for name in keywords)})"
        if not callable(value) or inspect.isclass(value):
            self._report(problems.not_a_function(reference), place)
            return None
        if not accepts_keywords(value, keywords):
            definition = f"({', '.join(keywords)}) or `**data`"
            self._report(problems.wrong_parameters(reference, shape, definition), place)
            return None
        return value

    def input_model(self, reference: str, place: Location) -> type[AgentArgs] | None:
        """The subclass of `AgentArgs` that a reference leads to."""
        found = self._find_class(reference, place)
        if found is None:
            return None
        value = found[0]
        if isinstance(value, type) and issubclass(value, AgentArgs):
            return value if self._has_schema(reference, value, place) else None
        self._report(problems.not_an_input_model(reference, is_class=isinstance(value, type)), place)
        return None

    def _has_schema(self, reference: str, model: type[AgentArgs], place: Location) -> bool:
        """Whether there is a JSON Schema of an input model, which its callers' models need."""
        try:
            with run_user_code():
                model.model_json_schema()
        except Exception as error:  # noqa: BLE001 - building a schema runs the project's code
            self._report(problems.no_json_schema(reference, self._reason(error)), place)
            return False
        return True

    def output_model(self, reference: str, place: Location) -> object | None:
        """The type that a reference leads to, when pydantic can validate it."""
        from pydantic import TypeAdapter

        found = self._find_class(reference, place)
        if found is None:
            return None
        value = found[0]
        if inspect.isroutine(value) or not _is_typelike(value):
            self._report(problems.not_a_class(reference), place)
            return None
        try:
            with run_user_code():
                TypeAdapter[Any](cast("type[Any]", value))
        except Exception as error:  # noqa: BLE001 - building a schema runs the project's code
            self._report(problems.invalid_output_model(reference, self._reason(error)), place)
            return None
        return value

    def entry_of(self, reference: str) -> tuple[str, str] | None:
        """Label and name that a `path.py:name` reference means, None when its file isn't listed."""
        path, _, name = reference.partition(":")
        label = self._label(path)
        return (label, name) if label is not None else None

    def _find_class(self, reference: str, place: Location) -> tuple[object] | None:
        """Find a class; a path may start at the folder of the agent that names it, and its file needn't be listed."""
        path, colon, name = reference.partition(":")
        if not colon:
            module, _, name = reference.rpartition(".")
            path = f"{module.replace('.', '/')}.py"
        folder = PurePosixPath(place.file).parent
        for label in dict.fromkeys((_normal(f"{folder}/{path}"), _normal(path))):
            if label not in self.listed and self._is_own_file(label):
                self.python.add(self.root, self.root / label)
                self.listed.append(label)
                self.unlisted.append(self.root / label)
            if label in self.listed:
                reference = f"{label}:{name}"
                break
        return self._find(reference, place)

    def _is_own_file(self, label: str) -> bool:
        """Whether there is a Python file of that label in the project's folder, with every link on its way."""
        real = Path(os.path.realpath(self.root / label))
        return label.endswith(".py") and real.is_relative_to(os.path.realpath(self.root)) and real.is_file()

    def _find(self, reference: str, place: Location) -> tuple[object] | None:
        path, colon, name = reference.partition(":")
        if colon:
            label = self._label(path)
            if label is None:
                self._unlisted_path(path, place)
                return None
        else:
            module, _, name = reference.rpartition(".")
            label = self._module(module, place)
            if label is None:
                return None
        self.used.add(label)
        if label in self.python.failed:
            return None
        file = self.python.by_label(label)
        if file is None:
            return None
        return self._attribute(file, name, place)

    def _attribute(self, file: LoadedFile, name: str, place: Location) -> tuple[object] | None:
        if name in file.namespace:
            return (file.namespace[name],)
        known = [key for key in file.namespace if not key.startswith("__")]
        self._report(problems.undefined_name(file.label, name, known), place)
        return None

    def _label(self, path: str) -> str | None:
        label = _normal(path)
        return label if label in self.listed else None

    def _module(self, module: str, place: Location) -> str | None:
        """The file of a dotted module name: from the root, else the only one that ends so."""
        relative = module.replace(".", "/")
        endings = (f"{relative}.py", f"{relative}/__init__.py")
        for ending in endings:
            if ending in self.listed:
                return ending
        close = [label for label in self.listed if label.endswith(tuple(f"/{ending}" for ending in endings))]
        if len(close) == 1:
            return close[0]
        if close:
            self._report(problems.ambiguous_module(module, close), place)
            return None
        for ending in endings:
            if self._is_missing(ending) or os.path.isfile(self.root / ending):
                self._unlisted_path(ending, place)
                return None
        names = [label.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for label in self.listed]
        self._report(problems.unlisted_module(module, names), place)
        return None

    def _reason(self, error: Exception) -> str:
        """The first sentence of an error, without internal names of modules."""
        text = " ".join(str(error).split()).partition(" For further information")[0]
        text = text.partition(". ")[0] or type(error).__name__
        return self.python.space.public(text) if self.python.space is not None else text

    def _is_missing(self, path: str) -> bool:
        return _normal(path) in {_normal(pattern) for pattern in self.patterns}

    def _unlisted_path(self, path: str, place: Location) -> None:
        if self._is_missing(path):
            return
        exists = os.path.isfile(self.root / path)
        self._report(problems.unlisted_file(path, self.listed, exists=exists), place)

    def _report(self, problem: Problem, place: Location) -> None:
        self.faults.append(problem.at(place))


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in PurePosixPath(path.replace("\\", "/")).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _is_typelike(value: object) -> bool:
    """A class, or what `typing` makes of classes (unions, `Annotated`, `Literal`)."""
    return isinstance(value, type) or hasattr(value, "__origin__") or hasattr(value, "__args__")
