"""What a cassette notices: one changed character of what is asked is a miss with file and line, anything else isn't."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, Runtime
from llm_do.errors import CassetteMissError
from llm_do.testing import Played, play
from llm_do.testing.cassettes.files import player_of

FILES: dict[str, str] = {
    "lead.agent": """---
name: lead
description: Leads the work.
model: script:answers.yaml
model_settings: {temperature: 0.5, max_tokens: 900, seed: 7, top_p: 0.9, stop_sequences: [END]}
tools: [multiply, place, greet]
toolsets: [notes, filesystem_project_ro, helper, judge]
context_providers: ["desk.py:house_rules"]
---
Answer briefly.

Ask the helper first.
Then multiply.
""",
    "helper.agent": """---
name: helper
description: Helps with one thing.
model: script:answers.yaml
model_settings: {temperature: 0.1}
input_model_ref: desk.py:Task
template: true
---
Help with one thing.
It is about {{topic}}.
""",
    "judge.agent": """---
name: judge
description: Judges.
model: script:answers.yaml
output_model_ref: desk.py:Verdict
---
Judge it.
""",
    "coder.agent": """---
name: coder
model: script:answers.yaml
output: {type: object, properties: {code: {type: string, description: The code.}}, required: [code]}
---
Write code.
""",
    "rules.md": "House rules:\n- Be kind.\n- Cite sources.\n",
    "note.txt": "A note.\nIts second line.\n",
    "desk.py": '''import datetime
import pathlib
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic_ai.toolsets import FunctionToolset

from llm_do import AgentArgs

HERE = pathlib.Path(__file__).parent


class Task(AgentArgs):
    """A task."""

    topic: str = Field(description="What it is about.")
    length: int = Field(default=3, ge=1, le=9)

    def prompt_messages(self):
        return [f"Write {self.length} lines."]


class Verdict(BaseModel):
    """A verdict."""

    good: bool = Field(description="Whether it is good.")
    marks: int = 3


def house_rules(ctx):
    return (HERE / "rules.md").read_text()


def multiply(a: Annotated[int, Field(description="One factor.")], b: int = 2) -> int:
    """Multiply two numbers.

    Args:
        b: The other factor.
    """
    return a * b


def place() -> str:
    """Where the project is."""
    return str(HERE)


def greet(tone: Literal["warm", "cool"]) -> str:
    """Greet someone."""
    return f"Hello, in a {tone} tone."


notes = FunctionToolset()


@notes.tool_plain
def latest(count: int) -> str:
    """The latest notes."""
    return f"{count} notes"


TOOLS = [multiply, place, greet]
TOOLSETS = {"notes": notes}
''',
    "answers.yaml": json.dumps(
        {
            "agents": {
                "lead": [
                    {
                        "tools": [
                            {"name": "helper", "args": {"topic": "bees"}},
                            {"name": "helper", "args": {"topic": "wasps"}},
                            {"name": "judge", "args": {"input": "Is it good?"}},
                        ]
                    },
                    {
                        "tools": [
                            {"name": "multiply", "args": {"a": 17}},
                            {"name": "place", "args": {}},
                            {"name": "greet", "args": {"tone": "warm"}},
                            {"name": "latest", "args": {"count": 2}},
                            {"name": "read_file", "args": {"path": "note.txt"}},
                        ]
                    },
                    {"text": "Done: {tool}"},
                ],
                "helper": [{"text": "helped with {input}"}],
                "judge": [{"tools": [{"name": "final_result", "args": {"good": True, "marks": 5}}]}],
                "coder": [{"text": '{"code": "x"}'}],
            }
        }
    ),
}

MANIFEST: dict[str, Any] = {
    "version": 1,
    "entry": {"agent": "lead"},
    "agent_files": ["*.agent"],
    "python_files": ["desk.py"],
    "model_settings": {"presence_penalty": 0.25},
    "approvals": {"allow": ["multiply", "place", "greet", "latest"]},
}


def make_desk(root: Path) -> Path:
    root.mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    (root / "project.json").write_text(json.dumps(MANIFEST, indent=1))
    return root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project beside the cassette of a run of it."""
    root = make_desk(tmp_path_factory.mktemp("desk") / "desk")
    played = play(root, "Go", cassette=root.parent / "c.json", record_cassette=True)
    assert played.status == "completed", played.result.errors
    return root


