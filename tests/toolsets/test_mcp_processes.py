"""The processes of MCP servers: how long they live, and what a run makes of those that hang, die or talk too much."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from llm_do import RunResult
from llm_do.ui.live.event_lines import summary_line
from tests.support.runs import carry_out, heard
from tests.support.scripted import call
from tests.toolsets.mcp_support import command, is_gone, results, runtime


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
