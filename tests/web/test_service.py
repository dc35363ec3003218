"""The interface over HTTP: lists, live events, runs, questions and what is told about them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.web.served import ANN, Served, httpx, serving, write_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of two projects."""
    roots = [write_desk(tmp_path_factory.mktemp("served") / name) for name in ("desk", "shop")]
    with serving(roots) as found:
        yield found


def test_a_run_is_started_followed_answered_and_shown(desk: Served) -> None:
    run = desk.start(input="Hello")
    question = desk.question(run)
    listed = next(each for each in desk.http.get("/api/runs").json()["runs"] if each["run_id"] == run)

    assert (question["tool"], question["args"], question["answers"][0]) == ("send", {"to": "ann"}, "once")
    assert (listed["status"], listed["here"], listed["questions"], listed["project"]) == ("running", True, 1, "desk")
    assert desk.answer(run, question, "once").status_code == 200
    document = desk.ended(run)
    assert document["run"]["status"] == "completed"
    assert document["events"][-1]["output"] == "The letter: sent to ann."
    assert len(document["requests"]) == 2


def test_a_second_answer_and_one_to_something_else_are_refused(desk: Served) -> None:
    run = desk.start(input="Hello")
    question = desk.question(run)
    place = f"/api/runs/{run}/questions/{question['id']}"

    assert desk.http.post(place, json={"answer": "once"}).status_code == 409
    assert desk.http.post(place, json={"answer": "once", "digest": "another"}).status_code == 409
    assert desk.answer(run, question, "always").status_code == 422
    assert desk.answer("unknown", question, "once").status_code == 404
    assert desk.http.post(f"/api/runs/{run}/questions/none", json={"answer": "once"}).status_code == 404
    assert desk.answer(run, question, "deny", note="not today").status_code == 200
    assert desk.answer(run, question, "once").status_code == 409
    document = desk.ended(run)
    result = next(each for each in document["events"] if each["type"] == "tool_result")
    assert result["status"] == "denied"
    assert "not today" in result["result"]
    assert desk.answer(run, question, "once").status_code == 409


def test_an_agents_own_question_is_answered_with_a_text(desk: Served) -> None:
    run = desk.start(entry="asker", input="Go")
    question = desk.question(run)

    assert (question["kind"], question["text"]) == ("question", "Which colour?")
    assert desk.answer(run, question, "blue").status_code == 200
    assert desk.ended(run)["events"][-1]["output"] == "So blue."


def test_events_come_live_and_none_is_lost_over_a_reconnect(desk: Served) -> None:
    run = desk.start(input="Hello")
    question = desk.question(run)
    before = desk.stream(run, most=4)
    desk.answer(run, question, "once")
    after = desk.stream(run, headers={"Last-Event-ID": before[-1][0]})
    complete = desk.stream(run)

    assert [name for name, _ in complete] == [*map(str, range(len(complete) - 1)), "end"]
    assert [*before, *after] == complete
    assert desk.stream(run, after=-1) == complete
    assert desk.stream(run, after=2) == complete[3:]
    assert complete[-2][1]["type"] == "run_finished"
    for wrong in ("x", "-2", "1.5"):
        assert desk.http.get(f"/api/runs/{run}/events?after={wrong}").status_code == 422


def test_a_run_is_ended(desk: Served) -> None:
    run = desk.start(input="Hello")
    desk.question(run)

    assert desk.http.delete(f"/api/runs/{run}").status_code == 202
    assert desk.ended(run)["run"]["status"] == "interrupted"
    again = desk.http.delete(f"/api/runs/{run}")
    assert (again.status_code, "has ended" in again.json()["error"]["message"]) == (409, True)


def test_a_thread_is_continued(desk: Served) -> None:
    first = desk.start(entry="shop", input="One", thread="talk")
    desk.ended(first)
    second = desk.start(entry="shop", input="Two", thread="talk")
    document = desk.ended(second)

    listed = desk.http.get("/api/runs?thread=talk").json()["runs"]
    assert [run["run_id"] for run in listed] == [second, first]
    talk = next(each for each in desk.http.get("/api/threads").json()["threads"] if each["thread_id"] == "talk")
    assert talk["messages"] == 4
    texts = [part.get("content") for _, message in document["messages"] for part in message["parts"]]
    assert texts[:3] == ["One", "Tea is 4.20.", "Two"]
    told = desk.http.get("/api/threads/talk").json()
    assert [(each["who"], each["text"], each["run_id"]) for each in told["turns"]] == [
        ("user", "One", first),
        ("agent", "Tea is 4.20.", first),
        ("user", "Two", second),
        ("agent", "Coffee is 5.00.", second),
    ]
    assert (told["entry"], told["mine"], told["latest"]) == ("shop", True, {"run_id": second, "status": "completed"})


