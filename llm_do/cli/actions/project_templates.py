"""The projects that `llm-do init` writes: each template is a small project that runs and has a test."""

from __future__ import annotations

from collections.abc import Mapping

from llm_do._startup.frozen import frozen

__all__ = ["IGNORED", "TEMPLATES", "WORKFLOW", "Template"]

IGNORED = """\
# What runs leave behind, keys of providers, and what Python compiles.
.llm-do/
.env
__pycache__/
"""
"""The `.gitignore` of a new project."""

WORKFLOW = """\
# Checks and tests the project; no model is asked, so no key is needed.
name: agents
on: [push, pull_request]
permissions: {contents: read}
jobs:
  agents:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {submodules: true}
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install './llm-do[google,mcp]'  # a checkout of llm-do in the repository, such as a submodule
      - run: llm-do check --strict --format github --trust
      - run: llm-do test
"""
"""The workflow that checks a new project on GitHub."""


@frozen
class Template:
    """One kind of project.

    Args:
        about: What it shows, in a line.
        files: Path to text; in project.json, NAME is replaced by the project's name as JSON, and MODEL by a line.
    """

    about: str
    files: Mapping[str, str]


_PROJECT = """\
{
  "$schema": ".schema/project.schema.json",
  "version": 1,
  "name": NAME,
MODEL"""
"""The beginning of every template's project.json."""

_TEST = '''\
"""Runs the project with scripted answers: no network, and always the same result."""

from __future__ import annotations

from pathlib import Path

from llm_do.testing import play

HERE = Path(__file__).parent


'''
"""The beginning of every template's test."""

_CASES = """\
# yaml-language-server: $schema=../.schema/tests.schema.json
# What `llm-do test` runs. The model is a script here; without it the tests use recordings of the project's own model.
defaults: { model: "script:tests/answers.yaml" }
"""
"""The beginning of every template's test file."""

_AGENT = Template(
    "an agent that calls a function as its tool",
    {
        "project.json": _PROJECT
        + """\
  "entry": { "agent": "main", "args": { "input": "What is 17 times 23?" } },
  "agent_files": ["*.agent"],
  "python_files": ["tools.py"],
  "approvals": { "allow": ["multiply"] }
}
""",
        "main.agent": """\
---
name: main
description: Answers questions, and multiplies with a tool.
tools: [multiply]
# Remove a # to give it more; .schema/agent.schema.json has the other keys.
# toolsets: [http, memory, filesystem_project]  # web pages, what it should remember, the project's files
# skills: [skills/*]  # folders with a SKILL.md: instructions that it loads when it needs them
---
You answer in one sentence. Multiply with the tool `multiply`, never in your head.
""",
        "tools.py": '''\
"""The functions that agents may call, by name."""

from __future__ import annotations


def multiply(a: int, b: int) -> int:
    """Multiply two whole numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a * b


TOOLS = [multiply]
''',
        "tests/project.test.yaml": _CASES
        + """\
tests:
  - name: multiplies with its tool
    input: What is 17 times 23?
    expect:
      output: { equals: 17 times 23 is 391. }
      tools: ["multiply(a=17, b=23)"]
""",
        "tests/test_project.py": _TEST
        + """\
def test_the_agent_multiplies_with_its_tool() -> None:
    played = play(HERE.parent, "What is 17 times 23?", answers=HERE / "answers.yaml")

    assert played.call("multiply").args == {"a": 17, "b": 23}
    assert played.questions == []
    assert played.output == "17 times 23 is 391."
""",
        "tests/answers.yaml": """\
# The answers of the model script:PATH, turn by turn. {tool} is the last result of a tool.
- tools:
    - name: multiply
      args: { a: 17, b: 23 }
- text: "17 times 23 is {tool}."
""",
    },
)

_FUNCTION = Template(
    "Python code that calls agents where judgement is needed",
    {
        "project.json": _PROJECT
        + """\
  "entry": { "function": "main.py:main", "args": { "input": "great service\\nnever again\\nfine, I guess" } },
  "agent_files": ["*.agent"],
  "python_files": ["main.py"]
}
""",
        "judge.agent": """\
---
name: judge
description: Says whether a comment is good, bad or neither.
---
Answer with one word: good, bad or neither. Say which of them the person's comment is.
""",
        "main.py": '''\
"""The entry: ordinary Python, which calls agents by name."""

from __future__ import annotations

import asyncio


async def main(input, ctx):
    """Count the moods of comments, one per line."""
    comments = [line for line in input.input.splitlines() if line.strip()]
    moods = await asyncio.gather(*(ctx.call("judge", comment) for comment in comments))
    counted = [str(mood).strip(" .").lower() for mood in moods]
    return {mood: counted.count(mood) for mood in ("good", "bad", "neither")}
''',
        "tests/project.test.yaml": _CASES
        + """\
tests:
  - name: counts each comment
    input: "great service\\nnever again"
    expect: { output: { json: { $.good: 2, $.bad: 0 } } }
""",
        "tests/test_project.py": _TEST
        + """\
def test_moods_are_counted() -> None:
    played = play(HERE.parent, "great service\\nnever again", answers=HERE / "answers.yaml")

    assert played.output["good"] + played.output["bad"] + played.output["neither"] == 2
    assert len(played.result.calls) == 2
""",
        "tests/answers.yaml": """\
# The answer of the model script:PATH each time it is called.
- text: good
""",
    },
)

