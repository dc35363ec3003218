"""The interface over HTTP: lists, live events, runs, questions, and who may do what."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.served import ANN, KEY, Served, httpx, serving, write_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of two projects."""
    roots = [write_desk(tmp_path_factory.mktemp("served") / name) for name in ("desk", "shop")]
    with serving(roots, hosts=["desk.example.org"]) as found:
        yield found


def raw(desk: Served, request: bytes) -> str:
    """Send bytes and return the answer."""
    with socket.create_connection(("127.0.0.1", int(desk.url.rpartition(":")[2])), timeout=10) as connection:
        connection.sendall(request)
        parts: list[bytes] = []
        while part := connection.recv(65536):
            parts.append(part)
            if b"\r\n\r\n" in b"".join(parts):
                break
    return b"".join(parts).decode("latin-1")


@pytest.fixture
def page(desk: Served) -> Iterator[Any]:
    """A browser's session: it has the cookie, and sends its origin with writes."""
    with httpx.Client(base_url=desk.url, timeout=30, trust_env=False, headers={"Origin": desk.url}) as http:
        answer = http.post("/api/session", json={"key": KEY})
        assert answer.status_code == 204
        yield http


# -- who may ask


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST", 200),
        ("[::1]:{port}", 200),
        ("desk.example.org", 200),
        ("Desk.Example.org:443", 200),
        ("evil.example.org", 421),
        ("desk.example.org.evil.com", 421),
        ("127.0.0.1.nip.io", 421),
        ("evil.com@127.0.0.1", 421),
        ("127.0.0.1/evil.com", 421),
        ("127.0.0.1?evil.com", 421),
        ("127.0.0.1#evil.com", 421),
        ("127.0.0.1:80:80", 421),
        ("127.0.0.1:port", 421),
        ("", 421),
        ("0.0.0.0", 421),
        ("127.0.0.1\\evil.com", 421),
        ("127.0.0.2", 421),
    ],
)
def test_a_host_is_this_machines_or_allowed(desk: Served, host: str, status: int) -> None:
    name = host.format(port=desk.url.rpartition(":")[2])
    answer = raw(desk, f"GET /api/runs HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())

    assert answer.startswith(f"HTTP/1.1 {status} ")


def test_two_hosts_or_none_are_refused(desk: Served) -> None:
    two = raw(desk, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")
    none = raw(desk, b"GET / HTTP/1.0\r\n\r\n")

    assert two.split()[1] in ("400", "421")
    assert none.split()[1] in ("400", "421")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", KEY]
)
def test_nothing_is_answered_without_the_key(desk: Served, header: str) -> None:
    headers = {"Authorization": header} if header else {}
    paths = ["/api/runs", "/api/projects", "/api/threads", "/api/openapi.json", "/api/runs/x/events", "/v1/models"]
    with httpx.Client(base_url=desk.url, headers=headers, trust_env=False) as http:
        codes = {http.get(path).status_code for path in paths}
        codes.add(http.post("/api/runs", json={}, headers={"Origin": desk.url}).status_code)

    assert codes == {401}


def test_the_page_itself_needs_no_key_and_has_no_data(desk: Served) -> None:
    with httpx.Client(base_url=desk.url, trust_env=False) as http:
        answers = [http.get(path) for path in ("/", "/compare", "/runs/abc")]

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert KEY not in answers[0].text


def test_a_session_is_a_cookie_of_this_port_that_scripts_and_other_sites_do_not_get(desk: Served) -> None:
    answer = httpx.post(f"{desk.url}/api/session", json={"key": KEY}, headers={"Origin": desk.url}, trust_env=False)
    cookie = answer.headers["set-cookie"].lower()

    assert cookie.startswith(f"llm_do_{desk.url.rpartition(':')[2]}=")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert KEY not in cookie


@pytest.mark.parametrize("key", ["wrong", "", None, 7, ["x"], ANN + "x"])
def test_a_wrong_key_gets_no_session(desk: Served, key: Any) -> None:
    answer = httpx.post(f"{desk.url}/api/session", json={"key": key}, headers={"Origin": desk.url}, trust_env=False)

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("{own}", 201),
        (None, 403),
        ("null", 403),
        ("http://127.0.0.1:1", 403),
        ("http://localhost", 403),
        ("http://evil.com", 403),
        ("{own}.evil.com", 403),
        ("{own}@evil.com", 403),
        ("file://", 403),
        ("{own}/", 403),
    ],
)
def test_a_write_with_a_cookie_comes_from_the_servers_own_page(
    desk: Served, page: Any, origin: str | None, status: int
) -> None:
    page.headers.pop("Origin")
    headers = {} if origin is None else {"Origin": origin.format(own=desk.url)}

    assert page.post("/api/runs", json={"entry": "shop", "input": "x"}, headers=headers).status_code == status


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_pages_read_nothing_either(page: Any, site: str) -> None:
    assert page.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403


