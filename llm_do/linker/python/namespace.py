"""A namespace of its own for a project's Python files: only there does `import schemas` find the project's file.

Modules are kept under names that can't be written in an import statement (`_llm_do_project_3.schemas`), found by one
finder on `sys.meta_path` that knows only such names. What turns `import schemas` into that name is an `__import__` that
only the project's own modules see, in their `__builtins__`; so it holds for imports inside functions that run later
too, no search path is touched, and other code that imports a module of the same name gets its own.

`llm_do.linker.python.python_files` loads the files and reports those that fail.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from llm_do._bounded_files import read_bounded
from llm_do._startup.code_access import must_be_open
from llm_do._startup.compiled_texts import project_code
from llm_do.linker.python.plain_tools import allow_plain_tools
from llm_do.linker.python.positions import Facts, read_facts

__all__ = ["Hides", "ModuleSpace", "read_source", "show_all"]

_PREFIX = "_llm_do_project_"
_numbers = itertools.count(1)
_spaces: dict[str, ModuleSpace] = {}


class Hides(Protocol):
    """Says which modules aren't found, though their files are there."""

    def __call__(self, file: Path, *, listed: bool) -> bool:
        """Whether the module of a file isn't found; `listed` if the manifest lists it."""
        ...


def show_all(file: Path, *, listed: bool) -> bool:  # noqa: ARG001
    """Hide nothing."""
    return False


