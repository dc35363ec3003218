"""A project's Python files: each imported once, and one diagnostic for each that can't be.

How imports between them are resolved lives in `llm_do.linker.python.namespace`; what they export is read in
`llm_do.linker.python.exports`.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import os
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_do._extras import extra_of, install_command
from llm_do._startup.code_access import is_open
from llm_do._startup.compiled_texts import kept_texts
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import python as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.linker.python.namespace import Hides, ModuleSpace, read_source, show_all
from llm_do.linker.python.positions import Facts

__all__ = ["LoadedFile", "Modules", "PythonFiles", "Watch", "load_python_files", "run_user_code"]


@frozen
class LoadedFile:
    """One imported file.

    Args:
        path: The file, absolute.
        label: The file relative to the project's root, as diagnostics name it.
        name: Its dotted name as the project's author knows it, such as `tools.math`.
        module_name: Its internal name in `sys.modules`.
        namespace: What its names are bound to.
        facts: Where they are bound.
    """

    path: Path
    label: str
    name: str
    module_name: str
    namespace: Mapping[str, Any]
    facts: Facts

    def place(self, variable: str, member: int | str | None = None) -> Location:
        """Where a module-level name, or a member of a module-level list or dict, stands; else the file's start."""
        span = self.facts.members.get((variable, member)) if member is not None else None
        span = span or self.facts.names.get(variable)
        if span is None:
            return Location(self.label)
        return Location(self.label, span.line, span.column, span.end_line, span.end_column)


@frozen
class Watch:
    """How a subprocess that links watches the import.

    Args:
        refused: Files (absolute) that must not be imported again, each with its diagnostic.
        begin: Called with the label of each file before it is imported, and with an empty text after the last.
    """

    refused: Mapping[str, Diagnostic]
    begin: Callable[[str], None]


class _RefusedError(ImportError):
    """Stands for the import of a file that must not be tried again."""

    def __init__(self, found: Diagnostic) -> None:
        super().__init__(found.message)
        self.diagnostic = found


class Modules:
    """Keeps a project's modules importable for as long as something holds it.

    Args:
        space: The modules.
    """

    __slots__ = ("__weakref__", "public")

    def __init__(self, space: ModuleSpace) -> None:
        self.public = space.public
        """Writes the internal names of modules in a text as their author knows them."""
        weakref.finalize(self, space.forget).atexit = False


@dataclass(slots=True)
class PythonFiles:
    """The files of one project after importing them.

    Args:
        space: The namespace they live in; None when there are no files.
        files: The files that could be imported, in listed order.
        diagnostics: What is wrong with the others.
        failed: The labels of the others.
        facts: Label to what is known of every file that was parsed, siblings that aren't listed included.
        hides: Which modules aren't found.
        unread: The labels of the files that weren't imported because their folder is closed; all of them are `failed`.
    """

    space: ModuleSpace | None = None
    files: list[LoadedFile] = field(default_factory=list[LoadedFile])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    failed: set[str] = field(default_factory=set[str])
    facts: dict[str, Facts] = field(default_factory=dict[str, Facts])
    hides: Hides = show_all
    unread: list[str] = field(default_factory=list[str])

    def add(self, root: Path, path: Path) -> None:
        """Import one more file, which the project doesn't list."""
        if not is_open(root):
            self.read_as_text(root, path)
            return
        self.space = self.space or ModuleSpace(root, [path], self.hides)
        with _tidy(root, [path]):
            _load(self.space, path, self, alone=False)

    def read_as_text(self, root: Path, path: Path) -> None:
        """Parse a file instead of importing it: only whether it is Python can be known."""
        label = file_label(root, path)
        self.unread.append(label)
        self.failed.add(label)
        try:
            with warnings.catch_warnings(action="ignore"):
                ast.parse(read_source(path), str(path))
        except SyntaxError as error:
            self.diagnostics.append(problems.invalid_python(error.msg).at(_syntax_place(error, label)))
        except (OSError, ValueError, RecursionError, MemoryError):
            return

    def by_label(self, label: str) -> LoadedFile | None:
        """The imported file of that label."""
        return next((file for file in self.files if file.label == label), None)


def load_python_files(
    root: Path, paths: Sequence[Path], watch: Watch | None = None, hides: Hides = show_all
) -> PythonFiles:
    """Import a project's Python files, each once, in a namespace that only they share; `hides` says which it lacks."""
    if not paths:
        return PythonFiles(hides=hides)
    if not is_open(root):
        result = PythonFiles(hides=hides)
        for path in paths:
            result.read_as_text(root, path)
        return result
    if kept_texts() is not None:
        # Every such project needs it. What is compiled when a file is the first to import it would count as the file's.
        importlib.import_module("pydantic_ai.toolsets")
    space = ModuleSpace(root, paths, hides)
    result = PythonFiles(space, hides=hides)
    for file, found in watch.refused.items() if watch is not None else ():
        space.failures[file] = _RefusedError(found)
    with _tidy(root, paths):
        for path in paths:
            if watch is not None:
                watch.begin(file_label(root, path))
            _load(space, path, result, alone=watch is not None)
        _try_again(space, paths, result, alone=watch is not None)
    if watch is not None:
        watch.begin("")
    result.facts = {file_label(root, Path(file)): facts for file, facts in space.facts.items()}
    space.settle()
    return result