_TOOLKIT = Template(
    "tools that share a state, each open only when it is its turn",
    {
        "project.json": _PROJECT
        + """\
  "entry": { "agent": "clerk", "args": { "input": "The blue room, please. The key is: open sesame" } },
  "agent_files": ["*.agent"],
  "python_files": ["desk.py"],
  "approvals": { "allow": ["connect", "reserve"] }
}
""",
        "clerk.agent": """\
---
name: clerk
description: Reserves rooms.
toolsets: [desk]
---
Connect with the key that the person gives, then reserve the room they ask for. Answer in one sentence.
""",
        "desk.py": '''\
"""A toolkit: `reserve` can be called once `connect` has succeeded, for a room that is free."""

from __future__ import annotations

from llm_do import DynamicStr, Toolkit, Update

desk = Toolkit("desk", context={"rooms": []})


@desk.tool(enables_states=["connected"])
def connect(ctx, key: str):
    """Connect to the reservation system."""
    if key != "open sesame":
        return Update.failed("wrong key")
    return "connected", {"rooms": ["blue", "green"]}


@desk.tool(required_states=["connected"], required_context=["rooms"])
def reserve(ctx, room: DynamicStr["rooms"]):
    """Reserve a room."""
    left = [each for each in ctx.state["rooms"] if each != room]
    return Update(f"{room} is reserved", rooms=left)


TOOLSETS = [desk]
''',
        "tests/project.test.yaml": _CASES
        + """\
tests:
  - name: reserves a room once it is connected
    expect:
      output: { contains: The blue room is yours. }
      tools: [connect, "reserve(room=blue)"]
""",
        "tests/test_project.py": _TEST
        + """\
def test_a_room_is_reserved_after_connecting() -> None:
    played = play(HERE.parent, answers=HERE / "answers.yaml")

    assert [call.status for call in played.calls] == ["refused", "success", "success"]
    assert played.output == "The blue room is yours."
""",
        "tests/answers.yaml": """\
# The answers of the model script:PATH, turn by turn. It forgets to connect at first.
- tools: [{ name: reserve, args: { room: blue } }]
- tools: [{ name: connect, args: { key: open sesame } }]
- tools: [{ name: reserve, args: { room: blue } }]
- text: The blue room is yours.
""",
    },
)

_FLOW = Template(
    "several agents, one after the other and side by side",
    {
        "project.json": _PROJECT
        + """\
  "entry": { "flow": "article", "args": { "input": "A goose crossed the market." } },
  "agent_files": ["*.agent"],
  "flows": { "article": { "mode": "workflow", "flow": "(facts | style) >> writer" } }
}
""",
        "facts.agent": """\
---
name: facts
description: Checks facts.
---
Say in one sentence what should be checked in this text.
""",
        "style.agent": """\
---
name: style
description: Advises on style.
---
Say in one sentence how a news item about this should sound.
""",
        "writer.agent": """\
---
name: writer
description: Writes the item.
---
Write a news item of two sentences from these notes.
""",
        "tests/project.test.yaml": _CASES
        + """\
tests:
  - name: corrects what the notes say
    expect: { output: { contains: duck, lacks: goose }, at_most: { steps: 3 } }
""",
        "tests/test_project.py": _TEST
        + """\
def test_the_writer_gets_both_notes() -> None:
    played = play(HERE.parent, answers=HERE / "answers.yaml")

    assert played.output == "A duck crossed the market."
    assert {call.path.rpartition("/")[2] for call in played.result.calls} == {"facts", "style", "writer"}
""",
        "tests/answers.yaml": """\
# The answers of the model script:PATH, agent by agent.
agents:
  facts: [{ text: It was a duck. }]
  style: [{ text: Keep it short. }]
  writer: [{ expect: It was a duck., text: A duck crossed the market. }]
""",
    },
)

TEMPLATES: Mapping[str, Template] = {"agent": _AGENT, "function": _FUNCTION, "toolkit": _TOOLKIT, "flow": _FLOW}
"""Name to template; the first is the default."""
