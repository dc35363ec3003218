"""What a terminal shows of a result: a model's Markdown drawn, data as JSON, Python's text as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_terminal import Screen

ENTRY = """
async def product(input, ctx):
    return "Area: 2*3*4 of __init__.py"

async def passed(input, ctx):
    return await ctx.call("main", input.input)

async def composed(input, ctx):
    return f"# {await ctx.call('main', input.input)}"

async def data(input, ctx):
    return {"names": ["__init__.py", "**b**"], "note": "long enough for more than one line of eighty columns"}
"""
ANSWERS = {
    "markdown": '- text: "**bold** <b> and `code`"',
    "json": """- text: '{"file": "__init__.py", "area": "2*3*4"}'""",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("entry", "answer", "shown"),
    [
        ("main", "markdown", ["bold <b> and code"]),
        ("main", "json", ['{"file": "__init__.py", "area": "2*3*4"}']),
        ("product", "markdown", ["Area: 2*3*4 of __init__.py"]),
        ("passed", "markdown", ["bold <b> and code"]),
        ("composed", "markdown", ["# **bold** <b> and `code`"]),
        ("data", "markdown", ["{", '  "names": [', '    "__init__.py",', '    "**b**"', "  ],"]),
    ],
)
def test_a_result_is_shown_as_what_it_is(
    project: Callable[..., Path], entry: str, answer: str, shown: list[str]
) -> None:
    kind = "agent" if entry == "main" else "function"
    name = "main" if entry == "main" else f"tools.py:{entry}"
    root = project(
        ANSWERS[answer],
        manifest=f'''{{"version": 1, "entry": {{"{kind}": "{name}"}}, "agent_files": ["*.agent"],
            "python_files": ["tools.py"], "model": "script:answers.yaml"}}''',
        **{"tools.py": ENTRY, "agent": "---\nname: main\n---\nx"},
    )
    screen = Screen(["run", ".", "hello", "--no-record"], root)
    try:
        assert screen.end() == 0
        lines = [line for line in screen.lines if not line.startswith(("✓", "  →", "completed:"))]
        assert lines[: len(shown)] == shown
    finally:
        screen.close()
