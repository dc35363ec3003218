from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from llm_do.errors import ToolError, UsageError
from llm_do.files.refusals import FileRefusedError
from llm_do.runtime.traits import BuiltinContext
from llm_do.toolsets.filesystem import (
    FileSystemToolset,
    ReadOnlyFileSystemToolset,
    configured,
    filesystem_cwd,
    filesystem_cwd_ro,
    filesystem_project,
    filesystem_project_ro,
)

Call = Callable[..., Any]

CONTEXT = RunContext[object](deps=None, model=TestModel(), usage=RunUsage())


def caller(toolset: FunctionToolset[object]) -> Call:
    """Call a tool as PydanticAI does: validate the arguments, then run it."""

    def call(name: str, **args: object) -> Any:
        async def run() -> Any:
            tool = (await toolset.get_tools(CONTEXT))[name]
            valid = tool.args_validator.validate_python(args)
            return await toolset.call_tool(name, valid, CONTEXT, tool)

        return asyncio.run(run())

    return call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def context(project: Path, **options: object) -> BuiltinContext:
    return BuiltinContext("files", project, project, [project / "tools.py"], options)


@pytest.fixture
def call(project: Path) -> Call:
    return caller(filesystem_project(context(project)))


def test_the_factories_differ_in_root_and_in_what_they_offer(tmp_path: Path) -> None:
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


def test_schemas_are_made_once_and_toolsets_keep_their_own_roots(tmp_path: Path) -> None:
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


