"""What a terminal shows of a result: a model's Markdown drawn, data as JSON, Python's text as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_many
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


def test_lists_have_a_header_for_a_person_and_none_for_a_program(project: Callable[..., Path]) -> None:
    root = project("- text: done")
    run_many({"run": (["run", "hello", "--thread", "t"], root, b"")})
    lists = {"runs": ["runs", "list"], "threads": ["threads", "list"]}

    piped = run_many({name: (words, root, b"") for name, words in lists.items()})
    shown: dict[str, list[str]] = {}
    headers: dict[str, list[str]] = {}
    for name, words in lists.items():
        screen = Screen(words, root, columns=150)
        try:
            assert screen.end() == 0
            shown[name] = [line.split()[0] for line in screen.lines if line.strip()]
            headers[name] = screen.lines[0].split()
        finally:
            screen.close()

    assert shown["threads"] == ["THREAD", "t"]
    assert headers["threads"] == ["THREAD", "LENGTH", "TOKENS", "COST", "CHANGED"]
    assert shown["runs"] == ["RUN", piped["runs"].out.split()[0]]
    assert piped["threads"].out.startswith("t  ")