@pytest.fixture
def desk(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the project that may be changed."""
    return Path(shutil.copytree(recorded, tmp_path / "desk", ignore=shutil.ignore_patterns("__pycache__")))


def replay(recorded: Path, desk: Path, input: object = "Go", **options: Any) -> Played:
    return play(desk, input, cassette=recorded.parent / "c.json", **options)


A, H, J, P = "lead.agent", "helper.agent", "judge.agent", "desk.py"

CHANGES: list[tuple[str, str, str, str, str]] = [
    (A, "Answer briefly.", "Answer briefly!", "lead's instructions have changed", "lead.agent:10"),
    (A, "Answer briefly.", "answer briefly.", "lead's instructions have changed", "lead.agent:10"),
    (A, "Answer briefly.", "Answer  briefly.", "lead's instructions have changed", "lead.agent:10"),
    (A, "first.\n", "first?\n", "lead's instructions have changed", "lead.agent:12"),
    (A, "Then multiply.", "Then multiply", "lead's instructions have changed", "lead.agent:13"),
    (A, "Then multiply.\n", "Then multiply.\nx\n", "lead's instructions have changed", "lead.agent:14"),
    (A, "briefly.\n\nAsk", "briefly.\nAsk", "lead's instructions have changed", "lead.agent:10"),
    (A, "Ask the helper first.\n", "", "lead's instructions have changed", "lead.agent:10"),
    (A, "temperature: 0.5", "temperature: 0.6", "lead's setting temperature has changed", "lead.agent:5"),
    (A, "temperature: 0.5, ", "", "lead's setting temperature has changed", "lead.agent"),
    (A, "max_tokens: 900", "max_tokens: 901", "lead's setting max_tokens has changed", "lead.agent:5"),
    (A, "seed: 7", "seed: 8", "lead's setting seed has changed", "lead.agent:5"),
    (A, "top_p: 0.9", "top_p: 0.8", "lead's setting top_p has changed", "lead.agent:5"),
    (A, "[END]", "[END.]", "lead's setting stop_sequences has changed", "lead.agent:5"),
    (A, "seed: 7", "seed: 7, parallel_tool_calls: true", "lead's setting parallel_tool_calls", "lead.agent:5"),
    (A, "model: script:answers.yaml", "model: test", "lead's model has changed", "lead.agent:4"),
    (A, "place, greet]", "greet, place]", "the order of lead's tools has changed", "lead.agent:2"),
    (A, ", greet]", "]", "lead no longer has the tool greet", "lead.agent:2"),
    (A, "helper, judge]", "helper, judge, coder]", "lead has the tool coder", "lead.agent:2"),
    (A, "project_ro", "project", "lead has the tool", "lead.agent:2"),
    ("project.json", "0.25", "0.26", "lead's setting presence_penalty has changed", "project.json:"),
    ("rules.md", "Be kind.", "Be kind!", "lead's instructions have changed", "rules.md:2"),
    ("rules.md", "sources.", "sources;", "lead's instructions have changed", "rules.md:3"),
    ("rules.md", "House", "house", "lead's instructions have changed", "rules.md:1"),
    ("note.txt", "A note.", "A note!", "the result of read_file is not what it was", "note.txt:1"),
    ("note.txt", "second", "Second", "the result of read_file is not what it was", "note.txt:2"),
    (H, "Helps with one thing.", "Helps with one thing", "description of the tool helper", "desk.py class Task("),
    (H, "Help with one thing.", "Help with one thing!", "helper's instructions have changed", "helper.agent:9"),
    (H, "temperature: 0.1", "temperature: 0.2", "helper's setting temperature has changed", "helper.agent:5"),
    (J, "Judge it.", "Judge it!", "judge's instructions have changed", "judge.agent:7"),
    (J, "description: Judges.", "description: Judges!", "description of the tool judge", "judge.agent:2"),
    (J, "Judge it.", "Judge  it.", "judge's instructions have changed", "judge.agent:7"),
    (P, "Multiply two numbers.", "Multiply two numbers!", "description of the tool multiply", "desk.py def multiply("),
    (P, "Multiply two", "Multiply  two", "description of the tool multiply", "desk.py def multiply("),
    (P, "The other factor.", "The other factor!", "the schema of the tool multiply", "desk.py def multiply("),
    (P, "One factor.", "One factor", "the schema of the tool multiply", "desk.py def multiply("),
    (P, "b: int = 2", "b: int = 3", "the schema of the tool multiply", "desk.py def multiply("),
    (P, "b: int = 2", "b: float = 2", "the schema of the tool multiply", "desk.py def multiply("),
    (P, "Where the project is.", "Where is the project?", "description of the tool place", "desk.py def place("),
    (P, '"warm", "cool"', '"warm", "cold"', "the schema of the tool greet", "desk.py def greet("),
    (P, '"warm", "cool"', '"cool", "warm"', "the schema of the tool greet", "desk.py def greet("),
    (P, "Greet someone.", "Greet someone", "description of the tool greet", "desk.py def greet("),
    (P, "in a {tone} tone.", "in a {tone} tone!", "the result of greet is not", "desk.py def greet("),
    (P, "return a * b", "return a + b", "the result of multiply is not", "desk.py def multiply("),
    (P, "The latest notes.", "The latest note.", "description of the tool latest", "desk.py @notes.tool_plain"),
    (
        P,
        "def latest(count: int)",
        "def latest(count: float)",
        "the schema of the tool latest",
        "desk.py @notes.tool_plain",
    ),
    (P, "{count} notes", "{count} note", "the result of latest is not", "desk.py @notes.tool_plain"),
    (P, "What it is about.", "What is it about?", "the schema of the tool helper", "desk.py class Task("),
    (P, "ge=1", "ge=2", "the schema of the tool helper", "desk.py class Task("),
    (P, "default=3", "default=4", "the schema of the tool helper", "desk.py class Task("),
    (P, "lines.", "lines!", "the input of helper has changed", ""),
    (
        P,
        "    topic: str",
        "    Topic: str = ''\n    topic: str",
        "the schema of the tool helper",
        "desk.py class Task(",
    ),
    (P, "Whether it is good.", "Whether it's good.", "judge's output schema has changed", "desk.py class Verdict("),
    (P, "marks: int = 3", "marks: int = 4", "judge's output schema has changed", "desk.py class Verdict("),
    (P, "marks: int = 3", "marks: float = 3", "judge's output schema has changed", "desk.py class Verdict("),
    (P, '"""A verdict."""', '"""The verdict."""', "judge's output schema has changed", "desk.py class Verdict("),
]
"""A file, what is replaced in it and by what; what has changed, and where: a line, or the text that it begins with."""


ROWS = [pytest.param(number, marks=() if number % 3 == 0 else pytest.mark.slow) for number in range(len(CHANGES))]
"""Each third of them whenever the tests run."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("number", ROWS, ids=lambda at: f"{CHANGES[at][0]} {CHANGES[at][2][:24]}")
def test_one_changed_character_is_a_miss_with_its_place(recorded: Path, desk: Path, number: int) -> None:
    file, old, new, what, where = CHANGES[number]
    text = (desk / file).read_text()
    assert old in text
    (desk / file).write_text(text.replace(old, new, 1))
    name, _, begin = where.partition(" ")
    if begin:
        lines = (desk / name).read_text().splitlines()
        where = f"{name}:{1 + next(at for at, line in enumerate(lines) if line.startswith(begin))})"

    played = replay(recorded, desk)

    error = played.result.error
    assert isinstance(error, CassetteMissError), (played.status, played.result.errors)
    assert what in error.message
    assert not where or f"({where}" in error.message, error.message
    assert error.block
    assert error.hint is not None
    assert played.result.exit_code == 7


def test_another_input_is_a_miss_and_so_is_a_changed_attachment(recorded: Path, desk: Path, tmp_path: Path) -> None:
    for input in ("go", "Go ", "Go\n", "Gö"):
        error = replay(recorded, desk, input).result.error
        assert isinstance(error, CassetteMissError), input
        assert "the input of lead has changed" in error.message
    path = tmp_path / "attached.json"
    (desk / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    attached = {"input": "Go", "attachments": ["map.png"]}
    assert play(desk, attached, cassette=path, record_cassette=True).status == "completed"
    assert play(desk, attached, cassette=path).status == "completed"
    (desk / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(19) + b"1")
    assert "the input of lead has changed" in str(play(desk, attached, cassette=path).result.error)


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text, old
        (root / name).write_text(text.replace(old, new, 1))

    return change


def manifest(**changes: Any) -> Callable[[Path], object]:
    return lambda root: (root / "project.json").write_text(json.dumps({**MANIFEST, **changes}))


HARMLESS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "a time-out in the settings": edit(A, "seed: 7", "seed: 7, timeout: 3"),
    "headers": edit(A, "seed: 7", 'seed: 7, extra_headers: {X-Team: "1"}'),
    "the order of settings": edit(A, "{temperature: 0.5, max_tokens: 900,", "{max_tokens: 900, temperature: 0.5,"),
    "a comment in an agent file": edit(A, "name: lead", "# the leader\nname: lead"),
    "the limit of steps": edit(A, "name: lead", "max_steps: 9\nname: lead"),
    "the description of the entry": edit(A, "Leads the work.", "Leads the work!"),
    "a comment in Python": edit(P, "def place", "# somewhere\ndef place"),
    "blank lines at the end of instructions": edit(A, "Then multiply.\n", "Then multiply.\n\n\n"),
    "a tool's body": edit(P, "return a * b", "return b * a"),
    "white space in the manifest": lambda root: (root / "project.json").write_text(json.dumps(MANIFEST, indent=7)),
    "the project's name": manifest(name="Another", description="About something else."),
    "a budget": manifest(runtime={"budget": {"requests": 50, "output_tokens": 100000, "total_tokens": 500000}}),
    "a budget that lowers max_tokens": manifest(runtime={"budget": {"output_tokens": 800}}),
    "a time-out of tools": manifest(runtime={"tool_timeout": 9, "run_timeout": 60}),
    "retries and concurrency": manifest(runtime={"max_retries": 1, "max_concurrency": 1}),
    "rules that allow as much": manifest(approvals={"allow": ["multiply", "place", "greet", "latest*"]}),
    "no record": manifest(record=False),
    "another agent in the project": lambda root: (root / "x.agent").write_text("---\nname: x\n---\nHi.\n"),
    "another script": lambda root: (root / "answers.yaml").write_text("- text: never asked\n"),
    "no script": lambda root: (root / "answers.yaml").unlink(),
    "the time of files": lambda root: os.utime(root / "note.txt", (1, 1)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_provider_is_not_sent_does_not_matter(recorded: Path, desk: Path, name: str) -> None:
    HARMLESS[name](desk)

    played = replay(recorded, desk)

    assert played.status == "completed", played.result.errors
    assert "Its second line." in played.output


@pytest.mark.sample(2)
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "LLM_DO_MODEL", "TZ", "HTTPS_PROXY", "HOME"])
def test_the_environment_does_not_matter(
    recorded: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://elsewhere.example/a-value")

    assert replay(recorded, desk, max_steps=20, max_retries=2).status == "completed"


@pytest.mark.slow
def test_siblings_may_end_in_any_order_and_a_folder_may_have_any_name(recorded: Path, tmp_path: Path) -> None:
    for folder in ("a copy", "desk-2", "[desk]", "ünï"):
        elsewhere = Path(shutil.copytree(recorded, tmp_path / folder))
        project = Project.load(elsewhere)
        player = player_of(recorded.parent / "c.json", project, again="again")
        runtime = Runtime(project, transport=player)
        runtime.on("text", lambda event: None)
        assert runtime.run_sync("Go").status == "completed"
        assert player.unused == []