def test_a_conversation_with_tools_is_told_in_order(desk: Served) -> None:
    run = desk.start(input="Hello", thread="a/b ü?")
    desk.answer(run, desk.question(run), "deny", note="use the phone")
    desk.ended(run)
    turns = desk.http.get(f"/api/threads/{quote('a/b ü?', safe='')}?limit=10").json()["turns"]

    assert [each["who"] for each in turns] == ["user", "call", "result", "agent"]
    assert (turns[1]["tool"], turns[1]["args"]) == ("send", {"to": "ann"})
    assert (turns[2]["tool"], turns[2]["outcome"]) == ("send", "denied")
    assert "use the phone" in turns[2]["text"]


def test_a_conversation_is_that_of_one_user(desk: Served) -> None:
    ann = httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30)
    mine = desk.start(entry="shop", input="mine", thread="shared")
    theirs = ann.post("/api/runs", json={"entry": "shop", "input": "ann's", "thread": "shared"}).json()["run_id"]
    desk.ended(mine)
    desk.ended(theirs)
    seen = [
        ann.get("/api/threads/shared?user=ben").json(),
        desk.http.get("/api/threads/shared").json(),
        desk.http.get("/api/threads/shared?user=ann").json(),
    ]

    assert [(each["turns"][0]["text"], each["mine"]) for each in seen] == [
        ("ann's", True),
        ("mine", True),
        ("ann's", False),
    ]
    assert ann.get("/api/threads/only").status_code == desk.http.get("/api/threads/only").status_code == 404
    assert desk.http.get(f"/api/runs/{theirs}").json()["mine"] is False
    ann.close()


def test_what_each_entry_takes_is_described(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    (root / "tools.py").write_text(
        "from llm_do import AgentArgs\n\n\nclass Pitch(AgentArgs):\n    company: str\n    stars: int = 3\n",
        encoding="utf-8",
    )
    (root / "judge.agent").write_text(
        "---\nname: judge\nmodel: script:shop.yaml\ninput_model_ref: tools.py:Pitch\n---\nJudge.\n", encoding="utf-8"
    )
    (root / "clerk.agent").write_text("---\nname: clerk\n---\nSend letters.\n", encoding="utf-8")
    with serving([root]) as desk:
        (project,) = desk.http.get("/api/projects").json()["projects"]
        assert project["default"] is False
        assert list(project["inputs"]) == ["judge"]
        assert sorted(project["inputs"]["judge"]["properties"]) == ["company", "stars"]


def test_the_files_that_a_run_changed_are_listed(tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    agent = "---\nname: writer\nmodel: script:writer.yaml\ntoolsets: [filesystem_project]\n---\nWrite.\n"
    (root / "writer.agent").write_text(agent, encoding="utf-8")
    calls = '- tools: [{name: write_file, args: {path: "<b>.md", content: x}}]\n- text: Done.\n'
    (root / "writer.yaml").write_text(calls, encoding="utf-8")
    with serving([root]) as desk:
        run = desk.start(input="Go", entry="writer")
        assert desk.answer(run, desk.question(run), "once").status_code == 200
        assert desk.ended(run)["files"] == [
            {"path": "<b>.md", "change": "created", "can_undo": True, "as_before": False, "note": ""}
        ]
        (root / "<b>.md").write_text("mine", encoding="utf-8")
        (file,) = desk.http.get(f"/api/runs/{run}").json()["files"]
        assert (file["can_undo"], file["note"]) == (False, "it has changed since")


def test_two_runs_are_compared(desk: Served) -> None:
    runs = [desk.start(entry="shop", input=text) for text in ("One", "Two")]
    for run in runs:
        desk.ended(run)
    found = desk.http.get("/api/compare", params={"first": runs[0], "second": runs[1]}).json()

    assert found["parting"]["where"] == "request 1 of shop"
    assert found["same_output"]
    assert desk.http.get("/api/compare?first=x").status_code == 404
    assert desk.http.get("/api/compare").status_code == 422


@pytest.mark.slow
def test_a_run_is_saved_as_a_test_of_its_project_by_its_owner_only(desk: Served) -> None:
    run = desk.start(entry="shop", input="What is tea?")
    desk.ended(run)
    saved = desk.http.post(f"/api/runs/{run}/test", json={})
    folder = desk.service.projects[0].project.root / "tests"

    assert (saved.status_code, saved.json()["passes"]) == (201, True), saved.text
    assert "wrote tests/" in saved.json()["report"]
    assert list(folder.glob("*.test.yaml"))
    ann = httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30)
    mine = ann.post("/api/runs", json={"entry": "shop", "input": "y"}).json()["run_id"]
    assert ann.post(f"/api/runs/{mine}/test", json={}).status_code == 403
    ann.close()


def test_a_user_gets_no_files_of_the_project(tmp_path: Path) -> None:
    """What a key's user names would be read with the permissions of the server's owner."""
    root = write_desk(tmp_path / "desk")
    (root / ".env").write_text("A_KEY=hidden-from-all\n")
    with (
        serving([root]) as desk,
        httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30) as ann,
    ):
        for path in ("tools.py", ".env", ".llm-do/artifacts/a.txt"):
            answer = ann.post("/api/runs", json={"entry": "shop", "input": {"input": "x", "attachments": [path]}})
            assert (answer.status_code, "attach" in answer.json()["error"]["message"]) == (403, True)
        assert ann.post("/api/runs", json={"entry": "shop", "input": {"input": "x", "attachments": []}}).is_success

        told = [
            desk.ended(desk.start(entry="shop", input={"input": "x", "attachments": [path]}))["run"]["status"]
            for path in ("tools.py", ".env")
        ]
    assert told == ["completed", "invalid"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b"[" * 100_000, 400),
        (b'{"input": "a", "input": "b"}', 400),
        (b'{"input": {"input": NaN}}', 400),
        (b'{"input": ' + b"9" * 5_000 + b"}", 400),
        (b'{"input": 7}', 422),
        (b'{"inputs": "x"}', 422),
        (b'{"entry": "nothing", "input": "x"}', 422),
        (b'{"entry": 7}', 422),
        (b'{"thread": ""}', 422),
        (b'{"project": "none"}', 404),
        (b'{"input": {"nothing": 1}}', 422),
        (b'{"input": "\\ud800"}', 201),
        (b'{"thread": "\\u0000", "input": "x", "entry": "shop"}', None),
    ],
)
def test_a_bad_request_says_what_is_wrong_and_begins_nothing(desk: Served, body: bytes, status: int | None) -> None:
    answer = desk.http.post("/api/runs", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == status or (status is None and answer.status_code in (201, 422))
    if answer.status_code == 201:
        desk.http.delete(f"/api/runs/{answer.json()['run_id']}")
    else:
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        *("/api/runs?limit=0", "/api/runs?limit=x", "/api/runs?limit=99999999999999", "/api/runs?status=odd"),
        *("/api/runs?statuss=failed", "/api/threads?user=ann", "/api/projects?x=1"),
        f"/api/runs?limit={'1'.zfill(6_000)}",
    ],
)
def test_a_bad_parameter_is_refused(desk: Served, path: str) -> None:
    assert desk.http.get(path).status_code == 422


