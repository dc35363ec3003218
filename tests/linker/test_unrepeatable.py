"""Calls that aren't the same twice, in code that runs again: which are found, where, and what is left alone."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path

from llm_do import Project
from llm_do.linker.python.unrepeatable import find_unrepeatable
from tests.support.tables import each_row

IN_MAIN = [
    # clocks, under every name
    ("import time", "time.time()", "clock"),
    ("import time", "time.time_ns()", "clock"),
    ("import time", "time.monotonic()", "clock"),
    ("import time as t", "t.time()", "clock"),
    ("from time import time", "time()", "clock"),
    ("from time import time as now", "now()", "clock"),
    ("import time", "time.localtime()", "clock"),
    ("import time", "time.localtime(7)", None),
    ("import time", "time.strftime('%Y')", "clock"),
    ("import time", "time.strftime('%Y', when)", None),
    ("import time", "time.perf_counter()", None),
    ("import time", "time.sleep(1)", None),
    ("import datetime", "datetime.datetime.now()", "clock"),
    ("import datetime as dt", "dt.datetime.now(dt.UTC)", "clock"),
    ("import datetime as dt", "dt.date.today()", "clock"),
    ("from datetime import datetime", "datetime.utcnow().isoformat()", "clock"),
    ("from datetime import datetime as d, timedelta", "d.now() - timedelta(1)", "clock"),
    ("from datetime import datetime", "datetime(2031, 5, 2)", None),
    ("from datetime import datetime", "datetime.fromisoformat(input.input)", None),
    ("import time\nnow = time.time", "now()", "clock"),
    ("import asyncio", "asyncio.get_running_loop().time()", "clock"),
    # random values
    ("import random", "random.random()", "random"),
    ("import random", "random.choice([1, 2])", "random"),
    ("from random import shuffle", "shuffle(items)", "random"),
    ("import random", "random.Random(7).random()", None),
    ("import random", "random.Random().random()", "random"),
    ("import random\nrandom.seed(7)", "random.random()", None),
    ("import random\nRNG = random.Random(7)", "RNG.random()", None),
    ("import secrets", "secrets.token_hex()", "random"),
    ("import secrets", "secrets.compare_digest(a, b)", None),
    ("import uuid", "uuid.uuid4().hex", "random"),
    ("from uuid import uuid4", "str(uuid4())", "random"),
    ("import uuid", "uuid.uuid5(uuid.NAMESPACE_URL, input.input)", None),
    ("import os", "os.urandom(8)", "random"),
    ("import numpy as np", "np.random.rand(3)", "random"),
    ("import numpy as np", "np.random.default_rng(3).normal()", None),
    # requests
    ("import requests", "requests.get(url).json()", "request"),
    ("import requests", "requests.Session().post(url)", "request"),
    ("from requests import get", "get(url)", "request"),
    ("import httpx", "httpx.Client().get(url)", "request"),
    ("import httpx", "httpx.URL(url)", None),
    ("import urllib.request", "urllib.request.urlopen(url)", "request"),
    ("from urllib.request import urlopen as fetch", "fetch(url)", "request"),
    ("from urllib.parse import quote", "quote(url)", None),
    ("import socket", "socket.create_connection(('example.org', 80))", "request"),
    ("import socket", "socket.gethostname()", None),
    # files, programs, the terminal
    ("", "open('a.txt').read()", "file"),
    ("", "open('a.txt', 'w').write('x')", None),
    ("", "open('a.txt', mode='rb')", "file"),
    ("from pathlib import Path", "Path('a.txt').read_text()", "file"),
    ("import pathlib", "(pathlib.Path('a') / 'b').exists()", "file"),
    ("from pathlib import Path", "Path('a.txt').write_text('x')", None),
    ("from pathlib import Path", "Path('a.txt').name", None),
    ("import os", "os.path.join('a', 'b')", None),
    ("import os", "os.listdir('.')", "file"),
    ("import subprocess", "subprocess.run(['git', 'log'])", "program"),
    ("", "input('Your name? ')", None),  # the parameter, which isn't Python's own function
    # what has another meaning here
    ("from clocks import time", "time()", None),
    ("time = None", "time.time()", None),
    ("from .time import time", "time()", None),
    ("", "ctx.time()", None),
]


@each_row("imports, expression, kind", IN_MAIN)
def test_a_call_is_reported_by_what_would_differ_when_it_is_repeated(
    imports: str, expression: str, kind: str | None
) -> None:
    tree = ast.parse(f"{imports}\nasync def main(input, ctx):\n    return {expression}\n")

    found = find_unrepeatable(tree, [tree.body[-1]])  # type: ignore[list-item]

    assert [each.kind for each in found] == ([kind] if kind is not None else [])


BODIES = [
    # what `ctx.step` is given happens once
    ("await ctx.step('now', time.time)", []),
    ("await ctx.step('now', lambda: time.time())", []),
    ("await ctx.step('now', function=lambda: time.time())", []),
    ("await ctx.step('now', partial(stamp, time.time()))", []),
    ("await ctx.step('now', stamp)", []),
    ("await ctx.step('now', stamp, 3)", []),
    ("await ctx.step('now', time.time())", [1]),
    ("await ctx.step(f'now {time.time()}', lambda: 1)", [1]),
    ("await ctx.step('now', lambda value: value, time.time())", [1]),
    ("async def fetch():\n    return httpx.get('x')\nawait ctx.step('x', fetch)", []),
    ("async def fetch():\n    return httpx.get('x')\nawait fetch()", [2]),
    ("async def fetch():\n    return httpx.get('x')\nawait ctx.step('x', fetch)\nawait fetch()", [2]),
    # functions of the file that are called, or passed on
    ("return stamp()", ["stamp"]),
    ("return await asyncio.to_thread(stamp)", ["stamp"]),
    ("return twice()", ["stamp"]),
    ("return unused", []),
    ("return [stamp() for _ in range(3)]", ["stamp"]),
    ("return sorted(items, key=lambda _: random.random())", [1]),
    ("spec = AgentSpec('a', tools=[stamp])", []),
    ("return await ctx.call('stamp', {})", []),
    ("return STARTED", ["STARTED"]),
    ("return Clock().now()", []),
    # names of the function's own
    ("time = Clock()\nreturn time.time()", []),
    ("import datetime as dt\nreturn dt.datetime.now()", [2]),
    ("now = time.time\nreturn now()", [2]),
    ("for time in [1]:\n    time.time()", []),
    ("async with httpx.AsyncClient() as client:\n    return await client.get('x')", [2]),
    ("path = Path('a.txt')\nif path.exists():\n    return path.read_text()", [2, 3]),
    ("if time.time() > 5:\n    return uuid.uuid4()", [1, 2]),
    ("return {time.time() for _ in [1]} | {uuid.uuid4()}", [1, 1]),
    ("match input:\n    case time:\n        return time.time()", []),
    ("return f'{time.time():.0f}'", [1]),
]
FILE = """
import asyncio, httpx, random, time, uuid
from functools import partial
from pathlib import Path