def test_no_site_is_allowed_to_read_answers(desk: Served) -> None:
    answer = desk.http.request("OPTIONS", "/api/runs", headers={"Origin": "http://evil.com"})

    assert answer.status_code in (403, 405)
    assert not [name for name in desk.http.get("/api/runs").headers if name.startswith("access-control")]


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_is_taken(desk: Served, type: str) -> None:
    headers = {"Content-Type": type} if type else {}

    assert desk.http.post("/api/runs", content=b'{"input": "x"}', headers=headers).status_code == 415


def test_a_large_body_is_refused_whatever_it_says_of_its_size(desk: Served) -> None:
    large = json.dumps({"input": "x" * 2_000_000}).encode()
    known = desk.http.post("/api/runs", content=large, headers={"Content-Type": "application/json"})
    pieces = (large[at : at + 65536] for at in range(0, len(large), 65536))
    chunked = desk.http.post("/api/runs", content=pieces, headers={"Content-Type": "application/json"})

    assert (known.status_code, chunked.status_code) == (413, 413)


def test_long_headers_are_refused(desk: Served) -> None:
    lines = "".join(f"X-{number}: {'x' * 1000}\r\n" for number in range(100))
    answer = raw(desk, f"GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())

    assert answer.split()[1] in ("400", "431")


def test_every_answer_has_the_headers_that_keep_it_to_itself(desk: Served) -> None:
    for answer in (
        desk.http.get("/"),
        desk.http.get("/api/runs"),
        desk.http.get("/nowhere"),
        httpx.get(desk.url + "/api/runs"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers


def test_a_key_of_a_user_has_that_users_runs_and_threads_only(desk: Served) -> None:
    mine = desk.start(entry="shop", input="x", thread="t-owner")
    ann = httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30)
    theirs = ann.post("/api/runs", json={"entry": "shop", "input": "y", "thread": "t-ann"}).json()["run_id"]
    desk.ended(mine)
    desk.ended(theirs)

    assert [run["run_id"] for run in ann.get("/api/runs").json()["runs"]] == [theirs]
    assert [each["thread_id"] for each in ann.get("/api/threads").json()["threads"]] == ["t-ann"]
    for path in ("", "/events", "/questions"):
        assert ann.get(f"/api/runs/{mine}{path}").status_code == 404
    assert ann.delete(f"/api/runs/{mine}").status_code == 404
    assert desk.http.get(f"/api/runs/{theirs}").json()["run"]["user_id"] == "ann"
    assert ann.post("/api/runs", json={"input": "x", "user_id": "bob"}).status_code == 422
    ann.close()


# -- runs


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
        assert desk.ended(run)["files"] == [{"path": "<b>.md", "change": "created", "can_undo": True, "note": ""}]
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


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b"[" * 100_000, 400),
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
    "path", ["/api/runs?limit=0", "/api/runs?limit=x", "/api/runs?limit=99999999999999", "/api/runs?status=odd"]
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
