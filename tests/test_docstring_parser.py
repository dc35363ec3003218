"""PydanticAI's parser of docstrings is imported for the first docstring with sections; any other is plain text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st
from pydantic_ai import Tool
from pydantic_core import to_json

from llm_do._startup.stand_ins import defer_docstring_parser, plain_text

TOOLS = '''
import sys
if sys.argv[1] == "deferred":
    from llm_do._startup.stand_ins import defer_docstring_parser
    defer_docstring_parser()
from pydantic_ai import Agent, Tool
from pydantic_core import to_json

def plain(x: int) -> int:
    """Double a number.

    It may be negative (-2: -4).
    """
    return 2 * x

def with_sections(x: int) -> int:
    """Double a number.

    Args:
        x: The number.

    Returns:
        Twice the number.
    """
    return 2 * x

def bare(x: int) -> int:
    return 2 * x

def shown(function, **options):
    made = Tool(function, **options)
    return to_json([made.description, made.function_schema.json_schema]).decode()

print("griffe" in sys.modules, shown(plain), shown(bare), "griffe" in sys.modules)
print(shown(with_sections), shown(plain, docstring_format="numpy"), "griffe" in sys.modules)
'''

OF_A_PROJECT = """
from llm_do._startup.stand_ins import defer_docstring_parser
defer_docstring_parser()
from importlib import import_module
import pydantic_ai
import_module("pydantic_ai._griffe")
found = getattr(pydantic_ai, "_griffe")
print(found.__name__, found.re.__name__)
"""

LINES = st.sampled_from(
    [
        *(
            "Args:",
            "a",
            "  x: y",
            "",
            "    ",
            "\t",
            ":param x:",
            "```",
            "---",
            "Returns",
            "returns:",
            "word-two",
            "`a: b`",
        ),
        *(
            "(x):",
            "é",
            "1",
            ".",
            "* item",
            "> q",
            ">>> f(a: 1)",
            "note: more text\n    indented",
            "x\x0b\x0c\r\xa0\u2028:",
        ),
    ]
)
DOCSTRINGS = st.one_of(st.lists(LINES, max_size=8).map("\n".join), st.text(max_size=60))


def _lines(way: str) -> list[str]:
    command = [sys.executable, "-c", TOOLS, way]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


@pytest.mark.slow
def test_tools_are_described_as_they_would_have_been() -> None:
    eager, deferred = _lines("eager"), _lines("deferred")

    assert (deferred[0].split()[0], deferred[0].split()[-1]) == ("False", "False")
    assert deferred[0].split()[1:-1] == eager[0].split()[1:-1]
    assert deferred[1:] == eager[1:]


def test_code_that_imports_the_parser_finds_it_where_an_import_puts_it() -> None:
    ended = subprocess.run([sys.executable, "-c", OF_A_PROJECT], capture_output=True, text=True, timeout=120)

    assert (ended.stdout, ended.returncode) == ("pydantic_ai._griffe re\n", 0), ended.stderr


@settings(max_examples=300)
@given(DOCSTRINGS)
def test_a_docstring_that_is_taken_for_plain_text_has_no_sections(docstring: str) -> None:
    defer_docstring_parser()  # changes nothing: the parser has been imported

    def function() -> None: ...

    function.__doc__ = docstring
    if plain := plain_text(docstring):
        assert to_json(Tool(function).description) == to_json(plain)


def test_a_docstring_with_a_section_is_not_plain_text() -> None:
    sections = [
        "Args:\n    x: A number.",
        "Args:\n        x: A number.\n    ",
        ":param x: A number.",
        "Returns\n-------\nint",
    ]

    assert [plain_text(f"Do it.\n\n{section}") for section in sections] == [""] * len(sections)
    assert plain_text("Do it.\n\n    Twice (or more: see `x: y`).\n    ") == "Do it.\n\nTwice (or more: see `x: y`)."