STARTED = time.time()

class Clock:
    def now(self):
        return time.time()

def stamp():
    return time.time()

def twice():
    return stamp(), twice()

def unused():
    return 1

async def main(input, ctx):
"""


@each_row("body, lines", BODIES)
def test_only_what_runs_again_on_resume_is_reported_at_its_line(body: str, lines: list[int | str]) -> None:
    text = f"{FILE}{textwrap.indent(body, '    ')}\n"
    tree = ast.parse(text)
    first = FILE.count("\n")
    other = {"stamp": "    return time.time()\n\ndef twice", "STARTED": "STARTED = time"}
    expected = [text[: text.index(other[at])].count("\n") + 1 if isinstance(at, str) else first + at for at in lines]

    found = find_unrepeatable(tree, [tree.body[-1]])  # type: ignore[list-item]

    assert [each.node.lineno for each in found] == expected


PROJECT = '''
import random
import time

from pydantic import BaseModel, field_validator

from llm_do import AgentSpec


class Answer(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def check(cls, value: str) -> str:
        return value if random.random() < 2 else ""


def instructions() -> str:
    return f"It is {time.ctime()}."


def join(outputs):
    return f"{outputs} at {time.time()}"


async def helper(input: str, ctx) -> str:
    """Help."""
    return str(time.time_ns())


async def main(input, ctx):
    é = "é"; return é, time.time()


def tool_of_its_own(text: str) -> str:
    """Tools are steps: they may read the clock."""
    return str(time.time())


made = AgentSpec("made", instructions=instructions, output_type=Answer, description="Made.", tools=["tool_of_its_own"])
other = AgentSpec("other", instructions="Help.", description="Other.", toolsets=["made"])
AGENTS = [made, other]
TOOLS = [tool_of_its_own, helper]
'''


def test_which_functions_run_again(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROJECT)
    manifest = {
        "version": 1,
        "entry": {"function": "main.py:main"},
        "python_files": ["main.py"],
        "flows": {"both": {"mode": "workflow", "flow": "made | other", "aggregate": "main.py:join"}},
    }
    (tmp_path / "project.json").write_text(json.dumps(manifest))

    found = [each for each in Project.load(tmp_path).warnings if each.code == "LD720"]

    lines = (tmp_path / "main.py").read_text().splitlines()
    assert [lines[each.line - 1].strip() for each in found] == [
        'return value if random.random() < 2 else ""',
        'return f"It is {time.ctime()}."',
        'return f"{outputs} at {time.time()}"',
        "return str(time.time_ns())",
        'é = "é"; return é, time.time()',
    ]
    last = found[-1]
    assert last.message == "`time.time` reads the clock in code that runs again when a durable run is resumed"
    assert last.hint == 'write `await ctx.step("clock", time.time)`, which does it once'
    assert lines[last.line - 1][last.column - 1 : last.end[1] - 1] == "time.time"  # type: ignore[index]
    assert [each.hint for each in found[:3]] == [
        "do it where it happens once, in a tool or through `ctx.step`, and pass the result on"
    ] * 3


def test_code_of_any_kind_is_read(tmp_path: Path) -> None:
    deep = " + ".join(["len(str(input))"] * 600)
    odd = (
        "f = lambda: 0; f = f\n"
        "async def main(input, ctx):\n"
        "    a = b = a if (b := ctx) else b\n"
        "    return a.x().y[0]().z\n"
    )
    for text in (f"import time\nasync def main(input, ctx):\n    return time.time() + {deep}\n", odd, f"\ufeff{odd}"):
        (tmp_path / "main.py").write_text(text)
        (tmp_path / "project.json").write_text(
            '{"version": 1, "entry": {"function": "main.py:main"}, "python_files": ["main.py"]}'
        )
        assert {each.code for each in Project.load(tmp_path).warnings} <= {"LD720"}
