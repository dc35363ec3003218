"""`NewCode`: what a link leaves out: code that a model's tool made and no one has agreed to, and folders of data.

What is left out counts as absent, so that a project stays as it was before the tool ran.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm_do.diagnostics.codes.environment import new_code
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.files.code_files import KEY_FILE, CodeFiles, is_python
from llm_do.files.unreviewed import is_below, unreviewed_files

__all__ = ["NewCode", "read_new_code"]

_LOADED_LATER = ("conftest.py", "sitecustomize.py", "usercustomize.py", KEY_FILE)


@dataclass(slots=True)
class NewCode:
    """What is left out of one project.

    Args:
        root: The project's folder.
        unreviewed: Code that no one has agreed to, by its path below the root, with what made it.
        data_folders: Folders whose Python files are data.
    """

    root: Path
    unreviewed: Mapping[str, str] = field(default_factory=dict[str, str])
    data_folders: Sequence[str] = ()
    left_out: set[str] = field(default_factory=set[str])

    def leaves_out(self, file: Path) -> bool:
        """Whether a file or folder is left out because no one has agreed to it; it is remembered for the report."""
        path = os.path.relpath(file, self.root).replace(os.sep, "/")
        if not self.unreviewed or not is_below(path, self.unreviewed):
            return False
        self.left_out.add(path)
        return True

    def hides_module(self, file: Path, *, listed: bool) -> bool:
        """Whether a module isn't found: no one has agreed to it, or it is data and the manifest doesn't list it.

        So is one that doesn't count as code, and that no one would be asked about: a shared library.
        """
        if self.leaves_out(file) or not (listed or is_python(file.name)):
            return True
        if listed or not self.data_folders:
            return False
        path = os.path.relpath(file, self.root).replace(os.sep, "/")
        return CodeFiles(self.root, data_folders=self.data_folders).is_data(path)

    def diagnostics(self) -> list[Diagnostic]:
        """Return a warning for each file that was left out, or that is loaded by others than the linker."""
        special = {path for path in self.unreviewed if os.path.basename(path) in _LOADED_LATER}  # noqa: PTH119
        special |= {path for path in self.unreviewed if path.endswith(".pth")}
        found = [(path, *self.entry(path)) for path in sorted(self.left_out | special)]
        return [new_code(path, maker, listed).at(Location(path)) for path, listed, maker in found]

    def entry(self, path: str) -> tuple[str, str]:
        """Return the entry of the list that a path is left out by, and what made it."""
        return next(entry for entry in self.unreviewed.items() if is_below(path, [entry[0]]))


def read_new_code(root: Path) -> NewCode:
    """Read which code no one has agreed to, in a project's folder and those above it."""
    found: dict[str, str] = {}
    for folder in (root, *root.parents):
        prefix = root.relative_to(folder).as_posix()
        for path, maker in unreviewed_files(folder).items():
            inside = path if folder == root else path.removeprefix(f"{prefix}/")
            if folder == root or path.startswith(f"{prefix}/"):
                found[inside] = maker
            elif is_below(prefix, [path]):
                found |= dict.fromkeys((each.name for each in root.iterdir()), maker)
    return NewCode(root, {path: maker for path, maker in found.items() if os.path.lexists(root / path)})
