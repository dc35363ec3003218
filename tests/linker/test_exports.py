from __future__ import annotations

import pytest

from llm_do.linker.linker import check_project
from llm_do.linker.python.exports import read_exports
from llm_do.linker.python.python_files import load_python_files
from tests.linker.conftest import Make, agent, manifest
from tests.support.tables import each_row

TOOLSET = "from pydantic_ai.toolsets import FunctionToolset\n"


def exports(make: Make, **files: str) -> dict[str, str]:
    root = make({f"{name}.py": text for name, text in files.items()})
    loaded = load_python_files(root, sorted(root / f"{name}.py" for name in files))
    assert loaded.diagnostics == []
    found, faults, _ = read_exports(loaded.files)
    assert faults == []
    return {item.name: item.kind for item in found}


def faults(make: Make, text: str) -> list[tuple[str, int, int, str]]:
    root = make({"x.py": text})
    loaded = load_python_files(root, [root / "x.py"])
    assert loaded.diagnostics == []
    return [(item.code, item.line, item.column, item.message) for item in read_exports(loaded.files)[1]]


def test_tools_are_the_members_of_a_dict_or_a_list(make: Make) -> None:
    code = "def add(): ...\nasync def sub(): ...\n"
    assert exports(make, a=code + "TOOLS = {'plus': add, 'minus': sub}") == {"plus": "tool", "minus": "tool"}
    assert exports(make, a=code + "TOOLS = [add, sub]") == {"add": "tool", "sub": "tool"}
    assert exports(make, a=code + "TOOLS = (add,)\n__all__ = ['sub']") == {"add": "tool"}


def test_without_tools_only_the_functions_in_all_are_tools(make: Make) -> None:
    code = """
        import json
        from os.path import join
        def add(): ...
        def hidden(): ...
        class Thing: ...
        LIMIT = 3
        __all__ = ["add", "join", "Thing", "LIMIT", "json"]
        """
    assert exports(make, a=code) == {"add": "tool", "join": "tool"}


def test_tool_objects_and_marked_functions_have_their_own_names(make: Make) -> None:
    code = """
        import llm_do
        from pydantic_ai import Tool
        @llm_do.tool(name="plus")
        def add(a: int) -> int:
            return a
        @llm_do.tool
        def sub(a: int) -> int:
            return a
        class Shout(llm_do.Tool):
            name = "shout"
            description = "Shouts."
            parameters = {"type": "object", "properties": {}}
            async def execute(self): ...
        TOOLS = [add, sub, Shout(), Tool(lambda: 1, name="one", description="One.")]
        """
    assert list(exports(make, a=code)) == ["plus", "sub", "shout", "one"]
    assert list(exports(make, a=code.replace("TOOLS = [", "__all__ = ['add', 'sub']; X = ["))) == ["plus", "sub"]


def test_toolsets_are_named_by_key_id_function_or_variable(make: Make) -> None:
    code = (
        TOOLSET
        + """
def per_call(ctx): ...
plain = FunctionToolset()
inline = lambda ctx: None
TOOLSETS = [FunctionToolset(id="by_id"), per_call, plain, inline]
"""
    )
    assert list(exports(make, a=code)) == ["by_id", "per_call", "plain", "inline"]
    assert list(exports(make, a=TOOLSET + "TOOLSETS = {'a': FunctionToolset(id='b'), 'c': lambda ctx: None}")) == [
        "a",
        "c",
    ]


def test_a_toolkits_own_name_comes_first(make: Make) -> None:
    code = TOOLSET + "class Kit(FunctionToolset):\n    name = 'kit'\nvariable = Kit(id='id')"
    assert exports(make, a=code) == {"kit": "toolset"}


def test_toolsets_with_a_module_level_name_are_exported(make: Make) -> None:
    code = TOOLSET + "one = FunctionToolset()\ntwo = one.prefixed('x')\nthree = [FunctionToolset()]"
    assert exports(make, a=code) == {"one": "toolset", "two": "toolset"}


def test_a_toolsets_list_is_complete(make: Make) -> None:
    guarded = TOOLSET + "parts = FunctionToolset()\nspare = FunctionToolset(id='spare')\n"
    listed = "TOOLSETS = {'parts': parts.approval_required()}"

    assert list(exports(make, a=guarded + listed)) == ["parts"]
    assert list(exports(make, a=guarded + "TOOLSETS = []")) == []
    assert list(exports(make, a=guarded + listed, b="from a import parts, spare\nother = spare")) == ["parts"]
    assert list(exports(make, a=guarded, b="from a import parts\nTOOLSETS = {'mine': parts.prefixed('x')}")) == [
        "mine",
        "parts",
        "spare",
    ]


