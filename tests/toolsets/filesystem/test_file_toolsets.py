"""The file toolsets: built-in, configured in a manifest, and those of 0.3."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do.errors import UsageError
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.filesystem import (
    FileSystemToolset,
    ReadOnlyFileSystemToolset,
    filesystem_cwd,
    filesystem_cwd_ro,
    filesystem_project,
    filesystem_project_ro,
)
from tests.toolsets.filesystem.support import caller, configured, context


def test_the_factories_differ_in_root_and_tools(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    ctx = BuiltinContext("files", project_root=tmp_path / "there", cwd=tmp_path / "here")
    (tmp_path / "here" / "here.txt").touch()
    (tmp_path / "there" / "there.txt").touch()
    reading = ["read_file", "list_files", "search_files"]
    writing = ["write_file", "edit_file", "make_directory", "move_file", "delete_file"]
    for factory, root, tools in (
        (filesystem_cwd, "here", [*reading, *writing]),
        (filesystem_cwd_ro, "here", reading),
        (filesystem_project, "there", [*reading, *writing]),
        (filesystem_project_ro, "there", reading),
    ):
        toolset = factory(ctx)
        assert list(toolset.tools) == tools
        assert caller(toolset)("list_files") == f"{root}.txt"


def test_schemas_are_built_once_and_toolsets_keep_their_own_roots(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    first, second = (filesystem_project(context(tmp_path / name)) for name in ("one", "two"))
    for name, tool in first.tools.items():
        assert tool.function_schema.validator is second.tools[name].function_schema.validator
    assert caller(first)("read_file", path="x") == "one"
    assert caller(second)("read_file", path="x") == "two"


def test_every_parameter_is_described_to_the_model(project: Path) -> None:
    for toolset in (filesystem_project(context(project)), FileSystemToolset()):
        for tool in toolset.tools.values():
            properties = tool.function_schema.json_schema["properties"]
            assert tool.description
            assert "self" not in properties
            assert all(each["description"] for each in properties.values())


def test_options_take_effect(project: Path) -> None:
    (project / "docs").mkdir()
    (project / "docs/a.bin").touch()
    (project / "docs/.env.example").write_text("NAME=")
    toolset = configured(
        project,
        type="filesystem",
        root="docs",
        read_only=True,
        ignore=["**/*.bin"],
        allow_protected=[".env.example"],
    )
    assert list(toolset.tools) == ["read_file", "list_files", "search_files"]
    assert caller(toolset)("list_files") == ".env.example"
    assert caller(toolset)("read_file", path=".env.example") == "NAME="


@pytest.mark.parametrize(
    "options", [{"roots": "x"}, {"root": 3}, {"read_only": "yes"}, {"ignore": "*.bin"}, {"allow_protected": [1]}]
)
def test_an_invalid_option_is_an_error(project: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="the toolset files: `"):
        configured(project, **options)


def test_legacy_reads_return_the_same_dictionary(project: Path) -> None:
    (project / "a.txt").write_text("hello world")
    call = caller(FileSystemToolset({"base_path": str(project), "read_approval": False}, id="fs", max_retries=2))
    assert call("read_file", path="a.txt") == {
        "content": "hello world",
        "truncated": False,
        "total_chars": 11,
        "offset": 0,
        "chars_read": 11,
    }
    assert call("read_file", path="a.txt", max_chars=5, offset=6)["content"] == "world"
    assert call("write_file", path="b/c.txt", content="x") == "Made b/c.txt, 1 byte"
    assert call("list_files") == ["a.txt", "b/c.txt"]
    assert call("list_files", path="b", pattern="*.txt") == ["b/c.txt"]


def test_a_truncated_legacy_list_says_so(project: Path) -> None:
    for n in range(1001):
        (project / f"{n:04}").touch()
    files = caller(FileSystemToolset({"base_path": project}))("list_files")
    assert files[0] == "0000"
    assert files[999:] == ["0999", "[the first 1,000; narrow path or pattern for others]"]


def test_the_legacy_read_only_toolset_has_no_write(project: Path) -> None:
    assert list(ReadOnlyFileSystemToolset({"base_path": project}).tools) == ["read_file", "list_files"]


def test_an_unknown_legacy_option_is_an_error() -> None:
    with pytest.raises(UsageError, match="has no option 'root'"):
        FileSystemToolset({"root": "."})  # pyright: ignore[reportArgumentType]


def test_an_agent_uses_the_tools(project: Path) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("write_file", {"path": "a.txt", "content": "hi"}, "1")])
        if len(messages) == 3:
            return ModelResponse([ToolCallPart("read_file", {"path": "a.txt"}, "2")])
        returned = messages[-1].parts[-1]
        assert isinstance(returned, ToolReturnPart)
        return ModelResponse([TextPart(str(returned.content))])

    agent = Agent(FunctionModel(model), toolsets=[filesystem_project(context(project))])
    assert asyncio.run(agent.run("go")).output == "hi"
