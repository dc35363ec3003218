"""Python files as 0.3's projects write them: plain tools, tool objects, partials, input models beside their agent."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import Project, RunResult, Runtime
from llm_do.errors import LinkError
from tests.support.history import results_of
from tests.support.runs import carry_out
from tests.support.scripted import ScriptedModel, call, script


def project(folder: Path, files: dict[str, str], **manifest: Any) -> Project:
    """Link a project of these files; agents and Python files at the root are listed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text), encoding="utf-8")
    data = {"version": 1, "runtime": {}, "entry": {"agent": "main"}, "agent_files": ["**/*.agent"], **manifest}
    if any(name.endswith(".py") and "/" not in name for name in files) and "python_files" not in data:
        data["python_files"] = ["*.py"]
    (folder / "project.json").write_text(json.dumps(data), encoding="utf-8")
    return Project.load(folder)


def carried_out(linked: Project, *turns: Any) -> tuple[RunResult, ScriptedModel]:
    model = script(*turns, "done")
    return carry_out(Runtime(linked, model=model, approvals="approve_all")), model


def results(result: RunResult) -> list[str]:
    return [text for _, _, text in results_of(result.messages)]


PLAIN = """\
    from pydantic_ai import FunctionToolset, RunContext

    math = FunctionToolset(id="math")

    @math.tool
    def add(a: int, b: int) -> int:
        return a + b

    @math.tool
    async def negate(a: int) -> int:
        return -a

    @math.tool
    def now() -> str:
        return "noon"

    @math.tool
    def echo(text) -> str:
        return f"{text}!"

    @math.tool(name="who")
    def me(ctx: RunContext) -> str:
        return ctx.deps.path

    @math.tool
    def where(ctx) -> str:
        return ctx.deps.path
    """
FORMS = {
    "an instance at module level": PLAIN,
    "an instance in TOOLSETS": PLAIN + "\n    TOOLSETS = {'math': math}\n",
    "an instance in a list": PLAIN + "\n    TOOLSETS = [math]\n",
    "a factory in TOOLSETS": "    def make(ctx):\n"
    + dedent(PLAIN).replace("\n", "\n        ").join(["        ", ""])
    + "\n        return math\n    TOOLSETS = {'math': make}\n",
}


# In a factory, annotations that are read later couldn't name what the factory itself imports.
@pytest.mark.parametrize(
    ("form", "postponed"),
    [(form, late) for form in FORMS for late in (False, True) if not (late and "factory" in form)],
)
def test_a_function_without_a_context_is_a_tool_of_a_toolset(tmp_path: Path, form: str, postponed: bool) -> None:
    head = "from __future__ import annotations\n" if postponed else ""
    agent = "---\nname: main\ntoolsets: [math]\n---\nHelp.\n"
    linked = project(tmp_path, {"main.agent": agent, "toolsets.py": head + dedent(FORMS[form])})
    calls = [
        call("add", a=1, b=2),
        call("negate", a=3),
        call("now"),
        call("echo", text="hi"),
        call("who"),
        call("where"),
    ]
    result, model = carried_out(linked, calls)

    assert linked.warnings == ()
    assert results(result) == ["3", "-3", "noon", "hi!", "main", "main"]
    schemas = {
        tool.name: sorted(tool.parameters_json_schema["properties"]) for tool in model.asked[0].info.function_tools
    }
    assert schemas == {"add": ["a", "b"], "negate": ["a"], "now": [], "echo": ["text"], "who": [], "where": []}


def test_other_code_of_the_process_sees_what_pydantic_ai_does(tmp_path: Path) -> None:
    project(tmp_path, {"main.agent": "---\nname: main\ntoolsets: [math]\n---\n", "toolsets.py": dedent(PLAIN)})

    with pytest.raises(Exception, match="First parameter of tools that take context"):

        @FunctionToolset().tool  # type: ignore[arg-type]
        def add(a: int) -> int:
            return a


ALL = """\
    from llm_do import Tool
    from pydantic_ai import Tool as PydanticTool

    class Shout(Tool):
        name = "shout"
        parameters = {"type": "object", "properties": {"text": {"type": "string"}}}

        async def execute(self, **kwargs):
            return kwargs["text"].upper()

    def whisper(text: str) -> str:
        return text.lower()

    loud = Shout()
    quiet = PydanticTool(whisper, name="whisper")
    LIMIT = 3
    __all__ = ["Shout", "loud", "quiet", "LIMIT"]
    """


def test_a_tool_object_in_all_is_exported(tmp_path: Path) -> None:
    agent = "---\nname: main\ntools: [loud, quiet]\n---\nHelp.\n"
    result, _ = carried_out(
        project(tmp_path, {"main.agent": agent, "tools.py": ALL}), [call("loud", text="a"), call("quiet", text="B")]
    )

    assert results(result) == ["A", "b"]