def test_a_toolset_left_out_of_toolsets_is_not_exported_and_the_hint_shows_how(make: Make) -> None:
    code = TOOLSET + "spare = FunctionToolset()\nTOOLSETS = []"
    files = {"project.json": manifest(python_files=["a.py"], model="test"), "a.py": code}
    report = check_project(make({**files, "main.agent": agent("main", "toolsets: [spare]")}))

    [found] = [item for item in report.diagnostics if item.severity == "error"]
    assert (found.code, found.file, found.line) == ("LD201", "main.agent", 3)
    assert found.hint == "a.py defines it but doesn't export it: add it to TOOLSETS, as in TOOLSETS = [spare]"


@each_row(
    "code, listed, exported",
    [
        (TOOLSET + "spare = FunctionToolset(id='parts')\nTOOLSETS = [spare]", "toolsets: [spare]", "parts"),
        (TOOLSET + "spare = FunctionToolset(id='parts')", "toolsets: [spare]", "parts"),
        (TOOLSET + "spare = FunctionToolset()\nTOOLSETS = {'parts': spare}", "toolsets: [spare]", "parts"),
        ("def add(): ...\nTOOLS = {'plus': add}", "tools: [add]", "plus"),
        ("from llm_do import tool\n@tool(name='plus')\ndef add(): ...\nTOOLS = [add]", "tools: [add]", "plus"),
    ],
)
def test_the_hint_for_a_bound_name_is_the_name_of_the_export(make: Make, code: str, listed: str, exported: str) -> None:
    files = {"project.json": manifest(python_files=["*.py"], model="test"), "a.py": code, "b.py": "from a import *"}
    report = check_project(make({**files, "main.agent": agent("main", listed)}))

    [found] = [item for item in report.diagnostics if item.severity == "error"]
    assert (found.code, found.file) == ("LD201", "main.agent")
    assert found.hint == f"a.py exports it as `{exported}`: write that name"


@each_row(
    "code, listed",
    [
        ("def 数える(x: str) -> str: ...\nTOOLS = [数える]", "tools: [数える]"),
        ("def find(x: str) -> str: ...\nTOOLS = {'look up': find}", "tools: [find]"),
        ("def find(x: str) -> str: ...\nTOOLS = {'look up': find}", "tools: [look up]"),
        (TOOLSET + "spare = FunctionToolset()\nTOOLSETS = {'a b': spare}", "toolsets: [spare]"),
    ],
)
def test_what_is_exported_under_an_invalid_name_is_not_called_missing(make: Make, code: str, listed: str) -> None:
    files = {"project.json": manifest(python_files=["a.py"], model="test"), "a.py": code}
    report = check_project(make({**files, "main.agent": agent("main", listed)}))

    assert [item.code for item in report.diagnostics if item.severity == "error"] == ["LD209"]


def test_a_toolset_with_a_private_name_is_not_exported(make: Make) -> None:
    private = TOOLSET + "_raw = FunctionToolset(id='raw')\nparts = _raw.approval_required()"

    assert list(exports(make, a=private)) == ["parts"]
    assert list(exports(make, a=private, b="from a import _raw as raw")) == ["parts"]
    assert list(exports(make, a=private + "\nTOOLSETS = [_raw]")) == ["raw"]


def test_the_same_object_exported_twice_counts_once(make: Make) -> None:
    assert exports(
        make,
        a="from b import kit, add\nTOOLSETS = [kit]\nTOOLS = [add, add]",
        b=TOOLSET + "def add(): ...\nkit = FunctionToolset()\nTOOLSETS = {'kit': kit}\nTOOLS = [add]",
        c="from b import kit as other\nmine = other\ndef make(ctx): ...\nTOOLSETS = [make]\n__all__ = ['make']",
    ) == {"kit": "toolset", "make": "toolset", "add": "tool"}


def test_factories_are_not_called(make: Make) -> None:
    code = (
        "def make(ctx):\n    raise RuntimeError\nasync def late(ctx):\n    raise RuntimeError\nTOOLSETS = [make, late]"
    )
    assert list(exports(make, a=code)) == ["make", "late"]


