"""An exception of a project's own code is reported with the function, the exception, and its file and line."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic_ai.models.function import FunctionModel

from llm_do import Project, RunResult, Runtime
from llm_do.project.faults import find_fault
from llm_do.threads import ObservationManager, memory_store
from tests.cli.cli_processes import run_forked
from tests.support.runs import Heard, agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def project(folder: Path, code: str, agent: str = "", **manifest: Any) -> Project:
    """Link a project whose file tools.py has this code; the line with the comment `here` is at fault."""
    (folder / "tools.py").write_text(dedent(code), encoding="utf-8")
    (folder / "main.agent").write_text(f"---\nname: main\n{agent}\n---\nHelp.\n", encoding="utf-8")
    entry = manifest.pop("entry", {"agent": "main"})
    data = {"version": 1, "entry": entry, "agent_files": ["main.agent"], "python_files": ["tools.py"], **manifest}
    (folder / "project.json").write_text(json.dumps(data), encoding="utf-8")
    return Project.load(folder)


def line_of(folder: Path, mark: str = "# here") -> int:
    lines = (folder / "tools.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(mark))


def carried_out(linked: Project, *turns: Any, **options: Any) -> tuple[RunResult, Heard]:
    """Run a project whose model calls `add` and then answers, unless it has turns of its own."""
    model = script(*(turns or (call("add", a=1), "answer")))
    runtime = Runtime(linked, model=model, approvals="approve_all", **options)
    ear = heard(runtime)
    return carry_out(runtime), ear


TOOLS: dict[str, tuple[str, str]] = {
    "a function": ("def add(a: int) -> int:\n    return {}['x']  # here\nTOOLS = [add]", "tools: [add]"),
    "an async function": ("async def add(a: int) -> int:\n    return {}['x']  # here\nTOOLS = [add]", "tools: [add]"),
    "what a function calls": (
        "def look(key):\n    return {}[key]  # here\ndef add(a: int) -> int:\n    return look('x')\nTOOLS = [add]",
        "tools: [add]",
    ),
    "a library that a function calls": (
        "import json\nclass Bad(dict):\n    def items(self): raise KeyError('x')\n"
        "def add(a: int) -> str:\n    return str(json.loads('{}', object_pairs_hook=lambda p: {}['x']))  # here\n"
        "TOOLS = [add]",
        "tools: [add]",
    ),
    "a generator": (
        "def add(a: int):\n    yield 1\n    yield {}['x']  # here\nTOOLS = [add]",
        "tools: [add]",
    ),
    "a tool object": (
        "from llm_do import Tool\nclass Add(Tool):\n    name = 'add'\n    parameters = {'type': 'object'}\n"
        "    async def execute(self, **kwargs):\n        return {}['x']  # here\nTOOLS = [Add()]",
        "tools: [add]",
    ),
    "a toolset": (
        "from pydantic_ai import FunctionToolset\nmath = FunctionToolset(id='math')\n@math.tool_plain\n"
        "def add(a: int) -> int:\n    return {}['x']  # here",
        "toolsets: [math]",
    ),
    "a toolset of a factory": (
        "from pydantic_ai import FunctionToolset\ndef math(ctx):\n    def add(a: int) -> int:\n"
        "        return {}['x']  # here\n    return FunctionToolset([add])\nTOOLSETS = [math]",
        "toolsets: [math]",
    ),
    "a toolkit": (
        "from llm_do import Toolkit\nmath = Toolkit('math')\n@math.tool\n"
        "def add(ctx, a: int) -> int:\n    return {}['x']  # here",
        "toolsets: [math]",
    ),
    "a decorated function": (
        "from llm_do.toolkits import retry\n@retry(2)\ndef add(a: int) -> int:\n    return {}['x']  # here\n"
        "TOOLS = [add]",
        "tools: [add]",
    ),
    "a task group": (
        "import asyncio\nasync def look():\n    return {}['x']  # here\nasync def add(a: int) -> int:\n"
        "    async with asyncio.TaskGroup() as group:\n        group.create_task(look())\n    return 1\nTOOLS = [add]",
        "tools: [add]",
    ),
}


@pytest.mark.parametrize("kind", TOOLS)
def test_the_fault_of_a_tool_has_its_place(tmp_path: Path, kind: str) -> None:
    code, declared = TOOLS[kind]
    result, ear = carried_out(project(tmp_path, code, declared))

    (record,) = result.errors
    assert (record.type, record.message, record.agent_path) == ("KeyError", "add raised KeyError: 'x'", "main")
    assert (record.file, record.line) == ("tools.py", line_of(tmp_path))
    (event,) = ear.of("tool_result")
    assert event.status == "failed"
    assert event.error == record.to_dict()
    assert event.result == "KeyError: 'x'"
    assert result.output == "answer"


STARTS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "an entry function": (
        "def start(input, ctx):\n    return {}['x']  # here",
        "",
        {"entry": {"function": "tools.py:start"}},
        "start raised KeyError: 'x'",
    ),
    "an async entry function": (
        "async def start(input, ctx):\n    return {}['x']  # here",
        "",
        {"entry": {"function": "tools.py:start"}},
        "start raised KeyError: 'x'",
    ),
    "a function that the entry calls": (
        "def add(a: int) -> int:\n    return {}['x']  # here\nasync def start(input, ctx):\n"
        "    return await ctx.call('add', {'a': 1})\nTOOLS = [add]",
        "",
        {"entry": {"function": "tools.py:start"}},
        "start raised KeyError: 'x'",
    ),
    "a step of a flow": (
        "def step(input, ctx):\n    return {}['x']  # here\nTOOLS = [step]",
        "",
        {"entry": {"flow": "all"}, "flows": {"all": {"mode": "workflow", "flow": "step >> main"}}},
        "step raised KeyError: 'x'",
    ),
    "a toolset factory": (
        "def math(ctx):\n    return {}['x']  # here\nTOOLSETS = [math]",
        "toolsets: [math]",
        {},
        "the toolset 'math' can't be made: KeyError: 'x'",
    ),
    "an input model's prompt": (
        "from llm_do import AgentArgs\nclass Pitch(AgentArgs):\n    input: str\n"
        "    def prompt_messages(self):\n        return [{}['x']]  # here",
        "input_model_ref: tools.py:Pitch",
        {},
        "agent 'main' can't run: KeyError: 'x'",
    ),
    "an output model": (
        "from pydantic import BaseModel, field_validator\nclass Sum(BaseModel):\n    a: int\n"
        "    @field_validator('a')\n    @classmethod\n    def check(cls, value):\n        return {}['x']  # here",
        "output_model_ref: tools.py:Sum",
        {},
        "agent 'main' can't run: KeyError: 'x'",
    ),
}


@pytest.mark.parametrize("kind", STARTS)
def test_the_fault_that_ends_a_run_has_its_place(tmp_path: Path, kind: str) -> None:
    code, declared, manifest, message = STARTS[kind]
    result, ear = carried_out(project(tmp_path, code, declared, **manifest), call("final_result", a=1))

    assert result.status == "failed"
    (last,) = [record for record in result.errors if record.exception is result.error]
    assert (last.message, last.file, last.line) == (message, "tools.py", line_of(tmp_path))
    assert ear.events[-1].error == last.to_dict()
    assert isinstance(result.error.__cause__, KeyError)  # type: ignore[union-attr]


def test_the_fault_of_a_hook_has_its_place(tmp_path: Path) -> None:
    code = "def watch(**data):\n    return {}['x']  # here"
    linked = project(tmp_path, code, "hooks: {pre_llm_call: ['tools.py:watch']}")
    result, ear = carried_out(linked, "answer")

    assert type(result.error) is KeyError
    assert (result.errors[-1].file, result.errors[-1].line) == ("tools.py", line_of(tmp_path))
    assert ear.events[-1].error["line"] == line_of(tmp_path)
    assert result.error.__notes__ == ["raised by the hook watch at pre_llm_call (tools.py:2)"]


def test_the_fault_of_a_context_provider_has_its_place(tmp_path: Path) -> None:
    code = "def news(ctx):\n    return {}['x']  # here"
    linked = project(tmp_path, code, "context_providers: ['tools.py:news']")
    result, _ = carried_out(linked, "answer")

    (warning,) = result.warnings
    assert warning.message == "the context provider news failed: KeyError: 'x' (tools.py:2)"


def test_a_function_that_another_calls_is_named_once(tmp_path: Path) -> None:
    code = """\
    def look(key: str) -> str:
        return {}[key]  # here

    async def add(ctx: RunContext[CallContext], a: int) -> str:
        return await ctx.deps.call("look", {"key": "x"})

    TOOLS = [look, add]
    """
    head = "from pydantic_ai import RunContext\nfrom llm_do import CallContext\n"
    result, _ = carried_out(project(tmp_path, head + dedent(code), "tools: [add]"))

    (record,) = result.errors
    assert (record.message, record.agent_path) == ("look raised KeyError: 'x'", "main/look")
    assert record.line == line_of(tmp_path)


def test_a_tool_that_fails_on_purpose_is_not_at_fault(tmp_path: Path) -> None:
    code = "from llm_do import ToolError\ndef add(a: int) -> int:\n    raise ToolError('too much')\nTOOLS = [add]"
    result, ear = carried_out(project(tmp_path, code, "tools: [add]"))

    assert result.errors == []
    assert ear.of("tool_result")[0].error["message"] == "too much"


def test_a_tool_that_ends_the_run_says_where(tmp_path: Path) -> None:
    code, declared = TOOLS["a function"]
    result, _ = carried_out(project(tmp_path, code, declared, runtime={"on_tool_error": "raise"}))

    (record,) = result.errors
    assert (record.type, record.message) == ("ToolFailedError", "add raised KeyError: 'x'")
    assert (record.file, record.line) == ("tools.py", 2)


def test_the_journal_keeps_the_place(tmp_path: Path) -> None:
    code, declared = TOOLS["a function"]
    store = memory_store()
    carried_out(project(tmp_path, code, declared), store=store, record=True)

    import asyncio

    found = asyncio.run(ObservationManager(store).get(types=["tool_result"]))
    assert [item.data["error"]["line"] for item in found] == [2]


def test_a_library_inside_the_project_is_not_the_projects_own(tmp_path: Path) -> None:
    folder = tmp_path / ".venv" / "lib" / "python3" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "far_away.py").write_text("def look():\n    return {}['x']\n")
    code = f"""\
    import sys

    def add(a: int) -> int:
        sys.path.insert(0, {str(folder)!r})
        try:
            import far_away
            return far_away.look()  # here
        finally:
            sys.path.remove({str(folder)!r})
            sys.modules.pop("far_away", None)

    TOOLS = [add]
    """
    result, _ = carried_out(project(tmp_path, code, "tools: [add]"))

    assert (result.errors[0].file, result.errors[0].line) == ("tools.py", line_of(tmp_path))


def fails(a: int) -> int:
    """Fail."""
    return {}["x"]  # a tool of no project


def test_a_function_outside_the_projects_folder_has_a_place_too(tmp_path: Path) -> None:
    result = carry_out(runtime_of([agent("main", script(call("fails", a=1), "end"), tools=[fails])], root=tmp_path))

    assert Path(str(result.errors[0].file)).name == Path(__file__).name
    assert result.errors[0].line == fails.__code__.co_firstlineno + 2


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 (any kind)
        return caught


def caused(error: Exception, cause: BaseException) -> BaseException:
    try:
        raise error from cause
    except Exception as caught:  # noqa: BLE001 (any kind)
        return caught


NESTED = [
    (KeyError("x"), "KeyError: 'x'"),
    (KeyError(), "KeyError"),
    (ExceptionGroup("g", [KeyError("x")]), "KeyError: 'x'"),
    (ExceptionGroup("g", [ExceptionGroup("h", [KeyError("x")])]), "KeyError: 'x'"),
    (ExceptionGroup("g", [KeyError("x"), ValueError(), ValueError()]), "KeyError: 'x' and 2 more"),
    (caused(RuntimeError("no config"), KeyError("x")), "RuntimeError: no config, caused by KeyError: 'x'"),
    (caused(RuntimeError(), KeyError("x")), "RuntimeError: caused by KeyError: 'x'"),
    (
        caused(RuntimeError("a"), caused(ValueError("b"), KeyError("x"))),
        "RuntimeError: a, caused by KeyError: 'x'",
    ),
    (
        caused(RuntimeError("a"), ExceptionGroup("g", [KeyError("x"), OSError()])),
        "RuntimeError: a, caused by KeyError: 'x' and 1 more",
    ),
    (ExceptionGroup("g", [caused(RuntimeError("a"), KeyError("x"))]), "RuntimeError: a, caused by KeyError: 'x'"),
]


@each_row("error, text", NESTED)
def test_the_innermost_exception_is_named(error: BaseException, text: str) -> None:
    assert find_fault(error).text == text


def test_a_circle_of_causes_has_an_end() -> None:
    error = KeyError("x")
    error.__cause__ = error

    assert find_fault(error).text == "KeyError: 'x'"


def test_the_place_is_that_of_the_innermost_exception() -> None:
    inner = raised(KeyError("x"))
    error = caused(RuntimeError("a"), inner)

    assert find_fault(error).line == inner.__traceback__.tb_lineno  # type: ignore[union-attr]
    assert find_fault(caused(RuntimeError("a"), KeyError("never raised"))).line is not None


def test_a_message_of_any_length_is_a_line() -> None:
    fault = find_fault(KeyError("x" * 100_000))

    assert len(fault.message) == 4000


@pytest.mark.parametrize("debug", [False, True])
def test_the_command_line_prints_the_fault(tmp_path: Path, debug: bool) -> None:
    code, declared = TOOLS["a function"]
    project(tmp_path, code, f"model: script:answers.yaml\n{declared}")
    (tmp_path / "answers.yaml").write_text("- tools: [{name: add, args: {a: 1}}]\n- text: done\n")
    ended = run_forked("run", str(tmp_path), "Go", "--approve-all", *(["--debug"] if debug else []))

    assert (ended.code, ended.out) == (0, "done\n")
    assert "error: add raised KeyError: 'x' (main, tools.py:2)." in ended.err
    assert ("Traceback" in ended.err) is debug
    assert ("return {}['x']  # here" in ended.err) is debug


MODEL = """
from pydantic_ai.models.function import FunctionModel
from llm_do.models import register_model_factory


def answer(messages, info):
    return {}["x"]  # here


register_model_factory("acme", lambda name: FunctionModel(answer))
"""


@each_row("models", [["acme:a"], ["acme:a", "acme:b"]])
def test_a_model_of_the_projects_own_is_reported_with_its_line(tmp_path: Path, models: list[str]) -> None:
    result = carry_out(Runtime(project(tmp_path, MODEL, f"model: {json.dumps(models)}")))

    [record] = result.errors
    assert result.status == "provider_failed"
    assert "KeyError: 'x'" in record.message
    assert (record.file, record.line) == ("tools.py", line_of(tmp_path))
    assert record.hint == "--debug shows the traceback."


def test_a_model_in_a_program_is_reported_with_its_line() -> None:
    def answer(messages: Any, info: Any) -> Any:
        raise RuntimeError("it broke")

    result = carry_out(runtime_of([agent("main", FunctionModel(answer))]))

    [record] = result.errors
    assert str(record.file).endswith("test_project_faults.py")
    assert record.line == answer.__code__.co_firstlineno + 1