PARTIALS = """\
    from __future__ import annotations
    import functools
    from pydantic_ai import RunContext
    from llm_do import CallContext, tool

    @tool(approval="allow")
    def send(ctx: RunContext[CallContext], user: str, text: str, times: int = 1) -> str:
        \"\"\"Send a text.

        Args:
            text: What to send.
        \"\"\"
        return f"{ctx.deps.path}: {text} to {user} x{times}"

    async def fetch(url: str, retries: int) -> str:
        \"\"\"Fetch a page.\"\"\"
        return f"{url} after {retries}"

    TOOLS = [functools.partial(send, user="ann"), functools.partial(fetch, retries=3)]
    """


def test_a_partial_is_a_tool_without_what_it_binds(tmp_path: Path) -> None:
    agent = "---\nname: main\ntools: [send, fetch]\n---\nHelp.\n"
    linked = project(tmp_path, {"main.agent": agent, "tools.py": PARTIALS})
    result, model = carried_out(
        linked, [call("send", text="hi"), call("fetch", url="u"), call("send", text="hi", user="eve")]
    )

    assert results(result)[:2] == ["main: hi to ann x1", "u after 3"]
    assert "user" in results(result)[2], "a model can't choose what is bound"
    send, fetch = model.asked[0].info.function_tools
    assert (send.description, sorted(send.parameters_json_schema["properties"])) == ("Send a text.", ["text", "times"])
    assert send.parameters_json_schema["properties"]["text"]["description"] == "What to send."
    assert (fetch.description, list(fetch.parameters_json_schema["properties"])) == ("Fetch a page.", ["url"])


def test_a_partial_has_the_options_of_its_function(tmp_path: Path) -> None:
    agent = "---\nname: main\ntools: [send, fetch]\n---\nHelp.\n"
    linked = project(tmp_path, {"main.agent": agent, "tools.py": PARTIALS})
    result = carry_out(Runtime(linked, model=script([call("send", text="hi"), call("fetch", url="u")], "done")))

    assert [denial.tool for denial in result.denials] == ["fetch"]


def test_a_partial_without_a_name_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    files = {
        "main.agent": "---\nname: main\ntools: [x]\n---\n",
        "tools.py": "import functools\nTOOLS = [functools.partial(lambda a, b: a, 1)]\n",
    }
    with pytest.raises(LinkError) as raised:
        project(tmp_path, files)

    found = next(item for item in raised.value.diagnostics if item.file == "tools.py")
    assert found.code == "LD306"
    assert "dict of names" in str(found.hint)


SCHEMAS = """\
    from llm_do.runtime import AgentArgs

    class Pitch(AgentArgs):
        company: str

        def prompt_messages(self):
            return [f"Judge {self.company}."]

    def helper(text: str) -> str:
        return text

    TOOLS = [helper]
    """


@pytest.mark.parametrize("reference", ["schemas.py:Pitch", "schemas.Pitch", "./schemas.py:Pitch"])
@pytest.mark.parametrize("folder", ["", "agents/"])
def test_an_input_model_may_stand_beside_its_agent_unlisted(tmp_path: Path, folder: str, reference: str) -> None:
    files = {
        f"{folder}main.agent": f"---\nname: main\ninput_model_ref: {reference}\n---\nHelp.\n",
        f"{folder}schemas.py": SCHEMAS,
    }
    linked = project(tmp_path, files, python_files=[])
    model = script("done")
    result = carry_out(Runtime(linked, model=model), {"company": "Acme"})

    assert linked.warnings == ()
    assert result.output == "done"
    assert model.asked[0].prompt == "Judge Acme."
    assert "helper" not in linked.registry
    assert [path.name for path in linked.python_files] == ["schemas.py"]


def test_the_file_beside_the_agent_comes_before_the_one_at_the_root(tmp_path: Path) -> None:
    agent = "---\nname: main\ninput_model_ref: schemas.py:Pitch\n---\nHelp.\n"
    files = {"agents/main.agent": agent, "agents/schemas.py": SCHEMAS, "schemas.py": SCHEMAS.replace("Judge", "Praise")}
    model = script("done")
    carry_out(Runtime(project(tmp_path, files), model=model), {"company": "Acme"})

    assert model.asked[0].prompt == "Judge Acme."


@pytest.mark.parametrize("reference", ["../outside.py:Pitch", "/etc/x.py:Pitch", "outside.py:Pitch"])
def test_an_input_model_outside_the_project_is_not_imported(tmp_path: Path, reference: str) -> None:
    (tmp_path / "outside.py").write_text("raise SystemExit\n")
    root = tmp_path / "project"
    root.mkdir()
    (root / "outside.py").symlink_to(tmp_path / "outside.py")

    with pytest.raises(LinkError) as raised:
        project(root, {"main.agent": f"---\nname: main\ninput_model_ref: {reference}\n---\n"}, python_files=[])
    assert {item.code for item in raised.value.diagnostics} <= {"LD210", "LD109", "LD112", "LD120", "LD121"}
