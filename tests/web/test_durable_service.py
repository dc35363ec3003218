"""Durable runs over HTTP: begun, stopped, continued and dropped, whatever becomes of the server; and its stores."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llm_do.errors import StoreError
from llm_do.threads import SqliteStore
from tests.cli.cli_processes import run_forked
from tests.web.durable_support import command, events_of, status_of, suspended
from tests.web.served import Served, serving, wait_for, write_desk

if TYPE_CHECKING:
    from tests.support.postgres import Server


def test_a_durable_run_is_begun_waits_with_nothing_running_and_is_continued(root: Path, desk: Served) -> None:
    run = desk.start(input="Hello", durable=True)
    question = desk.question(run)
    wait_for(lambda: status_of(desk, run) == "suspended")

    assert run_forked("approvals", "pending", "--format", "json", cwd=root).json[0]["run_id"] == run
    assert desk.http.get(f"/api/runs/{run}/questions").json()["here"] is False
    assert desk.answer(run, question, "once").status_code == 200
    assert desk.ended(run)["events"][-1]["output"] == "The letter: sent to ann."


def test_no_id_is_given_of_a_durable_run_that_the_store_does_not_have(
    desk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise StoreError("no space left on the disk")

    monkeypatch.setattr(SqliteStore, "begin_run", refuse)
    answer = desk.http.post("/api/runs", json={"input": "Hello", "durable": True})

    assert answer.status_code == 503
    assert answer.json()["error"]["message"].startswith("no space left on the disk")


@pytest.mark.slow
def test_a_run_that_was_stopped_is_continued_with_what_it_began_with(root: Path, desk: Served) -> None:
    suspended(root, "waits", "--deny", "send(ben)", "--allow", "send(eve)")
    again = desk.http.post("/api/runs/waits/resume", json={})

    assert again.status_code == 202
    wait_for(lambda: status_of(desk, "waits") == "suspended")
    assert desk.question("waits")["tool"] == "send"
    assert desk.http.post("/api/runs/none/resume", json={}).status_code == 404
    plain = desk.start(entry="shop", input="x")
    desk.ended(plain)
    assert "isn't durable" in desk.http.post(f"/api/runs/{plain}/resume", json={}).json()["error"]["message"]
    desk.answer("waits", desk.question("waits"), "deny")
    desk.ended("waits")
    assert desk.http.post("/api/runs/waits/resume", json={}).status_code == 409


@pytest.mark.slow
def test_a_run_that_waits_is_dropped(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    question = desk.question("waits")

    assert desk.http.delete("/api/runs/waits").status_code == 202
    assert desk.ended("waits")["run"]["status"] == "interrupted"
    assert desk.http.get("/api/questions").json()["questions"] == []
    assert desk.answer("waits", question, "once").status_code == 409
    assert desk.http.delete("/api/runs/waits").status_code == 409


@pytest.mark.slow
def test_runs_survive_a_server_that_is_stopped(root: Path) -> None:
    with serving([root]) as desk:
        run = desk.start(input="Hello", durable=True)
        desk.question(run)
    with serving([root]) as desk:
        assert status_of(desk, run) in ("stopped", "suspended")
        desk.answer(run, desk.question(run), "once")
        assert desk.ended(run)["events"][-1]["output"] == "The letter: sent to ann."


@pytest.mark.slow
def test_runs_survive_a_server_that_is_killed_in_a_call_and_are_asked_about(root: Path) -> None:
    tool = 'import time\nfrom pathlib import Path\n\nSENT = Path(__file__).with_name("sent")\n\n\n'
    tool += 'def send(to: str) -> str:\n    """Send a letter."""\n    before = SENT.exists()\n'
    tool += '    SENT.write_text("xx" if before else "x")\n    if not before:\n        time.sleep(600)\n'
    tool += '    return f"sent to {to}"\n\n\n'
    (root / "tools.py").write_text(f"{tool}TOOLS = [send]\n", encoding="utf-8")
    with command(root, end=signal.SIGKILL) as killed:
        run = killed.start(input="Hello", durable=True)
        killed.answer(run, killed.question(run), "once")
        wait_for(lambda: (root / "sent").exists(), 60)
    with serving([root]) as desk:
        wait_for(lambda: status_of(desk, run) == "stopped")
        question = desk.question(run)
        assert (question["kind"], question["answers"]) == ("in_flight", ["repeat", "done", "fail"])
        assert desk.answer(run, {**question, "digest": ""}, "repeat").status_code == 409
        assert desk.answer(run, question, "once").status_code == 422
        assert desk.answer(run, question, "repeat").status_code == 200
        assert desk.ended(run)["events"][-1]["output"] == "The letter: sent to ann."
    assert (root / "sent").read_text(encoding="utf-8") == "xx"


@pytest.mark.slow
def test_another_store_is_served(root: Path, tmp_path: Path) -> None:
    suspended(root, "waits", "--store", str(tmp_path / "runs.db"))
    with command(root, "--store", str(tmp_path / "runs.db")) as desk:
        desk.answer("waits", desk.question("waits"), "once")
        assert desk.ended("waits")["run"]["status"] == "completed"
        saved = desk.http.post("/api/runs/waits/test", json={})
        assert (saved.status_code, saved.json()["passes"]) == (201, True), saved.text
    assert list((root / "tests").glob("*.test.yaml"))


@pytest.mark.parametrize(("place", "message"), [("", "--store is empty"), ("mysql://x", "records can't be kept there")])
def test_a_store_that_is_none_is_refused(root: Path, place: str, message: str) -> None:
    ended = run_forked("serve", ".", "--port", "0", "--no-browser", "--store", place, cwd=root)

    assert ended.code in (2, 8)
    assert message in ended.err


@pytest.mark.slow
def test_projects_that_share_a_store_show_each_run_once_with_its_project(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    for name in ("one", "two"):
        text = f"---\nname: {name}\nmodel: script:{name}.yaml\n---\nAnswer.\n"
        (folder / f"{name}.agent").write_text(text, encoding="utf-8")
        (folder / f"{name}.yaml").write_text(f"- text: I am {name}.\n", encoding="utf-8")
    with serving([folder / "one.agent", folder / "two.agent"]) as desk:
        names = [each["name"] for each in desk.http.get("/api/projects").json()["projects"]]
        runs = {name: desk.start(project=name, input="Who?", thread=f"with {name}") for name in ("one", "two")}
        for run in runs.values():
            desk.ended(run)
        listed = desk.http.get("/api/runs").json()["runs"]
        threads = desk.http.get("/api/threads").json()["threads"]

        assert names == ["one", "two"]
        assert {each["run_id"]: each["project"] for each in listed} == {run: name for name, run in runs.items()}
        assert len(listed) == len(threads) == 2
        assert [each["run_id"] for each in desk.http.get("/api/runs?project=two").json()["runs"]] == [runs["two"]]
        assert desk.http.get("/api/compare", params={"first": runs["one"], "second": runs["two"]}).status_code == 200
        saved = desk.http.post(f"/api/runs/{runs['two']}/test", json={})
        assert (saved.status_code, saved.json()["passes"]) == (201, True), saved.text


def test_a_run_of_a_lone_agent_is_ended(tmp_path: Path) -> None:
    (tmp_path / "asker.agent").write_text(
        "---\nname: asker\nmodel: script:asker.yaml\ntoolsets: [ask_user]\n---\nAsk.\n", encoding="utf-8"
    )
    (tmp_path / "asker.yaml").write_text("- tools: [{name: ask_user, args: {question: Why?}}]\n", encoding="utf-8")
    with serving([tmp_path / "asker.agent"]) as desk:
        for durable in (False, True):
            run = desk.start(input="Go", durable=durable)
            desk.question(run)
            assert desk.http.delete(f"/api/runs/{run}").status_code == 202
            assert desk.ended(run)["run"]["status"] == "interrupted"


def test_a_durable_run_needs_a_store_on_disk(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    manifest = json.loads((root / "project.json").read_text(encoding="utf-8"))
    (root / "project.json").write_text(json.dumps({**manifest, "threads": {"store": "memory"}}), encoding="utf-8")
    with serving([root]) as desk:
        refused = desk.http.post("/api/runs", json={"input": "Hello", "durable": True})
        assert (refused.status_code, "store on disk" in refused.json()["error"]["message"]) == (422, True)
        assert desk.http.post("/api/runs", json={"input": "Hello", "durable": "yes"}).status_code == 422


def test_the_projects_own_mode_answers_where_it_has_one(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    manifest = json.loads((root / "project.json").read_text(encoding="utf-8"))
    manifest["runtime"] = {"approval_mode": "reject_all"}
    (root / "project.json").write_text(json.dumps(manifest), encoding="utf-8")
    with serving([root]) as desk:
        (result,) = events_of(desk, desk.start(input="Hello"), "tool_result")

    assert result["status"] == "denied"


@pytest.mark.slow
def test_a_run_is_continued_with_the_limits_of_its_agents(root: Path) -> None:
    (root / "clerk.agent").write_text(
        "---\nname: clerk\ntools: [send]\nmax_steps: 2\n---\nSend letters.\n", encoding="utf-8"
    )
    again = "- tools: [{name: send, args: {to: ann}}]\n"
    (root / "answers.yaml").write_text(f"{again}{again}- text: Too late.\n", encoding="utf-8")
    suspended(root, "first")
    suspended(root, "second")
    resumed = run_forked("approvals", "answer", "first.1", "session", "--resume", cwd=root)
    with serving([root]) as desk:
        desk.answer("second", desk.question("second"), "session")

        assert (resumed.code, desk.ended("second")["run"]["status"]) == (6, "limited")


@pytest.mark.slow
def test_runs_in_postgresql_are_served(root: Path, postgres: Server) -> None:
    url = postgres.url()
    suspended(root, "waits", "--store", url)
    with command(root, "--store", url) as desk:
        desk.answer("waits", desk.question("waits"), "once")

        assert desk.ended("waits")["events"][-1]["output"] == "The letter: sent to ann."
