"""What only 0.3's projects need is listed once in the code and once in the documentation, and each name is there."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from llm_do import compat
from tests.support.tables import each_row

PAGE = (Path(__file__).parents[2] / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
REMOVED = PAGE[PAGE.index("\n## What 1.0 removes\n") : PAGE.index("\n## Rejected\n")]
MODULES = sorted(path.stem for path in Path(compat.__file__).parent.glob("[!_]*.py"))


def paths() -> list[str]:
    """The paths of 0.3 that the package's docstring lists."""
    found: list[str] = []
    for entry in re.findall(r"^- ([^:]+):", compat.__doc__ or "", re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", entry):
            if name.startswith("llm_do."):
                found.append(name)
            elif name[0].isupper():  # another name of the module before it
                found.append(f"{found[-1].rpartition('.')[0]}.{name}")
    return found


def found_at(path: str) -> object:
    """What a path leads to: a module, or a name in one."""
    words = path.split(".")
    split = next((at for at, word in enumerate(words) if word[0].isupper()), len(words) - 1)
    value: object = import_module(".".join(words[:split]))
    for word in words[split:]:
        value = getattr(value, word)
    return value


@each_row("path", paths())
def test_each_path_of_the_list_leads_somewhere(path: str) -> None:
    assert found_at(path) is not None


def test_the_page_lists_the_same_names() -> None:
    listed = {path.rpartition(".")[2] for path in paths()}

    assert {name for name in listed if not re.search(rf"\b{name}\b", REMOVED)} == set()


@each_row("module", MODULES)
def test_the_list_has_everything_that_the_room_exports(module: str) -> None:
    exported = import_module(f"llm_do.compat.{module}").__all__

    assert [name for name in exported if not any(path.endswith(f".{name}") for path in paths())] == []


@pytest.mark.slow
def test_built_in_toolsets_import_nothing_of_the_room() -> None:
    rooms = "llm_do.toolsets.filesystem, llm_do.toolsets.shell, llm_do.runtime.runtime"
    script = f"import sys, {rooms}; print(*(name for name in sys.modules if name.startswith('llm_do.compat')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
