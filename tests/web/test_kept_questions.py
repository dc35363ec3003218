"""Durable runs over HTTP: their questions wait with nothing running, and whoever answers first counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.cli_processes import run_forked
from tests.web.served import ANN, Served, httpx, serving, wait_for, write_desk

if TYPE_CHECKING:
    from tests.support.postgres import Server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_desk(tmp_path / "desk")


@pytest.fixture
def desk(root: Path) -> Iterator[Served]:
    with serving([root]) as found:
        yield found


def suspended(root: Path, run_id: str, *words: str) -> None:
    """Begin a durable run in another process, which ends as the run waits for a person."""
    ended = run_forked("run", ".", "--durable", "--run-id", run_id, *words, "Hello", cwd=root)
    assert ended.code == 5, ended.err


@contextmanager
def command(root: Path, *words: str, end: signal.Signals = signal.SIGINT) -> Iterator[Served]:
    """Serve with `llm-do serve` in a process of its own, which a signal ends."""
    line = [sys.executable, "-m", "llm_do", "serve", ".", "--port", "0", "--no-browser", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            base, _, key = process.stdout.readline().strip().partition("/#key=")
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
                yield Served(base, None, http)
        finally:
            process.send_signal(end)
            process.wait(60)


def status_of(desk: Served, run: str) -> str:
    return desk.http.get(f"/api/runs/{run}").json()["run"]["status"]


def events_of(desk: Served, run: str, kind: str) -> list[Any]:
    return [each for each in desk.ended(run)["events"] if each["type"] == kind]


def test_a_question_of_a_run_that_no_process_has_is_answered_and_the_run_continues(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    (question,) = desk.http.get("/api/questions").json()["questions"]
    (listed,) = desk.http.get("/api/runs?status=suspended").json()["runs"]

    assert (listed["run_id"], listed["here"], listed["questions"]) == ("waits", False, 1)
    assert (question["run_id"], question["project"], question["entry"]) == ("waits", "desk", "clerk")
    assert (question["kind"], question["tool"], question["args"]) == ("approval", "send", {"to": "ann"})
    assert (question["durable"], question["answers"]) == (True, ["once", "session", "deny", "abort"])
    assert desk.question("waits") == {key: question[key] for key in question if key not in ("project", "entry")}
    answer = desk.answer("waits", question, "once")
    assert (answer.status_code, answer.json()) == (
        200,
        {"run_id": "waits", "running": True, "message": "the run continues"},
    )
    document = desk.ended("waits")
    assert document["events"][-1]["output"] == "The letter: sent to ann."
    assert [each["seq"] for each in document["events"]] == list(range(len(document["events"])))
    assert len([each for each in document["events"] if each["type"] == "run_resumed"]) == 1


@pytest.mark.parametrize("answer", ["deny", "abort", "session"])
def test_each_answer_has_its_effect(root: Path, desk: Served, answer: str) -> None:
    suspended(root, "waits")
    note = {"note": "use the phone"} if answer == "deny" else {}

    assert desk.answer("waits", desk.question("waits"), answer, **note).status_code == 200
    document = desk.ended("waits")
    results = [each for each in document["events"] if each["type"] == "tool_result"]
    if answer == "deny":
        assert "use the phone" in results[0]["result"]
    elif answer == "abort":
        assert (document["run"]["status"], results[0]["status"]) == ("failed", "failed")
        assert document["events"][-1]["error"]["type"] == "AbortedError"
    else:
        assert results[0]["result"] == "sent to ann"


def test_what_was_not_shown_is_not_approved(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    question = desk.question("waits")
    place = f"/api/runs/waits/questions/{question['id']}"

    assert desk.http.post(place, json={"answer": "once"}).status_code == 409
    assert desk.http.post(place, json={"answer": "once", "digest": "another"}).status_code == 409
    assert desk.answer("waits", question, "always").status_code == 422  # the command line alone decides for good
    assert desk.answer("waits", question, "once", note=7).status_code == 422
    assert desk.http.post(place, json={"answer": 7, "digest": question["digest"]}).status_code == 422
    assert desk.http.post("/api/runs/waits/questions/waits.9", json={"answer": "once"}).status_code == 404
    assert status_of(desk, "waits") == "suspended"


def test_the_second_answer_is_told_who_answered_first_and_what(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    question = desk.question("waits")
    code = run_forked("approvals", "answer", "waits.1", "deny", cwd=root).code
    second = desk.answer("waits", question, "once")

    assert (code, second.status_code) == (0, 409)
    error = second.json()["error"]
    assert error["message"].startswith("the question has been answered already: deny, by ")
    assert (error["answered"]["answer"], error["answered"]["tool"]) == ("deny", "send")
    assert error["answered"]["by"] in error["message"]
    found = desk.http.get("/api/runs/waits/questions").json()
    assert (found["questions"], found["status"]) == ([], "suspended")
    assert [each["answer"] for each in found["answered"]] == ["deny"]


def test_the_command_line_is_told_of_an_answer_over_http(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    ann = httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30)
    assert ann.get("/api/questions").json()["questions"] == []  # the run isn't ann's
    assert ann.get("/api/runs/waits/questions").status_code == 404
    ann.close()
    desk.answer("waits", desk.question("waits"), "once")
    desk.ended("waits")
    second = run_forked("approvals", "answer", "waits.1", "deny", cwd=root)

    assert second.code == 2
    assert "has been answered already: allow, by " in second.err


@pytest.mark.parametrize("words", [["once", "deny"] * 4, ["once"] * 8], ids=["different", "alike"])
def test_of_many_answers_at_once_one_counts_and_the_others_are_told_it(
    root: Path, desk: Served, words: list[str]
) -> None:
    suspended(root, "waits")
    question = desk.question("waits")
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda word=word: answers.append((word, desk.answer("waits", question, word))))
        for word in words
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [word for word, answer in answers if answer.status_code == 200]
    lost = [answer.json()["error"]["answered"]["answer"] for _, answer in answers if answer.status_code == 409]

    assert len(won) == 1
    assert lost == won * 7
    assert len(events_of(desk, "waits", "approval_resolved")) == 1


@pytest.mark.slow
def test_a_question_of_a_run_in_another_process_is_answered_and_that_process_continues(
    root: Path, desk: Served
) -> None:
    program = (
        "import asyncio, sys\nfrom llm_do import Project, Runtime\n"
        "async def ask(request):\n    await asyncio.sleep(600)\n"
        "runtime = Runtime(Project.load(sys.argv[1]), durable=True, approvals=ask)\n"
        "print(runtime.run_sync('Hello', run_id='elsewhere').output)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: desk.http.get("/api/runs?status=running").json()["runs"], 60)
            answer = desk.answer("elsewhere", desk.question("elsewhere"), "once")
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()

    assert answer.json()["message"] == "the process that has the run takes the answer"
    assert out.strip() == "The letter: sent to ann."
    assert events_of(desk, "elsewhere", "run_resumed") == []


def test_a_durable_run_is_begun_waits_with_nothing_running_and_is_continued(root: Path, desk: Served) -> None:
    run = desk.start(input="Hello", durable=True)
    question = desk.question(run)
    wait_for(lambda: status_of(desk, run) == "suspended")

    assert run_forked("approvals", "pending", "--format", "json", cwd=root).json[0]["run_id"] == run
    assert desk.http.get(f"/api/runs/{run}/questions").json()["here"] is False
    assert desk.answer(run, question, "once").status_code == 200
    assert desk.ended(run)["events"][-1]["output"] == "The letter: sent to ann."


def test_an_agents_question_of_a_durable_run_is_answered_with_a_text(desk: Served) -> None:
    run = desk.start(entry="asker", input="Go", durable=True)
    question = desk.question(run)

    assert (question["kind"], question["text"], question["answers"]) == ("question", "Which colour?", [])
    assert desk.answer(run, question, "").status_code == 422
    assert desk.answer(run, question, "blue").status_code == 200
    assert desk.ended(run)["events"][-1]["output"] == "So blue."
    assert desk.answer(run, question, "red").json()["error"]["answered"]["answer"] == "blue"


def test_an_answer_while_a_run_is_being_suspended_is_not_lost(desk: Served) -> None:
    for _ in range(8):  # each is answered at another moment of its suspension
        run = desk.start(input="Hello", durable=True)
        assert desk.answer(run, desk.question(run), "once").status_code == 200
        assert desk.ended(run)["run"]["status"] == "completed"


def test_a_run_of_a_changed_project_keeps_the_answer_and_says_how_it_continues(root: Path) -> None:
    suspended(root, "waits")
    (root / "clerk.agent").write_text("---\nname: clerk\ntools: [send]\n---\nSend many letters.\n", encoding="utf-8")
    with serving([root]) as desk:
        answer = desk.answer("waits", desk.question("waits"), "once").json()
        again = desk.http.post("/api/runs/waits/resume", json={})

        assert (answer["running"], again.status_code) == (False, 409)
        assert "the project has changed since run waits began: clerk.agent" in answer["message"]
        assert "llm-do resume waits --as-begun" in answer["message"]
        assert "clerk.agent" in again.json()["error"]["message"]
    assert run_forked("resume", "waits", "--as-begun", cwd=root).out == "The letter: sent to ann.\n"


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


def test_a_run_that_waits_is_dropped(root: Path, desk: Served) -> None:
    suspended(root, "waits")
    question = desk.question("waits")

    assert desk.http.delete("/api/runs/waits").status_code == 202
    assert desk.ended("waits")["run"]["status"] == "interrupted"
    assert desk.http.get("/api/questions").json()["questions"] == []
    assert desk.answer("waits", question, "once").status_code == 409
    assert desk.http.delete("/api/runs/waits").status_code == 409


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


# -- stores, and projects without a manifest


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


# -- a terminal, and a database


@pytest.mark.slow
@pytest.mark.parametrize("first", ["server", "terminal"])
def test_a_terminal_and_the_server_ask_the_same_and_the_second_is_told(root: Path, first: str) -> None:
    from tests.cli.cli_terminal import Screen

    with command(root) as desk:
        screen = Screen(["run", ".", "--durable", "--run-id", "both", "Hello"], root)
        try:
            wait_for(lambda: desk.http.get("/api/questions").json()["questions"], 60)
            question = desk.question("both")
            screen.wait_until_shown("once")
            if first == "server":
                done = desk.answer("both", question, "once")
                assert done.json()["message"] == "the process that has the run takes the answer"
                screen.wait_until_shown("was answered elsewhere: allow, by")
            else:
                screen.type("n")
                screen.type("\r")
                wait_for(lambda: desk.http.get("/api/runs/both/questions").json()["answered"], 60)
                late = desk.answer("both", question, "once")
                assert (late.status_code, late.json()["error"]["answered"]["answer"]) == (409, "deny")
            assert screen.end() == 0
        finally:
            screen.close()


@pytest.mark.slow
def test_runs_in_postgresql_are_served(root: Path, postgres: Server) -> None:
    url = postgres.url()
    suspended(root, "waits", "--store", url)
    with command(root, "--store", url) as desk:
        desk.answer("waits", desk.question("waits"), "once")

        assert desk.ended("waits")["events"][-1]["output"] == "The letter: sent to ann."
