"""Questions of durable runs over HTTP: they wait with nothing running, and whoever answers first counts."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import run_forked
from tests.support.tables import sampled
from tests.web.durable_support import command, events_of, status_of, suspended
from tests.web.served import ANN, Served, httpx, serving, wait_for


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


@pytest.mark.parametrize("answer", sampled(["deny", "abort", "session"]))
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("words", sampled([["once", "deny"] * 4, ["once"] * 8]), ids=["different", "alike"])
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


def test_an_agents_question_of_a_durable_run_is_answered_with_a_text(desk: Served) -> None:
    run = desk.start(entry="asker", input="Go", durable=True)
    question = desk.question(run)

    assert (question["kind"], question["text"], question["answers"]) == ("question", "Which colour?", [])
    assert desk.answer(run, question, "").status_code == 422
    assert desk.answer(run, question, "blue").status_code == 200
    assert desk.ended(run)["events"][-1]["output"] == "So blue."
    assert desk.answer(run, question, "red").json()["error"]["answered"]["answer"] == "blue"


@pytest.mark.slow
def test_an_answer_while_a_run_is_being_suspended_is_not_lost(desk: Served) -> None:
    for _ in range(8):  # each is answered at another moment of its suspension
        run = desk.start(input="Hello", durable=True)
        assert desk.answer(run, desk.question(run), "once").status_code == 200
        assert desk.ended(run)["run"]["status"] == "completed"


@pytest.mark.slow
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