class TestReading:
    def test_a_file_is_read_as_it_is(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_bytes("one\r\ntwö\n\n".encode())
        assert call("read_file", path="a.txt") == "one\r\ntwö\n\n"

    def test_offset_and_limit_count_lines(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("1\n2\n3\n4\n")
        assert call("read_file", path="a.txt", offset=2) == "3\n4\n"
        assert call("read_file", path="a.txt", offset=1, limit=2) == (
            "2\n3\n[lines 2 to 3; the file goes on at offset=3]"
        )
        assert call("read_file", path="a.txt", offset=2, limit=2) == "3\n4\n"
        assert call("read_file", path="a.txt", offset=4) == "[a.txt has no line after the first 4]"
        assert call("read_file", path="a.txt", offset=3, line_numbers=True) == "4\t4\n"

    def test_max_chars_counts_characters(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("äbcdef")
        assert call("read_file", path="a.txt", max_chars=3, offset=1) == {
            "content": "bcd",
            "truncated": True,
            "total_chars": 6,
            "offset": 1,
            "chars_read": 3,
        }

    def test_a_long_file_is_read_in_parts_that_make_it_up(self, call: Call, project: Path) -> None:
        text = "".join(f"line {n}\n" for n in range(4500))
        (project / "a.txt").write_text(text)
        parts: list[str] = []
        offset = 0
        while True:
            part = call("read_file", path="a.txt", offset=offset)
            if not part.endswith("]"):
                break
            part, _, note = part.rpartition("[")
            parts.append(part)
            offset = int(note.rpartition("=")[2].rstrip("]"))
        assert "".join([*parts, part]) == text
        assert offset == 4000

    def test_what_is_no_text_gives_a_short_result_that_says_so(self, call: Call, project: Path) -> None:
        (project / "a.bin").write_bytes(b"\x7fELF\0\0")
        (project / "empty").touch()
        (project / "latin").write_bytes(b"caf\xe9\n")
        assert call("read_file", path="a.bin") == "[a.bin is a binary file of 6 bytes; it is not shown]"
        assert call("read_file", path="empty") == "[empty is empty]"
        assert call("read_file", path="latin") == "caf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]"
        with pytest.raises(FileRefusedError, match="binary"):
            call("read_file", path="a.bin", max_chars=10)

    def test_a_replacement_character_in_a_file_is_no_fault_of_it(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("\ufffd")
        assert call("read_file", path="a.txt") == "\ufffd"

    def test_fifty_megabytes_are_read_in_little_memory(self, call: Call, project: Path) -> None:
        with (project / "lines").open("wb") as stream:
            for _ in range(50):
                stream.write(b"x" * 999_999 + b"\n")
        with (project / "line").open("wb") as stream:
            for _ in range(50):
                stream.write(b"y" * 1_000_000)
        call("read_file", path="lines")
        tracemalloc.start()
        try:
            assert call("read_file", path="lines").startswith("[lines is huge: 50,000,000 bytes")
            assert "line 41 is too long and cut" in call("read_file", path="lines", offset=40, limit=3)
            assert "line 1 is too long and cut" in call("read_file", path="line", limit=1)
            assert call("read_file", path="line", offset=49_999_990, max_chars=100)["content"] == "y" * 10
            assert call("search_files", pattern="z") == "[2 files larger than 5,000,000 bytes were not searched]"
            assert tracemalloc.get_traced_memory()[1] < 12_000_000
        finally:
            tracemalloc.stop()

    def test_a_line_is_cut_between_characters(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("x" + "ä" * 100_000)
        result = call("read_file", path="a.txt")
        assert "\ufffd" not in result
        assert result.startswith("xää")

    @pytest.mark.parametrize("args", [{"offset": -1}, {"limit": 0}, {"max_chars": 0}])
    def test_senseless_numbers_are_no_valid_arguments(self, call: Call, args: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="greater than"):
            call("read_file", path="a.txt", **args)


class TestWriting:
    def test_a_file_is_written_and_replaced(self, call: Call, project: Path) -> None:
        assert call("write_file", path="a/b.txt", content="ä\n") == "Made a/b.txt, 3 bytes"
        assert call("write_file", path="a/b.txt", content="") == "Replaced a/b.txt, 0 bytes"
        assert (project / "a/b.txt").read_bytes() == b""

    def test_an_edit_replaces_the_one_place(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("one two three")
        assert call("edit_file", path="a.txt", old="two", new="2") == "Edited a.txt"
        assert (project / "a.txt").read_text() == "one 2 three"

    @pytest.mark.parametrize(
        ("old", "new", "why"),
        [
            ("four", "4", "is not in it"),
            ("aa", "b", "more than once"),
            ("", "b", "is empty"),
            ("one", "one", "the same text"),
        ],
    )
    def test_an_edit_that_is_not_exact_changes_nothing(
        self, call: Call, project: Path, old: str, new: str, why: str
    ) -> None:
        (project / "a.txt").write_text("one aaa")
        with pytest.raises(FileRefusedError, match=why):
            call("edit_file", path="a.txt", old=old, new=new)
        assert (project / "a.txt").read_text() == "one aaa"

    def test_an_edit_keeps_the_line_ends_of_the_file(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
        call("edit_file", path="a.txt", old="one\ntwo\n", new="1\n2\n")
        assert (project / "a.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"

    def test_what_is_no_text_is_not_edited(self, call: Call, project: Path) -> None:
        (project / "latin").write_bytes(b"caf\xe9 a")
        (project / "bin").write_bytes(b"a\0")
        for path in ("latin", "bin"):
            before = (project / path).read_bytes()
            with pytest.raises(FileRefusedError) as caught:
                call("edit_file", path=path, old="a", new="b")
            assert caught.value.reason == "not_text"
            assert (project / path).read_bytes() == before

    def test_text_that_has_no_bytes_is_refused(self, call: Call, project: Path) -> None:
        toolset = filesystem_project(context(project))
        with pytest.raises(FileRefusedError, match="surrogate"):
            toolset.tools["write_file"].function("a.txt", "\ud800")  # pyright: ignore[reportCallIssue]
        assert list(project.iterdir()) == []

    def test_edits_at_the_same_time_are_all_kept(self, project: Path) -> None:
        (project / "a.txt").write_text("".join(f"<{n}>" for n in range(20)))
        function: Any = filesystem_project(context(project)).tools["edit_file"].function
        start = threading.Barrier(4)

        def edit(first: int) -> None:
            start.wait()
            for n in range(first, first + 5):
                function("a.txt", f"<{n}>", f"({n})")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(edit, range(0, 20, 5)))
        assert (project / "a.txt").read_text() == "".join(f"({n})" for n in range(20))

    def test_files_are_moved_deleted_and_folders_made(self, call: Call, project: Path) -> None:
        (project / "a.txt").write_text("x")
        assert call("make_directory", path="d/e") == "Made d/e"
        assert call("make_directory", path="d/e") == "d/e was there already"
        assert call("move_file", source="a.txt", target="d/e/b.txt") == "Moved a.txt to d/e/b.txt"
        assert (project / "d/e/b.txt").read_text() == "x"
        assert call("delete_file", path="d/e/b.txt") == "Deleted d/e/b.txt"
        assert list((project / "d/e").iterdir()) == []

    def test_a_move_onto_something_is_refused(self, call: Call, project: Path) -> None:
        (project / "a").write_text("a")
        (project / "b").write_text("b")
        with pytest.raises(FileRefusedError, match="something of that name already"):
            call("move_file", source="a", target="b")
        assert (project / "b").read_text() == "b"


class TestListing:
    def test_a_list_is_in_order_with_folders_marked(self, call: Call, project: Path) -> None:
        for path in ("b.md", "a/x.py", "a/c/y.py", ".git/config", "out/z"):
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).touch()
        (project / ".gitignore").write_text("out/\n")
        assert call("list_files") == ".gitignore\na/\na/c/\na/c/y.py\na/x.py\nb.md"
        assert call("list_files", pattern="*") == ".gitignore\na/\nb.md"
        assert call("list_files", pattern="./**/*.{py,md}") == "a/c/y.py\na/x.py\nb.md"
        assert call("list_files", path="a", pattern="*.py") == "a/x.py"
        assert call("list_files", path="out") == "out/z"
        assert call("list_files", pattern="*.c") == "[nothing in . matches *.c]"

    def test_a_list_is_bounded_and_says_so(self, call: Call, project: Path) -> None:
        for n in range(1100):
            (project / f"{n:04}").touch()
        lines = call("list_files").split("\n")
        assert lines[0] == "0000"
        assert lines[999:] == ["0999", "[the first 1,000; narrow path or pattern for others]"]

    def test_a_name_cannot_pass_for_two(self, call: Call, project: Path) -> None:
        (project / "a\nb\x1b[0m").touch()
        assert call("list_files") == "a\\nb\\x1b[0m"


class TestSearching:
    @pytest.fixture(autouse=True)
    def files(self, project: Path) -> None:
        (project / "src").mkdir()
        (project / "src/a.py").write_text("import os\n# TODO: this\r\n\nos.getcwd()\n")
        (project / "b.md").write_text("to do\nTODO that\n")
        (project / ".env").write_text("TODO=secret\n")
        (project / "c.bin").write_bytes(b"TODO\0")
        (project / "latin").write_bytes(b"TOD\xe9\n")

    def test_matches_are_lines_with_their_place_in_order(self, call: Call) -> None:
        assert call("search_files", pattern="TODO") == "b.md:2: TODO that\nsrc/a.py:2: # TODO: this"
        assert call("search_files", pattern=r"(?i)to ?do$") == "b.md:1: to do"
        assert call("search_files", pattern=r"os\.\w+\(") == "src/a.py:4: os.getcwd()"
        assert call("search_files", pattern="nowhere") == "[nothing matches nowhere]"

    def test_path_and_glob_narrow_it(self, call: Call) -> None:
        assert call("search_files", pattern="TODO", path="src") == "src/a.py:2: # TODO: this"
        assert call("search_files", pattern="TODO", path="b.md") == "b.md:2: TODO that"
        assert call("search_files", pattern="TODO", glob="*.py") == "src/a.py:2: # TODO: this"
        assert call("search_files", pattern="TODO", glob="*/*") == "src/a.py:2: # TODO: this"
        assert call("search_files", pattern="TODO", path="src", glob="src/*") == "[nothing matches TODO]"

    def test_a_blocked_file_is_neither_found_nor_searched(self, call: Call) -> None:
        assert "secret" not in call("search_files", pattern="=")
        with pytest.raises(FileRefusedError, match="secrets"):
            call("search_files", pattern="=", path=".env")

    def test_matches_are_bounded_in_number_and_length(self, call: Call, project: Path) -> None:
        (project / "long").write_text("x" * 5000 + "needle" + "x" * 5000)
        (project / "many").write_text("thread\n" * 1000)
        line = call("search_files", pattern="needle")
        assert line.startswith("long:1: ...")
        assert "needle" in line
        assert len(line) < 400
        lines = call("search_files", pattern="thread").split("\n")
        assert len(lines) == 201
        assert lines[-1].startswith("[the first 200 matches;")

    @pytest.mark.parametrize(
        "pattern", ["(", "[a", "(?P<", "a{2,1}", "(" * 900, "(?R)?a", "(?P<n>a(?&n)?)", "a" * 2000]
    )
    def test_a_pattern_that_cannot_be_used_says_so(self, call: Call, pattern: str) -> None:
        with pytest.raises(ToolError, match="pattern") as caught:
            call("search_files", pattern=pattern)
        assert "\n" not in caught.value.message

    @pytest.mark.parametrize("pattern", ["(a|aa)+$", "(x+x+)+y|(a|a)*b"])
    def test_a_pattern_that_would_run_for_ever_is_stopped(self, call: Call, project: Path, pattern: str) -> None:
        (project / "evil").write_text("a" * 5000 + "!\n")
        with pytest.raises(ToolError, match="takes too long to match"):
            call("search_files", pattern=pattern, path="evil")


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "args", "why"),
        [
            ("read_file", {"path": "nothing"}, "nothing: there is no such file or folder"),
            ("read_file", {"path": "."}, "it is a folder, not a file"),
            ("read_file", {"path": "../x"}, "outside the root folder"),
            ("read_file", {"path": ".env"}, "secrets"),
            ("read_file", {"path": "x/server.PEM"}, "secrets"),
            ("list_files", {"path": "/etc"}, "outside the root folder"),
            ("list_files", {"pattern": "{a,b}" * 20}, "alternatives"),
            ("search_files", {"pattern": "x", "path": "nothing"}, "there is no such"),
            ("write_file", {"path": "~/.bashrc", "content": ""}, "home folder"),
            ("write_file", {"path": ".git/hooks/x", "content": ""}, "nothing may be written in .git"),
            ("write_file", {"path": ".GIT/hooks/x", "content": ""}, "nothing may be written in .git"),
            ("edit_file", {"path": ".llm-do/approvals.json", "old": "a", "new": "b"}, "nothing may be written in"),
            ("make_directory", {"path": "a/.git/x"}, "nothing may be written in .git"),
            ("move_file", {"source": ".env", "target": "env.txt"}, "secrets"),
            ("move_file", {"source": "x", "target": ".llm-do/x"}, "nothing may be written in"),
            ("delete_file", {"path": "id.key"}, "secrets"),
        ],
    )
    def test_a_refusal_is_one_sentence_that_says_why(
        self, call: Call, project: Path, name: str, args: dict[str, str], why: str
    ) -> None:
        for path in (".env", "x/server.PEM", ".llm-do/approvals.json", "id.key"):
            (project / path).parent.mkdir(exist_ok=True)
            (project / path).write_text("a")
        before = sorted(project.rglob("*"))
        with pytest.raises(ToolError) as caught:
            call(name, **args)
        assert why in caught.value.message
        assert "\n" not in caught.value.message
        assert str(project) not in caught.value.message
        assert sorted(project.rglob("*")) == before

    def test_a_link_to_a_blocked_file_is_blocked(self, call: Call, project: Path) -> None:
        (project / ".env").write_text("secret")
        (project / "harmless.txt").symlink_to(".env")
        (project / "hooks").symlink_to(".git")
        (project / ".git").mkdir()
        with pytest.raises(FileRefusedError, match="secrets"):
            call("read_file", path="harmless.txt")
        with pytest.raises(FileRefusedError, match=r"\.git"):
            call("write_file", path="hooks/x", content="")
        assert "secret" not in call("search_files", pattern=".")


class TestConfigured:
    def test_options_do_what_they_say(self, project: Path) -> None:
        (project / "docs").mkdir()
        (project / "docs/a.bin").touch()
        (project / "docs/.env.example").write_text("NAME=")
        toolset = configured(
            context(
                project,
                type="filesystem",
                root="docs",
                read_only=True,
                ignore=["**/*.bin"],
                allow_protected=[".env.example"],
            )
        )
        assert list(toolset.tools) == ["read_file", "list_files", "search_files"]
        assert caller(toolset)("list_files") == ".env.example"
        assert caller(toolset)("read_file", path=".env.example") == "NAME="

    @pytest.mark.parametrize(
        "options", [{"roots": "x"}, {"root": 3}, {"read_only": "yes"}, {"ignore": "*.bin"}, {"allow_protected": [1]}]
    )
    def test_an_option_that_means_nothing_is_an_error(self, project: Path, options: dict[str, object]) -> None:
        with pytest.raises(UsageError, match="the toolset files"):
            configured(context(project, **options))


class TestClassic:
    def test_reads_give_the_dictionary_of_old(self, project: Path) -> None:
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
        assert call("write_file", path="b/c.txt", content="x") == "Made b/c.txt, 1 bytes"
        assert call("list_files") == ["a.txt", "b/c.txt"]
        assert call("list_files", path="b", pattern="*.txt") == ["b/c.txt"]

    def test_the_read_only_one_has_no_write(self, project: Path) -> None:
        assert list(ReadOnlyFileSystemToolset({"base_path": project}).tools) == ["read_file", "list_files"]

    def test_an_unknown_option_is_an_error(self) -> None:
        with pytest.raises(UsageError, match="knows no option 'root'"):
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