def _load(space: ModuleSpace, path: Path, result: PythonFiles, *, alone: bool) -> None:
    label = file_label(space.root, path)
    name = space.module_name(path)
    try:
        with run_user_code():
            module = importlib.import_module(name)
            namespace = dict(vars(module))
    except BaseException as error:
        # A module may raise anything, `SystemExit` too. An interruption is a person's only where they can reach it.
        if isinstance(error, KeyboardInterrupt) and not alone:
            raise
        result.failed.add(label)
        found = explain_import_error(error, space, label)
        if found not in result.diagnostics:
            result.diagnostics.append(found)
        return
    facts = space.facts.get(str(path), Facts())
    result.files.append(LoadedFile(path, label, space.public(name), name, namespace, facts))


def _try_again(space: ModuleSpace, paths: Sequence[Path], result: PythonFiles, *, alone: bool) -> None:
    """Import files that import each other in the other order, in which it may work."""
    failed = [
        file
        for file, error in space.failures.items()
        if isinstance(error, ImportError | AttributeError) and "partially initialized module" in str(error)
    ]
    if not failed:
        return
    labels = {file_label(space.root, Path(file)) for file in failed}
    for file in failed:
        del space.failures[file]
    result.failed -= labels
    result.diagnostics = [item for item in result.diagnostics if item.file not in labels]
    for path in reversed([path for path in paths if str(path) in failed]):
        _load(space, path, result, alone=alone)
    result.files.sort(key=lambda file: file.path)


def explain_import_error(error: BaseException, space: ModuleSpace, label: str) -> Diagnostic:
    """Say why a file can't be imported, at the place in the project's own code that is nearest to the fault."""
    if isinstance(error, _RefusedError):
        return error.diagnostic
    if isinstance(error, SyntaxError) and _inside(space, error.filename):
        return problems.invalid_python(error.msg).at(_syntax_place(error, _label(space, str(error.filename))))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _inside(space, frame.filename)]
    place = Location(label)
    if frames:
        frame = frames[-1]
        place = Location(_label(space, frame.filename), frame.lineno or 1, *_columns(frame))
    shown = _describe(error, space)
    if isinstance(error, SystemExit):
        return problems.import_exited(shown).at(place)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    extra = extra_of(missing) if missing is not None else None
    return problems.import_raised(shown, missing, install_command(extra) if extra is not None else None).at(place)


def _syntax_place(error: SyntaxError, label: str) -> Location:
    line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    end_line, end_column = error.end_lineno or 0, error.end_offset or 0
    if (end_line, end_column) <= (line, column):
        end_line = end_column = 0
    return Location(label, line, column, end_line, end_column)


def _describe(error: BaseException, space: ModuleSpace) -> str:
    try:
        text = " ".join(space.public(str(error)).replace(f"{space.root}{os.sep}", "").split())
    except Exception:  # noqa: BLE001 - an exception's own text may raise
        text = ""
    name = type(error).__name__
    return f"{name}: {text[:300]}" if text else name


def _columns(frame: traceback.FrameSummary) -> tuple[int, int, int]:
    """Column, end line and end column of a frame, in characters; only when it is one line that can be read."""
    number, start, end = frame.lineno or 1, frame.colno, frame.end_colno
    line = linecache.getline(frame.filename, number).encode()
    if not line or start is None or end is None or frame.end_lineno != frame.lineno:
        return 1, 0, 0
    column, end_column = (len(line[:offset].decode(errors="replace")) + 1 for offset in (start, end))
    return column, number, end_column


def _inside(space: ModuleSpace, filename: str | None) -> bool:
    return filename is not None and (filename in space.facts or filename in space.failures)


def _label(space: ModuleSpace, filename: str) -> str:
    return file_label(space.root, Path(filename))


@contextmanager
def run_user_code() -> Generator[None]:
    """Let a warning of a project's code be a warning, also where warnings are made errors.

    The filters are the process's: whoever comes first changes them, and whoever goes last puts them back.
    """
    global _running
    with _lock:
        if not _running:
            _changed.enter_context(_no_warning_raises())
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                _changed.close()


_lock = threading.Lock()
_running = 0
_changed = ExitStack()


@contextmanager
def _no_warning_raises() -> Generator[None]:
    with warnings.catch_warnings():
        filters = list(warnings.filters)
        if any(action == "error" for action, *_ in filters):
            warnings.resetwarnings()
            for action, message, category, module, line in filters:
                kept = "default" if action == "error" else action
                warnings.filterwarnings(kept, _pattern(message), category, _pattern(module), line, append=True)  # pyright: ignore[reportArgumentType]
        yield


def _pattern(value: Any) -> str:
    return value if isinstance(value, str) else value.pattern if value is not None else ""


@contextmanager
def _tidy(root: Path, paths: Sequence[Path]) -> Generator[None]:
    """Take back what the files themselves do to the search path, and the modules that came of it."""
    before, modules = list(sys.path), set(sys.modules)
    folders = {str(root), *(str(path.parent) for path in paths)}
    try:
        yield
    finally:
        added = [entry for entry in sys.path if entry not in before and os.path.realpath(entry) in folders]
        sys.path[:] = [entry for entry in sys.path if entry not in added]
        for name in [name for name in tuple(sys.modules) if name not in modules]:
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and _bare_sibling(name, file, folders):
                sys.modules.pop(name, None)


def _bare_sibling(name: str, file: str, folders: set[str]) -> bool:
    relative = name.replace(".", os.sep)
    endings = (f"{os.sep}{relative}.py", f"{os.sep}{relative}{os.sep}__init__.py")
    real = os.path.realpath(file)
    return any(real == f"{folder}{ending}" for folder in folders for ending in endings)