class ModuleSpace:
    """One project's modules.

    Args:
        root: The project's folder, absolute.
        listed: The listed Python files, absolute and below `root`; they come before other modules of their name.
        hides: Which modules aren't found, though their files are there.
    """

    def __init__(self, root: Path, listed: Iterable[Path], hides: Hides = show_all) -> None:
        self.name = f"{_PREFIX}{next(_numbers)}"
        self.root = root
        self._hides = hides
        self.facts: dict[str, Facts] = {}
        self.failures: dict[str, BaseException] = {}
        self.linking = True
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._listed = {self.module_name(path): path for path in listed}
        self._folders = {name.rpartition(".")[0] for name in self._listed}
        self.builtins = {**vars(builtins), "__import__": self._import}
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        _spaces[self.name] = self

    def module_name(self, path: Path) -> str:
        """The internal name of a file below the root."""
        parts = list(path.relative_to(self.root).parts)
        stem = parts.pop().removesuffix(".py")
        if stem == "__init__" and parts:
            stem = parts.pop()
        elif os.path.isfile(path.parent / stem / "__init__.py"):
            stem += ".py"
        return ".".join([self.name, *(_escape(part) for part in (*parts, stem))])

    def public(self, text: str) -> str:
        """A text with the internal names in it as the project's author knows them."""
        return text.replace(f"{self.name}.", "").replace(self.name, "the project")

    def settle(self) -> None:
        """End linking: a file that is imported later and fails is tried again by the next import, as everywhere."""
        self.linking = False
        self.facts.clear()
        self.failures.clear()

    def forget(self) -> None:
        """Drop every module, when the project didn't link or is no longer used.

        The collector may call this in any thread, while others import: only a copy of `sys.modules` is gone through.
        """
        _spaces.pop(self.name, None)
        below = f"{self.name}."
        for name in [self.name, *(name for name in tuple(sys.modules) if below in name and name.startswith(below))]:
            sys.modules.pop(name, None)

    def find(self, name: str) -> ModuleSpec | None:
        """The spec of an internal name: a package, a module, or a plain folder."""
        if name == self.name:
            return _folder_spec(name, self.root)
        parts = [_unescape(part) for part in name.split(".")[1:]]
        path = self.root.joinpath(*parts)
        if name in self._listed and not self._hides(self._listed[name], listed=True):
            file = self._listed[name]
            folder = path if os.path.isdir(path) else None
            return self._spec(name, file, folder)
        package = path / "__init__.py"
        if os.path.isfile(package) and not self._hides(package, listed=False):
            return self._spec(name, package, path)
        file = path.with_name(f"{path.name}.py")
        if os.path.isfile(file) and not self._hides(file, listed=False):
            return self._spec(name, file, path if os.path.isdir(path) else None)
        return _folder_spec(name, path) if os.path.isdir(path) and not self._hides(path, listed=True) else None

    def hides(self, name: str) -> bool:
        """Whether the file of an internal name is there, and isn't to be found."""
        path = self.root.joinpath(*(_unescape(part) for part in name.split(".")[1:]))
        files = [file for file in (path / "__init__.py", path.with_name(f"{path.name}.py")) if os.path.isfile(file)]
        return any(self._hides(file, listed=name in self._listed) for file in files)

    def find_compiled(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """The spec of a module without a source, such as an extension module, in the folder of its package.

        Raises:
            ModuleNotFoundError: It is hidden.
        """
        found = PathFinder.find_spec(name, path)
        if found is None or not found.has_location or found.origin is None:
            return found
        if self._hides(Path(found.origin), listed=False):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found

    def _spec(self, name: str, file: Path, folder: Path | None) -> ModuleSpec:
        spec = ModuleSpec(name, _ProjectLoader(self, file), origin=str(file), is_package=folder is not None)
        spec.has_location = True
        if folder is not None:
            spec.submodule_search_locations = [str(folder)]
        return spec

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` as the project's modules see it."""
        _spaces.setdefault(self.name, self)
        importer = str((globals or {}).get("__name__") or "")
        base = self._resolve(importer, name.partition(".")[0]) if level == 0 else None
        try:
            if base is None:
                module = builtins.__import__(name, globals, locals, fromlist or (), level)
            else:
                module = builtins.__import__(f"{base}.{name}", globals, locals, fromlist or (), 0)
                if not fromlist:
                    module = sys.modules[f"{base}.{name.partition('.')[0]}"]
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(f"{self.name}."):
                raise
            public = self.public(error.name)
            raise ModuleNotFoundError(f"No module named {public!r}", name=public) from None
        if base is None and level == 0 and name.partition(".")[0] == "pydantic_ai":
            allow_plain_tools(lambda module: module.startswith(_PREFIX))
        return module

    def _resolve(self, importer: str, top: str) -> str | None:
        """The package that `top` is found in when `importer` imports it, None when it isn't the project's."""
        key = (importer, top)
        if key not in self._resolved:
            self._resolved[key] = next((base for base in self._bases(importer) if self._has(base, top, importer)), None)
        return self._resolved[key]

    def _bases(self, importer: str) -> list[str]:
        """Where to look: the importing file's own folder, then the root; the other way round inside a package."""
        own, _, _ = importer.rpartition(".")
        if not own.startswith(f"{self.name}."):
            return [self.name]
        package = self.root.joinpath(*(_unescape(part) for part in own.split(".")[1:])) / "__init__.py"
        return [self.name, own] if os.path.isfile(package) else [own, self.name]

    def _has(self, base: str, top: str, importer: str) -> bool:
        name = f"{base}.{_escape(top)}"
        spec = self.find(name)
        if spec is None or (name == importer and spec.submodule_search_locations is None):
            return False  # a file named like a library that imports that library means the library
        if name in self._listed or any(f"{folder}.".startswith(f"{name}.") for folder in self._folders):
            return True
        if top in sys.stdlib_module_names:
            return False
        return spec.loader is not None or not _exists_outside(top)


class _Finder(MetaPathFinder):
    """Finds internal names only."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        space = _spaces.get(fullname.partition(".")[0])
        if space is None:
            return None
        spec = space.find(fullname)
        if spec is None and space.hides(fullname):
            # Otherwise the next finder would find it, in the folder of its package.
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec or space.find_compiled(fullname, path)


class _ProjectLoader(Loader):
    """Runs one file with the project's builtins; compiles from source, so that nothing stale or new lies around."""

    def __init__(self, space: ModuleSpace, file: Path) -> None:
        self.space = space
        self.file = file

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        must_be_open(self.space.root)
        failure = self.space.failures.get(str(self.file))
        if failure is not None:
            raise failure
        try:
            source = read_source(self.file)
            tree = ast.parse(source, str(self.file))
            if self.space.linking:
                self.space.facts[str(self.file)] = read_facts(tree, source.encode())
            code = compile(tree, str(self.file), "exec", dont_inherit=True)
            vars(module)["__builtins__"] = self.space.builtins
            with project_code():
                exec(code, vars(module))  # noqa: S102 - this is what importing a file is
        except BaseException as error:
            if self.space.linking:
                self.space.failures[str(self.file)] = error
            raise

    def get_source(self, fullname: str) -> str:
        """The file's text, for tracebacks and `inspect`."""
        return read_source(self.file)


def read_source(file: Path) -> str:
    """Return a file as text, as Python reads it; from text, syntax errors have columns in characters.

    Raises:
        OSError: It can't be read.
        SyntaxError: Its bytes aren't text.
    """
    data = read_bounded(file)
    try:
        return importlib.util.decode_source(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not valid {error.encoding}"
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode(errors="replace")
        raise SyntaxError(message, (str(file), line, len(before) + 1, None)) from error
    except SyntaxError as error:
        error.filename = str(file)
        raise


def _folder_spec(name: str, folder: Path) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    return spec


def _exists_outside(top: str) -> bool:
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return top in sys.modules
    return spec is not None and spec.origin is not None


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(".", "%2E")


def _unescape(part: str) -> str:
    return part.replace("%2E", ".").replace("%25", "%")
