"""The house is as docs/design/architecture.md draws it: drawing, tables, contract and code agree.

Imports that only type checkers see count, and so do those inside functions.
"""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

import grimp
import pytest

from llm_do._extensions import ExtensionPoint
from llm_do.assembly import FILLERS
from scripts.rooms import rooms

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
HOUSE = PAGE[PAGE.index("\n## The house\n") : PAGE.index("\n## Scopes\n")]


def drawn() -> list[list[str]]:
    """The drawing's rows of rooms, from the top."""
    picture = HOUSE.split("```")[1].splitlines()
    return [[room.strip() for room in line.strip("│").split("│")] for line in picture if line.startswith("│")]


def listed() -> dict[str, list[str]]:
    """Return the rooms of the table with their imports, in order."""
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \|$", HOUSE, re.MULTILINE)
    return {room: imports.split(", ") for room, imports in rows if room != "room"}


@cache
def exceptions() -> list[tuple[str, str]]:
    """The imports that lead up, as the page lists them."""
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \| .+\. \|$", HOUSE, re.MULTILINE)
    return [(f"llm_do.{module}".removesuffix(".llm_do"), f"llm_do.{other}") for module, other in rows]


def points() -> dict[str, tuple[str, str]]:
    """Return each extension point of the page: its declaration and what fills it."""
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \| `([\w.]+)` \|$", HOUSE, re.MULTILINE)
    return {name: (declared, filled) for name, declared, filled in rows}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("llm_do", exclude_type_checking_imports=False, cache_dir=None)


@cache
def contract() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


def lines(section: str, option: str) -> list[str]:
    return [line for line in contract().get(section, option, fallback="").split("\n") if line]


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@cache
def imported() -> dict[str, set[str]]:
    """Each room, and the rooms that its modules import, apart from the exceptions."""
    found: dict[str, set[str]] = {}
    for module in graph().modules:
        others = graph().find_modules_directly_imported_by(module)
        others = {room_of(other) for other in others if (module, other) not in exceptions()}
        found.setdefault(room_of(module), set()).update(others - {room_of(module)})
    return found


def circles() -> list[set[str]]:
    """The sets of modules that import each other, directly or not: Tarjan's strongly connected components."""
    found: list[set[str]] = []
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        path.append(module)
        for other in graph().find_modules_directly_imported_by(module):
            if other not in numbers:
                visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            start = path.index(module)
            found.append(set(path[start:]))
            del path[start:]

    for module in sorted(graph().modules):
        if module not in numbers:
            visit(module)
    return found


def private(room: str) -> bool:
    return room.startswith("_") or room == ""


def test_every_room_has_its_place_in_the_drawing() -> None:
    assert sorted(room for row in drawn() for room in row) == sorted(room for room in imported() if not private(room))


def test_only_the_exceptions_that_the_page_lists_lead_upwards_in_the_drawing() -> None:
    row_of = {room: number for number, row in enumerate(drawn()) for room in row}
    upwards = {
        (module, other)
        for module in graph().modules
        for other in graph().find_modules_directly_imported_by(module)
        if room_of(module) != room_of(other) and not private(room_of(module)) and not private(room_of(other))
        if row_of[room_of(other)] <= row_of[room_of(module)]
    }

    assert upwards <= set(exceptions())


def test_the_contract_counts_every_import_and_excepts_what_the_page_lists() -> None:
    layered = [section for section in contract().sections() if contract().get(section, "type", fallback="") == "layers"]
    excepted = [tuple(line.split(" -> ")) for section in layered for line in lines(section, "ignore_imports")]

    assert contract()["importlinter"]["exclude_type_checking_imports"] == "False"
    assert sorted(excepted) == sorted(exceptions())


def test_no_text_names_a_module_of_a_room_that_is_not_below() -> None:
    """An import path in a text is an import that neither the contract nor a type checker sees."""
    row_of = {room: number for number, row in enumerate(drawn()) for room in row}
    named: set[tuple[str, str]] = set()
    for path in (ROOT / "llm_do").rglob("*.py"):
        source = path.read_text("utf-8")
        if not re.search(r"[\"']llm_do\.\w", source):  # then it needn't be parsed
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        nodes = ast.walk(ast.parse(source))
        texts = {str(node.value).partition(":")[0] for node in nodes if isinstance(node, ast.Constant)}
        named |= {(module, text) for text in texts & graph().modules if room_of(text) not in ("", room_of(module))}
    upwards = {
        (module, other)
        for module, other in named
        if not private(room_of(module)) and row_of[room_of(other)] <= row_of[room_of(module)]
    }

    assert upwards <= set(exceptions())


def test_no_folder_has_more_modules_than_can_be_taken_in_at_a_glance() -> None:
    package = ROOT / "llm_do"
    counts = {
        folder.relative_to(package).as_posix(): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in package.rglob("*")
        if folder.is_dir()
    }

    assert {folder: count for folder, count in counts.items() if count > 15} == {}


def test_no_file_has_more_lines_than_can_be_read_in_one_sitting() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in (ROOT / "llm_do").rglob("*.py")
    }

    assert {path: length for path, length in lengths.items() if length > 400} == {}


def test_no_large_circle_of_modules_is_left() -> None:
    """What leads in a circle can be understood only together."""
    assert max(map(len, circles())) < 12


def test_every_extension_point_is_filled_by_what_the_page_says() -> None:
    filled: dict[str, tuple[str, str]] = {}
    for name, place in points().items():
        found = vars(import_module(f"llm_do.{place[0]}")).values()
        (point,) = (each for each in found if isinstance(each, ExtensionPoint) and each.name == name)
        value = cast("Callable[..., object]", point.get())
        filled[name] = (place[0], f"{value.__module__}.{value.__qualname__}".removeprefix("llm_do."))

    assert filled == points()
    assert filled.keys() == FILLERS.keys()


def test_the_table_lists_the_imports_there_are() -> None:
    downwards = [room for row in drawn() for room in row]
    real = {
        room: [other for other in downwards if other in imported()[room] and other != "errors"] for room in downwards
    }

    assert listed() == {room: others for room, others in real.items() if others}


def test_the_contract_has_the_rows_of_the_drawing() -> None:
    layers = lines("importlinter:contract:house", "layers")
    rows = [[room for room in re.split(r"[ |]+", layer) if not private(room)] for layer in layers]

    assert [row for row in rows if row] == drawn()


def test_every_room_is_described() -> None:
    described = set(re.findall(r"\*\*(\w+)\*\*", HOUSE))

    assert [room for row in drawn() for room in row if room not in described] == []


@pytest.mark.slow
def test_every_room_says_what_it_is_for_and_a_large_one_what_takes_its_lines() -> None:
    found = {room.name: room for room in rooms()}
    large = {name for name, room in found.items() if room.lines > 3000}
    sizes = PAGE[PAGE.index("\n## How large the rooms are\n") :].partition("\n## ")[2].partition("\n## ")[0]

    assert list(found) == [room for row in drawn() for room in row]
    assert [name for name, room in found.items() if not room.purpose.endswith(".")] == []
    assert large <= set(re.findall(r"^\| (\w+) \| .+ \|$", sizes, re.MULTILINE)) - {"room"} <= found.keys()


def test_importing_the_package_imports_no_room() -> None:
    script = "import llm_do, sys; print(*sorted(name for name in sys.modules if name.startswith('llm_do')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["llm_do", "llm_do._extensions", "llm_do._startup", "llm_do._startup.lazy"]
