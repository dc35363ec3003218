"""MCP servers as toolsets, against real server processes; whatever a server does, the run ends with a reason."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import LinkError, Project, RunResult, Runtime, UsageError
from llm_do.formats.toolset_config import McpConfig, parse_options
from llm_do.linker.linker import check_project
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.mcp import configured
from llm_do.ui.live.event_lines import summary_line
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, heard, project_of
from tests.support.scripted import call, script

SERVERS = Path(__file__).parent / "mcp_servers"


def command(*words: str) -> list[str]:
    return [sys.executable, str(SERVERS / "plain_server.py"), *words]


OF_THE_SDK = [sys.executable, str(SERVERS / "stdio_server.py")]


def toolset(**config: Any) -> BuiltinToolset:
    given = {"command": command()} if "url" not in config and "command" not in config else {}
    return BuiltinToolset("small", {"type": "mcp", "timeout": 60, **given, **config})


def runtime(root: Path, *turns: Any, ref: Any = "small", approvals: Any = "approve_all", **config: Any) -> Runtime:
    spec = agent("main", script(*turns, "done"), toolsets=[ref])
    return Runtime(project_of([spec], root=root, toolsets={"small": toolset(**config)}), approvals=approvals)


def results(result: RunResult) -> list[tuple[str, str]]:
    assert result.status == "completed", result.error
    strict(result.messages)
    return [(outcome, text) for _, outcome, text in results_of(result.messages)]


def tools_of(runtime: Runtime) -> list[str]:
    spec = runtime.registry.agent("main")
    assert spec is not None
    carry_out(runtime)
    return spec.model.asked[0].tools  # type: ignore[union-attr]


def is_gone(pid: int) -> bool:
    for _ in range(300):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False


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


def test_a_session_has_one_process_and_ends_it(tmp_path: Path) -> None:
    session = runtime(tmp_path, [call("small_whoami", {}, "one"), call("small_whoami", {}, "two")])

    async def twice() -> list[str]:
        texts = [text for _ in range(2) for _, text in results(await session.execute("go"))]
        pids = {int(text.split()[0]) for text in texts}
        assert len(pids) == 1
        assert not is_gone_now(pids)
        await session.aclose()
        return texts

    def is_gone_now(pids: set[int]) -> bool:
        return not all(Path(f"/proc/{pid}").exists() for pid in pids)

    texts = asyncio.run(twice())
    assert is_gone(int(texts[0].split()[0]))
    assert texts[0].endswith(str(tmp_path))


def test_a_server_with_call_scope_ends_with_the_call(tmp_path: Path) -> None:
    session = runtime(tmp_path, [call("small_whoami", {}, "one"), call("small_whoami", {}, "two")], scope="call")

    async def twice() -> list[int]:
        pids = [int(text.split()[0]) for _ in range(2) for _, text in results(await session.execute("go"))]
        assert all(is_gone(pid) for pid in pids)
        return pids

    pids = asyncio.run(twice())
    assert (pids[0], pids[2]) == (pids[1], pids[3])
    assert pids[0] != pids[2]


def test_run_sync_leaves_no_process_behind(tmp_path: Path) -> None:
    result = runtime(tmp_path, call("small_whoami")).run_sync("go")
    assert is_gone(int(results(result)[0][1].split()[0]))


def test_a_loop_that_ends_without_closing_leaves_no_process_behind(tmp_path: Path) -> None:
    result = asyncio.run(runtime(tmp_path, call("small_whoami")).execute("go"))
    assert is_gone(int(results(result)[0][1].split()[0]))


def test_a_server_receives_only_the_configured_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "abc")
    monkeypatch.setenv("OTHER_SECRET", "hidden")
    session = runtime(tmp_path, call("small_whoami"), env={"TOKEN": "x-${GITHUB_TOKEN}"})
    assert results(carry_out(session))[0][1].split()[1:3] == ["x-abc", "none"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"command": command("dies")}, ["did not start", "please configure me"]),
        ({"command": ["no-such-server"]}, ["did not start", "no-such-server"]),
        ({"command": ["sleep", "60"], "timeout": 0.5}, ["did not start in 0.5 s"]),
        ({"command": ["echo", "hello"], "timeout": 5}, ["did not start"]),
        ({"url": "http://127.0.0.1:9/mcp", "timeout": 5}, ["did not start"]),
        ({"env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}, ["NOT_SET_ANYWHERE is not set"]),
    ],
)
@pytest.mark.slow
def test_a_required_server_that_does_not_start_ends_the_run_with_a_reason(
    tmp_path: Path, config: dict[str, Any], says: list[str]
) -> None:
    started = time.monotonic()
    result = carry_out(runtime(tmp_path, call("small_add", a=1, b=2), **config))
    assert result.status == "failed"
    assert "the MCP server small" in str(result.error)
    assert all(each in str(result.error) for each in says), str(result.error)
    assert time.monotonic() - started < 40  # they would take 60


def test_a_run_continues_without_an_optional_server(tmp_path: Path) -> None:
    session = runtime(tmp_path, call("small_add", a=1, b=2), command=command("dies"), required=False)
    ear = heard(session, "warning")
    result = carry_out(session)
    assert "unknown tool" in results(result)[0][1]
    assert len(ear.events) == 1
    assert "the MCP server small did not start" in ear.events[0].message
    assert "please configure me" in ear.events[0].message
    assert [each.message for each in result.warnings] == [ear.events[0].message]
    assert summary_line(result, 1.0).endswith(", 1.0 s, 1 warning")


def test_a_server_that_dies_is_a_failed_result_and_restarts(tmp_path: Path) -> None:
    session = runtime(tmp_path, call("small_crash"), call("small_add", a=1, b=2))
    outcomes = results(carry_out(session))
    assert outcomes[0][0] == "failed"
    assert "the MCP server small is gone" in outcomes[0][1]
    assert "crashing as asked" in outcomes[0][1]
    assert outcomes[1] == ("success", "3")


def test_parallel_calls_to_a_dying_server_all_end_and_the_next_call_restarts_it(tmp_path: Path) -> None:
    session = runtime(
        tmp_path,
        [call("small_slow", {}, "s1"), call("small_slow", {}, "s2"), call("small_crash", {}, "c")],
        [call("small_add", {"a": n, "b": 1}, f"a{n}") for n in range(3)],
    )
    outcomes = results(carry_out(session))
    assert [outcome for outcome, _ in outcomes[:3]] == ["failed"] * 3
    assert outcomes[3:] == [("success", "1"), ("success", "2"), ("success", "3")]


# On a busy machine a server may need longer to print its message.
LONGER = (1, 5, 25)


@pytest.mark.slow
def test_a_server_that_hangs_on_startup_times_out(tmp_path: Path) -> None:
    for seconds in LONGER:
        result = carry_out(runtime(tmp_path, call("small_add"), command=command("hangs"), timeout=seconds))
        assert result.status == "failed"
        assert f"the MCP server small did not start in {seconds} s" in str(result.error)
        if "waiting for a miracle" in str(result.error):
            return
    pytest.fail(str(result.error))


@pytest.mark.slow
def test_a_call_that_hangs_times_out(tmp_path: Path) -> None:
    for seconds in LONGER:
        result = carry_out(runtime(tmp_path, call("small_slow"), timeout=seconds))
        if result.status == "completed":
            break
    ((outcome, text),) = results(result)
    assert outcome == "failed"
    assert f"did not answer slow in {seconds} s" in text
    assert "thinking" in text


def test_a_flood_on_standard_error_blocks_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = runtime(tmp_path, call("small_flood"), command=command("floods"))
    assert results(carry_out(session)) == [("success", "dry again")]
    assert capfd.readouterr() == ("", "")


def test_noise_on_a_servers_standard_output_is_tolerated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = runtime(tmp_path, call("small_add", a=1, b=2), command=command("babbles"))
    assert results(carry_out(session)) == [("success", "3")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_runs_that_start_while_the_client_is_being_imported_wait_for_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.toolsets.mcp_servers.many_at_once", str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert done.stdout == f"{['completed'] * 8}\n", done.stderr


def test_parallel_calls_and_runs_share_a_server(tmp_path: Path) -> None:
    session = runtime(tmp_path, [call("small_add", {"a": n, "b": 1}, f"c{n}") for n in range(5)])

    async def many() -> list[RunResult]:
        try:
            return await asyncio.gather(*(session.execute("go") for _ in range(5)))
        finally:
            await session.aclose()

    for result in asyncio.run(many()):
        assert [text for _, text in results(result)] == [str(n + 1) for n in range(5)]


def test_a_cancelled_run_leaves_the_server_running_for_others(tmp_path: Path) -> None:
    session = runtime(tmp_path, call("small_add", a=1, b=2))
    stuck = runtime(tmp_path, call("small_slow"))
    stuck.resources = session.resources

    async def cancel_one() -> RunResult:
        results(await session.execute("go"))
        task = asyncio.ensure_future(stuck.execute("go"))
        while not (tmp_path / "slow").exists():  # noqa: ASYNC110 (another process says when)
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        try:
            return await session.execute("go")
        finally:
            await session.aclose()

    assert results(asyncio.run(cancel_one())) == [("success", "3")]


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
