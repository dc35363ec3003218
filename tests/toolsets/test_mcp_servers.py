"""MCP servers as toolsets, against real server processes: their configuration, and their tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import LinkError, Project, Runtime, UsageError
from llm_do.formats.toolset_config import McpConfig, parse_options
from llm_do.linker.linker import check_project
from llm_do.project.agent_spec import ToolsetRef
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.mcp import configured
from tests.support.runs import Answers, carry_out
from tests.support.scripted import call
from tests.toolsets.mcp_support import OF_THE_SDK, SERVERS, command, results, runtime


def tools_of(runtime: Runtime) -> list[str]:
    spec = runtime.registry.agent("main")
    assert spec is not None
    carry_out(runtime)
    return spec.model.asked[0].tools  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "http_server.py")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_servers_tools_have_prefixed_names(tmp_path: Path) -> None:
    session = runtime(tmp_path, [call("small_add", a=1, b=2), call("small_fail", why="not today")])
    outcomes = results(carry_out(session))
    assert outcomes[0] == ("success", "3")
    assert outcomes[1][0] == "failed"
    assert "not today" in outcomes[1][1]


@pytest.mark.slow
def test_a_server_made_with_the_sdk_works_and_its_invalid_tool_names_are_changed(tmp_path: Path) -> None:
    calls = [call("small_add", a=1, b=2), call("small_fail", why="not today"), call("small_odd_name_with_marks")]
    outcomes = results(carry_out(runtime(tmp_path, calls, command=OF_THE_SDK)))
    assert (outcomes[0], outcomes[2]) == (("success", "3"), ("success", "odd"))
    assert outcomes[1][0] == "failed"
    assert "not today" in outcomes[1][1]


@pytest.mark.slow
def test_a_server_over_http_gets_its_headers(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_TOKEN", "abc")
    session = runtime(
        tmp_path,
        [call("small_add", a=1, b=2), call("small_header", name="authorization")],
        url=url,
        headers={"Authorization": "Bearer ${KB_TOKEN}"},
    )
    assert [text for _, text in results(carry_out(session))] == ["3", "Bearer abc"]


def test_include_and_exclude_use_the_servers_own_names(tmp_path: Path) -> None:
    assert tools_of(runtime(tmp_path, include=["add", "f*"], exclude=["flood"])) == ["small_add", "small_fail"]
    ref = ToolsetRef("small", include=("add", "fail"), exclude=("fail",))
    assert tools_of(runtime(tmp_path, ref=ref)) == ["small_add"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("prefix", "ref", "expected"),
    [
        (None, "small", "small_add"),
        ("", "small", "add"),
        ("s", "small", "s_add"),
        (None, ToolsetRef("small", "mine"), "mine_add"),
        (None, ToolsetRef("small", ""), "add"),
        ("s", ToolsetRef("small", ""), "add"),
    ],
)
def test_the_prefix_is_the_servers_name_unless_configured(
    tmp_path: Path, prefix: str | None, ref: Any, expected: str
) -> None:
    assert tools_of(runtime(tmp_path, ref=ref, prefix=prefix, include=["add"])) == [expected]


def test_a_name_never_begins_with_a_digit(tmp_path: Path) -> None:
    assert tools_of(runtime(tmp_path, prefix="", include=["3d"])) == ["_3d"]
    assert tools_of(runtime(tmp_path, include=["3d"])) == ["small_3d"]


def test_a_prefix_too_long_for_tool_names_is_an_error() -> None:
    def configured_as(name: str, **options: Any) -> Any:
        config = McpConfig.model_validate({"type": "mcp", "command": ["x"], **options})
        return configured(BuiltinContext(name, Path(), Path()), config)

    with pytest.raises(UsageError, match="a prefix of 64 characters, which leaves too little room"):
        configured_as("s" * 64).with_prefix(None)
    with pytest.raises(UsageError, match="a prefix of 56 characters, which leaves too little room"):
        configured_as("s").with_prefix("p" * 56)
    assert configured_as("s" * 64, prefix="s").with_prefix(None).prefix == "s"
    assert configured_as("s" * 64).with_prefix("s").prefix == "s"
    assert configured_as("s" * 55).with_prefix(None).prefix == "s" * 55


@pytest.mark.sample(1)
@pytest.mark.parametrize("prefix", [None, "", "p", "p" * 55])
def test_names_are_shortened_to_fit_the_agents_prefix(tmp_path: Path, prefix: str | None) -> None:
    for scope in ("session", "call"):
        [name] = tools_of(runtime(tmp_path, ref=ToolsetRef("small", prefix), scope=scope, include=["l*"]))
        before = "small_" if prefix is None else f"{prefix}_" if prefix else ""
        assert name == (before + "l" * 62)[:64]


def test_a_tool_with_a_shortened_name_is_called_by_its_original_name(tmp_path: Path) -> None:
    ref = ToolsetRef("small", "p" * 55)
    outcomes = results(carry_out(runtime(tmp_path, call("p" * 55 + "_" + "l" * 8), ref=ref, include=["l*"])))
    assert outcomes == [("success", "a name of 62")]


def test_an_agents_prefix_too_long_for_tool_names_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    result = carry_out(runtime(tmp_path, ref=ToolsetRef("small", "p" * 60)))
    assert "a prefix of 60 characters, which leaves too little room" in str(result.error)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"url": "https://example.org/mcp", "env": {"TOKEN": "x"}}, "env"),
        ({"command": ["server"], "headers": {"X-Team": "a"}}, "headers"),
    ],
)
def test_an_option_that_does_not_apply_to_the_server_is_an_error(options: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"the toolset kb: `{option}` does nothing beside"):
        parse_options("kb", {"type": "mcp", **options})


def test_calls_need_approval(tmp_path: Path) -> None:
    person = Answers(["once"])
    results(carry_out(runtime(tmp_path, call("small_add", a=1, b=2), approvals=person)))
    assert [(asked.tool_name, asked.args) for asked in person.asked] == [("small_add", {"a": 1, "b": 2})]


def test_arguments_are_validated_before_the_server_receives_them(tmp_path: Path) -> None:
    ((outcome, text),) = results(carry_out(runtime(tmp_path, call("small_add", a="x"))))
    assert outcome == "failed"
    assert "invalid arguments" in text


def test_a_server_receives_only_the_configured_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "abc")
    monkeypatch.setenv("OTHER_SECRET", "hidden")
    session = runtime(tmp_path, call("small_whoami"), env={"TOKEN": "x-${GITHUB_TOKEN}"})
    assert results(carry_out(session))[0][1].split()[1:3] == ["x-abc", "none"]


def manifest(root: Path, server: dict[str, Any], listed: str = "small") -> Path:
    (root / "main.agent").write_text(f"---\nname: main\nmodel: test\ntoolsets: [{listed}]\n---\nGo.\n")
    config = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "toolsets": {"small": server}}
    (root / "project.json").write_text(json.dumps(config))
    return root


def test_a_manifest_configures_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "abc")
    server = {"type": "mcp", "command": command(), "env": {"TOKEN": "${GITHUB_TOKEN}"}, "include": ["whoami"]}
    project = Project.load(manifest(tmp_path, server))
    assert list(project.warnings) == []
    result = carry_out(Runtime(project, approvals="approve_all"))
    assert result.status == "completed"
    assert " abc none " in str(result.output)


@pytest.mark.slow
def test_an_unset_variable_is_a_diagnostic(tmp_path: Path) -> None:
    os.environ.pop("NOT_SET_ANYWHERE", None)
    server = {"type": "mcp", "command": command(), "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}
    report = check_project(manifest(tmp_path, server))
    assert [(item.code, item.place.line) for item in report.diagnostics if "NOT_SET_ANYWHERE" in item.message] == [
        ("LD702", 1)
    ]
    with pytest.raises(LinkError):
        Project.load(tmp_path)
