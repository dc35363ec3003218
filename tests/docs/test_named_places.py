"""What pages for developers name is in the code under that name: modules and their members, classes' members, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from llm_do.formats.editor_schema import project_schema
from tests.docs.test_project_json import keys_of
from tests.support.tables import each_row

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "design").glob("*.md")),
    "CONTRIBUTING.md",
    "benchmarks/README.md",
]
CODE = ("llm_do", "scripts", "benchmarks", "tests")
VALUES = {"ctx": "CallContext", "p": "cli.arguments.parameters", "RunContext": "pydantic_ai.RunContext"}
"""What stands for a value or an imported name."""

ELSEWHERE = {"files.read", "files.write", "package.json", "runs.claimed", "series.json"}
"""Tools of an example, files that aren't in the repository, a column."""

PLACEHOLDERS = re.compile(r"NAME|GROUP|SUBJECT")


def spans(page: str) -> set[str]:
    """What the page has between backticks, apart from its blocks."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", text))


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
    }


@cache
def modules() -> dict[str, list[str]]:
    """The modules that each end of a dotted name can mean."""
    found: dict[str, list[str]] = {}
    for module in sources():
        for start in range(module.count(".") + 1):
            found.setdefault(module.split(".", start)[-1], []).append(module)
    return found


@cache
def classes() -> dict[str, list[str]]:
    """The sources in which each class is defined, by its name."""
    found: dict[str, list[str]] = {}
    for source in sources().values():
        for name in re.findall(r"^ *class (\w+)", source, re.MULTILINE):
            found.setdefault(name, []).append(source)
    return found


@cache
def settings() -> frozenset[str]:
    schema = project_schema()
    return frozenset(keys_of(schema, schema))


def has(module: str, chain: list[str]) -> bool:
    """Whether a module has a name, and that the next one."""
    found: object = import_module(module)
    for name in chain:
        if not hasattr(found, name) and name not in getattr(found, "__annotations__", ()):
            return False
        found = getattr(found, name, None)
    return True


def exists(place: str) -> bool:
    """Whether a dotted name is a module, a member of one or of a class, a setting, or a name of a library."""
    first, _, rest = place.partition(".")
    if first in VALUES:
        return exists(f"{VALUES[first]}.{rest}")
    parts = place.split(".")
    for count in range(len(parts), 0, -1):
        if any(has(module, parts[count:]) for module in modules().get(".".join(parts[:count]), ())):
            return True
    if any(re.search(rf"\b{parts[1]}\b", source) for source in classes().get(first, ())):
        return True
    return place in settings() or (first not in modules() and find_spec(first) is not None and in_library(parts))


def in_library(parts: list[str]) -> bool:
    for count in range(len(parts), 0, -1):
        try:
            return has(".".join(parts[:count]), parts[count:])
        except ImportError:
            continue
    return False


def dotted(page: str) -> Iterator[str]:
    for span in spans(page) - ELSEWHERE:
        name = re.sub(r"\(.*\)$", "", span)
        if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", name) and name not in ELSEWHERE:
            yield name


def is_file(name: str) -> bool:
    return bool(re.search(r"\.(py|md|txt|json|toml|yaml)$", name)) and any(
        next((ROOT / folder).rglob(name), None) for folder in (*CODE, "docs")
    )


@each_row("page", PAGES)
def test_every_dotted_name_on_a_page_for_developers_exists(page: str) -> None:
    missing = sorted(name for name in dotted(page) if not ((ROOT / name).exists() or is_file(name) or exists(name)))

    assert missing == [], f"{page} names what isn't in the code, or isn't there any more"


@each_row("page", PAGES)
def test_every_path_on_a_page_for_developers_exists(page: str) -> None:
    rooms = {path.name for path in (ROOT / "llm_do").iterdir()}
    missing: list[str] = []
    for span in spans(page):
        path = PLACEHOLDERS.sub("*", span.rstrip("/"))
        if re.fullmatch(r"[\w*-]+(/[\w.*-]+)+", path) and not path.endswith(".test.yaml"):
            first = path.partition("/")[0]
            top = ROOT if (ROOT / first).is_dir() else ROOT / "llm_do"
            if (top == ROOT or first in rooms) and next(top.glob(path), None) is None:
                missing.append(span)

    assert missing == [], f"{page} names paths that don't exist, or don't any more"


@each_row("page", PAGES)
def test_a_class_of_a_table_is_in_the_module_beside_it(page: str) -> None:
    wrong: list[str] = []
    for names, place in re.findall(
        r"^\| (`[A-Z]\w+`(?:, `[A-Z]\w+`)*) \| `([a-z_.]+)`", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
    ):
        found = tuple(f"{module}." for module in modules().get(place, ()))
        inside = [text for module, text in sources().items() if f"{module}.".startswith(found)]
        missing = [name for name in re.findall(r"\w+", names) if not any(defines(text, name) for text in inside)]
        wrong += [f"{name} in {place}" for name in missing]

    assert wrong == [], f"{page} says that they are there"


def defines(source: str, name: str) -> bool:
    return bool(re.search(rf"^(class {name}\b|{name}\b.*=)", source, re.MULTILINE))
