"""The ten most common mistakes in each of a manifest, an agent file, a tool, a rule and a command line.

Each is answered with the place and with what to do about it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_do.linker.linker import check_project
from tests.cli.cli_processes import run_many

MANIFEST = '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]KEYS}'
AGENT = "---\nname: main\ntools: [send]\n---\nHelp.\n"
TOOLS = 'def send(to: str, text: str = "") -> str:\n    """Send a text."""\n    return to\n\n\nTOOLS = [send]\n'
FILES = AGENT.replace("[send]\n", "[send]\ntoolsets: [filesystem_cwd, shelf]\n")
FACTORY = """\
from pydantic_ai import FunctionToolset


def shelf(ctx):
    return FunctionToolset()


TOOLSETS = [shelf]
"""
"""Tools that are only known in a run."""


def manifest(**keys: object) -> str:
    """The manifest with more keys on its second line."""
    return MANIFEST.replace("KEYS", "".join(f',\n "{key}": {json.dumps(value)}' for key, value in keys.items()))


Case = tuple[Mapping[str, str], str, str, str]
"""Changed files, and the place, a part of the message and a part of the hint."""

IN_MANIFEST: dict[str, Case] = {
    "a misspelled key": (
        {"project.json": manifest(modle="test")},
        "project.json:2:2",
        "unknown key `modle`",
        "did you mean `model`?",
    ),
    "a key of another place": (
        {"project.json": manifest(max_depth=3)},
        "project.json:2:2",
        "unknown key `max_depth`",
        "belong under `runtime`",
    ),
    "a trailing comma": (
        {"project.json": MANIFEST.replace("KEYS", ",")},
        "project.json:1:100",
        "comma before `}`",
        "delete the comma",
    ),
    "a comment": (
        {"project.json": "// mine\n" + MANIFEST.replace("KEYS", "")},
        "project.json:1:1",
        "JSON has no comments",
        "delete the comment",
    ),
    "Python's True": (
        {"project.json": MANIFEST.replace("KEYS", ',\n "record": True')},
        "project.json:2:12",
        "`True` is Python",
        "write `true`",
    ),
    "text for a number": (
        {"project.json": MANIFEST.replace("KEYS", "").replace("1,", '"1",', 1)},
        "project.json:1:13",
        "`version` must be a whole number",
        "without quotes",
    ),
    "an entry that doesn't exist": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('"main"', '"mian"')},
        "project.json:1:35",
        "there is no agent `mian`",
        "did you mean `main`?",
    ),
    "a function without its file": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('{"agent": "main"}', '{"function": "main"}')},
        "project.json:1:38",
        "doesn't refer to Python code",
        "`path.py:function`",
    ),
    "a file that isn't there": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('"tools.py"', '"tool.py"')},
        "project.json:1:89",
        "there is no file `tool.py`",
        "did you mean `tools.py`?",
    ),
    "an entry named by its file": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('"agent": "main"', '"agent": "main.agent"')},
        "project.json:1:35",
        "which is not a name",
        "such as `main`",
    ),
    "an entry that is a text": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('{"agent": "main"}', '"main"')},
        "project.json:1:25",
        "`entry` must be an object",
        'write {"agent": "main"}',
    ),
    "text for a list": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('["*.agent"]', '"*.agent"')},
        "project.json:1:59",
        "`agent_files` must be a list",
        'write ["*.agent"]',
    ),
    "single quotes": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('"', "'")},
        "project.json:1:2",
        "a key is expected",
        "double quotes",
    ),
    "a missing comma": (
        {"project.json": MANIFEST.replace("KEYS", "").replace("1, ", "1 ", 1)},
        "project.json:1:15",
        "`,` or `}` is expected",
        "the object starts at line 1",
    ),
    "a key twice": (
        {"project.json": MANIFEST.replace("KEYS", ',\n "version": 1')},
        "project.json:2:2",
        "the key `version` is already at line 1",
        "keep one",
    ),
    "a file outside": (
        {"project.json": MANIFEST.replace("KEYS", "").replace('"tools.py"', '"../tools.py"')},
        "project.json:1:89",
        "leaves the project",
        "below the manifest's folder",
    ),
    "a server without a command": (
        {"project.json": manifest(toolsets={"clock": {"type": "mcp"}})},
        "project.json:2:15",
        "neither `command` nor `url`",
        "add one of them",
    ),
    "servers as other programs have them": (
        {"project.json": manifest(mcpServers={"clock": {"command": "cat"}})},
        "project.json:2:2",
        "unknown key `mcpServers`",
        "write the servers as they are below",
    ),
    "keys of providers": (
        {"project.json": manifest(env={"OPENAI_API_KEY": "x"})},
        "project.json:2:2",
        "unknown key `env`",
        "from `.env` beside project.json",
    ),
    "a toolset of no type": (
        {"project.json": manifest(toolsets={"docs": {"type": "filesytem"}})},
        "project.json:2:32",
        "filesytem",
        "did you mean `filesystem`?",
    ),
}
IN_AGENT: dict[str, Case] = {
    "a misspelled key": (
        {"main.agent": AGENT.replace("tools", "tols")},
        "main.agent:3:1",
        "unknown key `tols`",
        "did you mean `tools`?",
    ),
    "a setting of the model": (
        {"main.agent": AGENT.replace("tools: [send]", "temperature: 0")},
        "main.agent:3:1",
        "unknown key `temperature`",
        "`model_settings: {temperature: ...}`",
    ),
    "a tool with its file": (
        {"main.agent": AGENT.replace("[send]", "[tools.send]")},
        "main.agent:3:9",
        "no tool `tools.send`",
        "write `send`",
    ),
    "a file as a tool": (
        {"main.agent": AGENT.replace("[send]", "[tools.py]")},
        "main.agent:3:9",
        "no tool `tools.py`",
        "name functions, not their file",
    ),
    "tools as a text": (
        {"main.agent": AGENT.replace("[send]", "send, other")},
        "main.agent:3:8",
        "`tools` must be a list",
        "write [send, other]",
    ),
    "a list without blanks": (
        {"main.agent": AGENT.replace("[send]", "\n  -send")},
        "main.agent:4:3",
        "`tools` must be a list",
        "write",
    ),
    "a key twice": (
        {"main.agent": AGENT.replace("name: main", "name: main\nname: other")},
        "main.agent:3:1",
        "the key `name` is already at line 2",
        "keep one",
    ),
    "a key in capitals": (
        {"main.agent": AGENT.replace("name:", "Name:")},
        "main.agent:2:1",
        "unknown key `Name`",
        "did you mean `name`?",
    ),
    "agents as a key": (
        {"main.agent": AGENT.replace("---\nHelp", "agents: [writer]\n---\nHelp")},
        "main.agent:4:1",
        "unknown key `agents`",
        "under `toolsets`",
    ),
    "a name that YAML reads otherwise": (
        {"main.agent": AGENT.replace("main", "no")},
        "main.agent:2:7",
        "YAML reads `no` as false",
        'quote it: "no"',
    ),
    "instructions as a key": (
        {"main.agent": AGENT.replace("tools: [send]", "prompt: Help.")},
        "main.agent:3:1",
        "unknown key `prompt`",
        "below the closing ---",
    ),
    "no frontmatter": ({"main.agent": "Help me.\n"}, "main.agent:1:1", "no frontmatter", "start it with ---"),
    "an open frontmatter": (
        {"main.agent": "---\nname: main\nHelp.\n"},
        "main.agent:1:1",
        "never closed",
        "exactly ---",
    ),
    "a colon in a value": (
        {"main.agent": AGENT.replace("tools:", "description: Note: reads\ntools:")},
        "main.agent:3:",
        "not YAML",
        "quote the value",
    ),
    "a tab": (
        {"main.agent": AGENT.replace("tools: [send]", "tools:\n\t- send")},
        "main.agent:4:1",
        "not YAML",
        "not with tabs",
    ),
    "a misspelled tool": (
        {"main.agent": AGENT.replace("[send]", "[sned]")},
        "main.agent:3:9",
        "there is no tool `sned`",
        "did you mean `send`?",
    ),
    "a toolset among the tools": (
        {"main.agent": AGENT.replace("[send]", "[shell_readonly]")},
        "main.agent:3:9",
        "`shell_readonly` is a built-in toolset, not a tool",
        "`toolsets`",
    ),
    "a type of toolset": (
        {"main.agent": AGENT.replace("tools: [send]", "toolsets: [filesystem]")},
        "main.agent:3:12",
        "type of toolset",
        "`filesystem_cwd`",
    ),
    "a model without a provider": (
        {"main.agent": AGENT.replace("tools:", "model: gpt-5\ntools:")},
        "main.agent:3:8",
        "names no provider",
        "did you mean `openai:gpt-5`?",
    ),
    "a name with a blank": (
        {"main.agent": AGENT.replace("name: main", "name: my main")},
        "main.agent:2:7",
        "is not a name",
        "`my_main`",
    ),
}
IN_TOOL: dict[str, Case] = {
    "a syntax error": (
        {"tools.py": TOOLS.replace(") -> str:", ") -> str")},
        "tools.py:1:",
        "not valid Python",
        "correct the syntax",
    ),
    "a module that isn't there": (
        {"tools.py": "import requets\n" + TOOLS},
        "tools.py:1:",
        "requets",
        "install the package",
    ),
    "a list in the singular": (
        {"tools.py": TOOLS.replace("TOOLS =", "TOOL =")},
        "main.agent:3:9",
        "no tool `send`",
        "add it to TOOLS",
    ),
    "a name in quotes": (
        {"tools.py": TOOLS.replace("[send]", '["send"]')},
        "main.agent:3:9",
        "no tool `send`",
        "TOOLS = [send]",
    ),
    "a class": (
        {"tools.py": "class Send:\n    pass\n\n\nTOOLS = [Send]\n"},
        "tools.py:5:10",
        "holds the class Send",
        "remove it",
    ),
    "a function without a name": (
        {"tools.py": "TOOLS = [lambda x: x]\n"},
        "tools.py:1:10",
        "has no name",
        "a dict of names",
    ),
    "tabs and spaces": (
        {"tools.py": 'def send(to: str):\n\t"""S."""\n        return to\n'},
        "tools.py:3:1",
        "inconsistent use of tabs",
        "correct the syntax",
    ),
    "a question at import time": (
        {"tools.py": "input()\n" + TOOLS},
        "tools.py:1:1",
        "the import raised",
        "into a function",
    ),
    "not exported": (
        {"tools.py": TOOLS.replace("TOOLS = [send]", "TOOLS = []")},
        "main.agent:3:9",
        "there is no tool `send`",
        "add it to TOOLS",
    ),
    "a function instead of a list": (
        {"tools.py": TOOLS.replace("[send]", "send")},
        "tools.py:6:1",
        "not a dict or a list",
        "write TOOLS = [...]",
    ),
    "the result of a call": (
        {"tools.py": TOOLS.replace("[send]", '[send("a")]')},
        "tools.py:6:",
        "which is not a function or a tool object",
        "",
    ),
    "no docstring": (
        {"tools.py": TOOLS.replace('"""Send a text."""', "pass")},
        "tools.py:1:1",
        "reads nothing about `send`",
        "write a docstring",
    ),
    "no type": ({"tools.py": TOOLS.replace("to: str", "to")}, "tools.py:1:10", "no type", "such as `to: str`"),
    "a type that JSON lacks": (
        {"tools.py": "import socket\n" + TOOLS.replace("to: str", "to: socket.socket")},
        "tools.py:",
        "no tool can be made of `send`",
        "a type that JSON can hold",
    ),
    "a misspelled name in __all__": (
        {"tools.py": TOOLS.replace("TOOLS = [send]", '__all__ = ["sned"]')},
        "tools.py:6:",
        "__all__ has 'sned'",
        "correct the name",
    ),
    "a wrong primary argument": (
        {"tools.py": TOOLS.replace("def send", 'from llm_do import tool\n\n@tool(primary="too")\ndef send', 1)},
        "tools.py:",
        "`too`",
        "its parameters are: to, text",
    ),
    "a program at import time": (
        {"tools.py": "import sys\nsys.exit(1)\n" + TOOLS},
        "tools.py:2:1",
        "ended the program",
        "if __name__ == '__main__'",
    ),
}


def rule(allow: object = None, **approvals: object) -> Mapping[str, str]:
    """A manifest with approvals on its second line."""
    return {"project.json": manifest(approvals={**({"allow": allow} if allow else {}), **approvals})}


IN_RULE: dict[str, Case] = {
    "an open parenthesis": (
        rule(["send(to=ann"]),
        "project.json:2:",
        "the parenthesis is not closed",
        "write `)` at the end",
    ),
    "a misspelled tool": (rule(["sned"]), "project.json:2:", "no agent has such a tool", "did you mean `send`?"),
    "a misspelled tool that is denied": (
        rule(deny=["sned"]),
        "project.json:2:",
        "no agent has such a tool",
        "did you mean `send`?",
    ),
    "a tool behind a slash": (rule(["main/send"]), "project.json:2:", "no agent has such a tool", "write `main:send`"),
    "a prefix that a toolset hasn't": (
        {**rule(deny=["filesystem_cwd::write_file"]), "main.agent": FILES, "tools.py": TOOLS + FACTORY},
        "project.json:2:",
        "the tool is called `write_file` there",
        "write `write_file`",
    ),
    "a toolset in place of its tools": (
        {**rule(deny=["filesystem_cwd::*"]), "main.agent": FILES.replace(", shelf", "")},
        "project.json:2:",
        "no tool has that name",
        "is a toolset, and rules name its tools: `read_file`, `list_files`",
    ),
    "the folder of the skills in place of one": (
        {"main.agent": AGENT.replace("[send]\n", "[send]\nskills: [skills]\n"), "skills/tea/SKILL.md": "---\n"},
        "main.agent:4:10",
        "the folder `skills` has no SKILL.md",
        "list the skills in it: `skills/*`",
    ),
    "a command": (rule(["git log"]), "project.json:2:", "a blank in a name", "write the pattern without blanks"),
    "another program's rule": (rule(["Bash(git log:*)"]), "project.json:2:", "no agent has such a tool", "`shell(git"),
    "an argument with a colon": (rule(["send(to: ann)"]), "project.json:2:", "which argument", "`send(to=...)`"),
    "two rules in one": (rule(["send, other"]), "project.json:2:", "a stray ','", "write `tool`"),
    "a misspelled agent": (rule(["mian:send"]), "project.json:2:", "no agent is called `mian`", "did you mean `main`?"),
    "a misspelled agent at the end of a path": (
        rule(deny=["main/mian:send"]),
        "project.json:2:",
        "no agent is called `mian`",
        "did you mean `main`?",
    ),
    "a misspelled agent within a path": (
        rule(deny=["mian/main:send"]),
        "project.json:2:",
        "no agent is called `mian`",
        "did you mean `main`?",
    ),
    "a misspelled agent above any": (
        rule(["mian/**:send"]),
        "project.json:2:",
        "no agent is called `mian`",
        "did you mean `main`?",
    ),
    "a misspelled argument": (
        rule(["send(too=ann)"]),
        "project.json:2:",
        "`too`, which is not an argument",
        "did you mean `to`?",
    ),
    "no argument's name": (rule(["send(ann)"]), "project.json:2:", "no primary one", "`send(to=...)`"),
    "everything": (rule(["*"]), "project.json:2:", "allows more than it seems", "name the tool"),
    "a misspelled list": (rule(alow=["send"]), "project.json:2:", "unknown key `alow`", "did you mean `allow`?"),
    "text for a list": (rule("send"), "project.json:2:", "`approvals.allow` must be a list", '["send"]'),
    "an example that comes out otherwise": (
        rule([{"rule": "send(to=ann)", "allows": ["bob"]}]),
        "project.json:2:",
        "bob",
        "correct the rule or the example",
    ),
    "a bool for a rule": (rule([True]), "project.json:2:", "true", ""),
}
LINKED = {"manifest": IN_MANIFEST, "agent file": IN_AGENT, "tool": IN_TOOL, "rule": IN_RULE}


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    "case",
    [case for cases in LINKED.values() for case in cases.values()],
    ids=[f"{where}: {name}" for where, cases in LINKED.items() for name in cases],
)
def test_a_mistake_in_a_project_has_a_place_and_a_fix(case: Case, tmp_path: Path) -> None:
    files, place, message, hint = case
    texts = {"project.json": MANIFEST.replace("KEYS", ""), "main.agent": AGENT, "tools.py": TOOLS, **files}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    found = check_project(tmp_path).diagnostics

    shown = [(str(each.place), each.message, each.hint) for each in found]
    assert any(at.startswith(place) and message in text and fix and hint in fix for at, text, fix in shown), shown


COMMAND_LINE: dict[str, tuple[str, str, str]] = {
    "a misspelled command": ("chekc", "'chekc'", "Did you mean `check`?"),
    "a command of other tools": ("new shop", "'new'", "`llm-do init DIR`"),
    "a misspelled option": ("run . --modle test", "--modle", "Did you mean `--model`?"),
    "a setting as an option": ("run . --temperature 0", "--temperature", "`model_settings"),
    "a prompt without quotes": ("run . sum it up", "too many arguments", "llm-do run . 'sum it up'"),
    "a project that isn't there": ("run shop.agent hello", "no project at shop.agent", "Name a folder with"),
    "a model without a provider": ("run . hello -m gpt-5", "'gpt-5' names no provider", "Did you mean `openai:gpt-5`?"),
    "a model for no agent": ("run . hello -m mian=test", "'mian'", "Did you mean `main`?"),
    "a misspelled entry": ("run . hello --entry mian", "'mian'", "Did you mean `main`?"),
    "a misspelled field": ("run . --field imput=hello", "'imput'", "Did you mean `input`?"),
    "an input that is not JSON": ("run . --input-json {input:1}", "--input-json is not JSON", "Quote it"),
    "a pattern that can't be read": ("run . hello --allow send( --model test", "--allow", "TOOL(name=GLOB)"),
    "a form that doesn't exist": ("run . hello --format yaml", "'yaml'", "'text', 'json', 'events'"),
    "a file that isn't there": ("run . hello --attach notes.txt", "notes.txt", ""),
}


@pytest.mark.slow
def test_a_mistake_on_the_command_line_is_named_with_what_to_write(tmp_path: Path) -> None:
    texts = {"project.json": MANIFEST.replace("KEYS", ""), "main.agent": AGENT, "tools.py": TOOLS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = run_many({name: (line.split(" "), tmp_path, b"") for name, (line, _, _) in COMMAND_LINE.items()})
    for name, (line, where, fix) in COMMAND_LINE.items():
        shown = ended[name].err
        assert ended[name].code in (2, 7), (name, shown)
        assert shown.startswith("error: "), (name, shown)
        assert where in shown, (name, line, shown)
        assert fix in shown, (name, line, shown)


def test_there_are_at_least_ten_of_each() -> None:
    assert all(len(cases) >= 10 for cases in (*LINKED.values(), COMMAND_LINE))
