"""Who may ask a server, and what is refused before any route: hosts, keys, cookies, origins, sizes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.tables import sampled
from tests.web.served import ANN, KEY, Served, httpx, serving, write_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that another host's name leads to."""
    with serving([write_desk(tmp_path_factory.mktemp("served") / "desk")], hosts=["desk.example.org"]) as found:
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
    "header", [f"Authorization: Bearer {KEY}", "Origin: http://127.0.0.1", "Last-Event-ID: 1", "Sec-Fetch-Site: none"]
)
def test_a_repeated_header_on_which_access_depends_is_refused(desk: Served, header: str) -> None:
    """A proxy might have checked the other one of two."""
    name = header.partition(":")[0]
    answer = raw(desk, f"GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n{name}: x\r\n\r\n".encode())

    assert answer.split()[1] == "400"


@pytest.mark.parametrize(
    "header", sampled(["", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", KEY])
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


def test_a_body_that_no_one_can_read_gets_no_session(desk: Served) -> None:
    headers = {"Origin": desk.url, "Content-Type": "application/json"}
    answer = httpx.post(f"{desk.url}/api/session", content=b"[" * 100_000, headers=headers, trust_env=False)

    assert answer.status_code == 401


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
