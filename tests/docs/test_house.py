"""The house is as docs/design/architecture.md draws it: drawing, table of imports, contract and code agree."""

from __future__ import annotations

import configparser
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
HOUSE = PAGE[PAGE.index("\n## The house\n") : PAGE.index("\n## Scopes\n")]


def drawn() -> list[list[str]]:
    """The drawing's rows of rooms, from the top."""
    picture = HOUSE.split("```")[1].splitlines()
    return [[room.strip() for room in line.strip("│").split("│")] for line in picture if line.startswith("│")]


def listed() -> dict[str, list[str]]:
    """The table's rooms and what each imports, in the table's order."""
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \|$", HOUSE, re.MULTILINE)
    return {room: imports.split(", ") for room, imports in rows if room != "room"}


@cache
def graph() -> grimp.ImportGraph:
    """What the code imports when it runs, without what only type checkers see."""
    return grimp.build_graph("llm_do", exclude_type_checking_imports=True, cache_dir=None)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imported() -> dict[str, set[str]]:
    """Each room, and the rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for module in graph().modules:
        others = {room_of(other) for other in graph().find_modules_directly_imported_by(module)}
        found.setdefault(room_of(module), set()).update(others - {room_of(module)})
    found["project"].discard("linker")  # `Project.load` links: the one import that leads up
    return found


def private(room: str) -> bool:
    return room.startswith("_") or room == ""


def test_every_room_has_its_place_in_the_drawing() -> None:
    assert sorted(room for row in drawn() for room in row) == sorted(room for room in imported() if not private(room))


def test_every_import_leads_downwards_in_the_drawing() -> None:
    row_of = {room: number for number, row in enumerate(drawn()) for room in row}
    wrong = [
        (room, other)
        for room, others in imported().items()
        for other in others
        if not private(room) and not private(other) and row_of[other] <= row_of[room]
    ]

    assert wrong == []


def test_the_table_lists_the_imports_there_are() -> None:
    downwards = [room for row in drawn() for room in row]
    real = {
        room: [other for other in downwards if other in imported()[room] and other != "errors"] for room in downwards
    }

    assert listed() == {room: others for room, others in real.items() if others}


def test_the_contract_has_the_rows_of_the_drawing() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contract["importlinter:contract:house"]["layers"].split("\n")
    rows = [[room for room in re.split(r"[ |]+", layer) if not private(room)] for layer in layers if layer]

    assert [row for row in rows if row] == drawn()


def test_every_room_is_described() -> None:
    described = set(re.findall(r"\*\*(\w+)\*\*", HOUSE))

    assert [room for row in drawn() for room in row if room not in described] == []


def test_importing_the_package_imports_no_room() -> None:
    assert imported()[""] == {"_lazy"}


def test_every_place_that_the_page_names_is_in_the_code() -> None:
    modules: dict[str, list[str]] = {}
    for module in graph().modules:
        for start in range(1, module.count(".") + 1):
            modules.setdefault(module.split(".", start)[-1], []).append(module)
    wrong: list[str] = []
    named = 0
    for place in set(re.findall(r"`((?:[a-z_]+\.)+\w+)`", PAGE)):
        module, _, name = place.rpartition(".")
        if module in modules and place not in modules:
            named += 1
            if not any(hasattr(import_module(each), name) for each in modules[module]):
                wrong.append(place)

    assert wrong == []
    assert named > 10