def test_agents_are_exported_under_their_names(make: Make) -> None:
    code = "from llm_do import AgentSpec\nw = AgentSpec('writer')\nAGENTS = {}"
    assert exports(make, a=code.replace("{}", "[w]")) == {"writer": "agent"}
    assert exports(make, a=code.replace("{}", "{'writer': w}")) == {"writer": "agent"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("TOOLS = 5", ("LD304", 1, 1, "TOOLS is 5, not a dict or a list")),
        ("x = 1\nTOOLSETS = {1}", ("LD304", 2, 1, "TOOLSETS is a set, not a dict or a list")),
        ("__all__ = 'add'", ("LD304", 1, 1, "__all__ is 'add', not a list of names")),
        ("TOOLS = [5]", ("LD305", 1, 10, "TOOLS holds 5, which is not a function or a tool object")),
        ("TOOLS = {'a': None}", ("LD305", 1, 10, "TOOLS['a'] holds None, which is not a function or a tool object")),
        ("TOOLS = [int]", ("LD305", 1, 10, "TOOLS holds the class int, which is not a function or a tool object")),
        (
            TOOLSET + "TOOLSETS = [FunctionToolset]",
            (
                "LD305",
                2,
                13,
                "TOOLSETS holds the class FunctionToolset, which is not a toolset or a factory `(ctx) -> toolset`",
            ),
        ),
        (
            "def make(): ...\nTOOLSETS = [make]",
            ("LD305", 2, 13, "TOOLSETS holds a function, which is not a toolset or a factory `(ctx) -> toolset`"),
        ),
        (
            TOOLSET + "TOOLS = [FunctionToolset()]",
            ("LD305", 2, 10, "TOOLS holds a FunctionToolset, which is not a function or a tool object"),
        ),
        ("AGENTS = ['writer']", ("LD305", 1, 11, "AGENTS holds 'writer', which is not an AgentSpec")),
        (
            TOOLSET + "TOOLSETS = [\n  FunctionToolset()]",
            ("LD306", 3, 3, "a member of TOOLSETS has no name: a FunctionToolset"),
        ),
        ("TOOLS = [lambda: 1]", ("LD306", 1, 10, "a member of TOOLS has no name: a function")),
        ("__all__ = ['ok', 'gone']\nok = 1", ("LD307", 1, 18, "__all__ has 'gone', which x.py doesn't define")),
        ("__all__ = [5]", ("LD307", 1, 12, "__all__ has 5, which x.py doesn't define")),
        (
            "from llm_do import AgentSpec\nAGENTS = {'a': AgentSpec('b')}",
            ("LD308", 2, 11, "the agent is called 'b', but its key in AGENTS is 'a'"),
        ),
        ("def f(): ...\nTOOLS = {'look up': f}", ("LD209", 2, 10, "'look up' can't be the name of a tool")),
        ("def f(): ...\nTOOLS = {7: f}", ("LD209", 2, 1, "TOOLS has a key that is not a name: 7")),
        (
            "from functools import partial\nTOOLS = {'two': partial(int, '2')}",
            ("LD305", 2, 10, "TOOLS['two'] holds a partial, which is not a function or a tool object"),
        ),
        ("def f(): ...\nTOOLS = {'': f}", ("LD209", 2, 10, "'' can't be the name of a tool")),
        ("def grüße(): ...\n__all__ = ['grüße']", ("LD209", 2, 12, "'grüße' can't be the name of a tool")),
    ],
)
def test_an_invalid_export_is_reported_with_its_location(
    make: Make, code: str, expected: tuple[str, int, int, str]
) -> None:
    assert faults(make, code) == [expected]


def test_objects_that_raise_on_inspection_give_a_diagnostic(make: Make) -> None:
    code = TOOLSET + "class Odd(FunctionToolset):\n    @property\n    def id(self): raise OSError\nx = Odd()"
    assert faults(make, code) == [("LD305", 1, 1, "reading the exports raised OSError")]


def test_an_entry_function_in_all_is_not_a_tool(make: Make) -> None:
    root = make(
        {
            "project.json": {"version": 1, "entry": {"function": "main.py:main"}, "python_files": ["main.py"]},
            "main.py": "def main(input, ctx): ...\ndef help(): ...\n__all__ = ['main', 'help']",
        }
    )
    project = check_project(root).project
    assert project is not None
    assert list(project.registry) == ["help"]