def test_projects_and_their_entries_are_listed(desk: Served) -> None:
    found = desk.http.get("/api/projects").json()["projects"]

    assert [(each["name"], each["entries"][0]) for each in found] == [("desk", "clerk"), ("shop", "clerk")]
    assert {"asker", "shop"} <= set(found[0]["entries"])


def test_the_description_names_every_route(desk: Served) -> None:
    described = desk.http.get("/api/openapi.json").json()
    app = desk.service._app._app
    routes = {
        (route.path.replace(":path}", "}"), method.lower())
        for route in app.routes
        for method in route.methods - {"HEAD"}
        if route.path.startswith(("/api/", "/v1/")) and route.path != "/api/openapi.json"
    }

    named = {(path, method) for path, item in described["paths"].items() for method in item if method != "parameters"}
    assert named == routes | {("/api/session", "post")}


@pytest.mark.slow
def test_runs_of_another_process_are_listed_and_followed(desk: Served, tmp_path: Path) -> None:
    root = desk.service.projects[0].project.root
    words = [sys.executable, "-m", "llm_do.cli", "run", str(root), "--entry", "shop", "from elsewhere"]
    subprocess.run(words, check=True, capture_output=True)
    run = desk.http.get("/api/runs?limit=1").json()["runs"][0]

    assert (run["entry"], run["here"]) == ("shop", False)
    assert desk.stream(run["run_id"])[-2][1]["output"] == "Tea is 4.20."


def test_a_beginning_that_several_runs_have_is_refused_with_their_ids(desk: Served) -> None:
    runs = [desk.start(entry="shop", input="x", project=name) for name in ("desk", "shop") for _ in range(9)]
    for run in runs:
        desk.ended(run)
    digits = [run[0] for run in runs]
    prefix = next(each for each in digits if digits.count(each) > 1)  # 18 runs, and 16 digits

    for refused in (desk.http.get(f"/api/runs/{prefix}"), desk.http.delete(f"/api/runs/{prefix}")):
        assert refused.status_code == 404
        assert f"several runs have ids that begin with '{prefix}': " in refused.json()["error"]["message"]
        assert refused.json()["error"]["hint"] == "Write more of the id."
