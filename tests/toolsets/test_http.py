"""The toolset `http`: what it sends, what comes back, and what it leaves to policy."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import RunResult, Runtime
from llm_do.formats.toolset_config import option_faults
from llm_do.policy.rules import build_policy
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_option_faults
from llm_do.ui.reports.explanation import explain_data
from tests.support.history import results_of
from tests.support.runs import Answers, agent, carry_out, heard, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.support.web_server import Page, Received, Site, serve_pages

TOKEN = "tok-0123456789-abcdef"


def redirect(to: str, status: int = 302) -> Page:
    return Page(b"moved", status, headers={"location": to})


PAGES: dict[str, Page | Callable[[Received], Page]] = {
    "/": Page(b"Hello."),
    "/data": Page(b'{"a": [1]}', kind="application/json; charset=utf-8"),
    "/latin": Page("café".encode("latin-1"), kind="text/html; charset=ISO-8859-1"),
    "/picture": Page(b"\x89PNG\r\n\0\0", kind="image/png"),
    "/missing": Page(b"no such user", 404),
    "/long": Page(b"x" * 5_000),
    "/echo": lambda request: Page(json.dumps(dict(request.headers)).encode(), kind="application/json"),
    "/v1/old": redirect("/v1/new"),
    "/v1/new": Page(b"moved here"),
    "/v1/admin": redirect("/admin"),
    "/admin": Page(b"secrets"),
    "/v1/away": redirect("http://example.invalid/x"),
    "/v1/loop": redirect("loop"),
    "/v1/form": redirect("/v1/new", 303),
    "/v1/again": redirect("/v1/sink", 307),
    "/v1/sink": Page(b"taken"),
}


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_pages(PAGES) as running:
        yield running


def runtime_for(site: Site, *calls: Any, options: dict[str, Any] | None = None, **settings: Any) -> Runtime:
    config = {"type": "http", "private": [f"127.0.0.1:{site.port}"], "timeout": 120, **(options or {})}
    spec = agent("main", script(*(list(calls) or ["done"]), "done"), toolsets=[ToolsetRef("api", prefix="")])
    rules, approvals = settings.pop("rules", None), settings.pop("approvals", "approve_all")
    if rules is not None:
        settings["policy"], faults = build_policy(rules)
        assert not faults
    project = project_of([spec], toolsets={"api": BuiltinToolset("api", config)}, **settings)
    return Runtime(project, approvals=approvals)


def outcomes(result: RunResult) -> list[tuple[str, Any]]:
    assert result.status == "completed", result.error
    return [(outcome, text) for _, outcome, text in results_of(result.messages)]


def responses(site: Site, *calls: Any, **settings: Any) -> list[Any]:
    """Make calls one after another and return what the model got of each."""
    texts = [text for _, text in outcomes(carry_out(runtime_for(site, *calls, **settings)))]
    return [literal_eval(text) if text.startswith("{") else text for text in texts]


def get(url: str) -> Any:
    return call("http_get", url=url)


def test_a_get_returns_status_type_and_text(site: Site) -> None:
    found = responses(site, *(get(site.url + path) for path in ("/data?q=%7e#x", "/latin", "/missing", "")))

    assert found == [
        {"status": 200, "content_type": "application/json; charset=utf-8", "body": '{"a": [1]}'},
        {"status": 200, "content_type": "text/html; charset=iso-8859-1", "body": "café"},
        {"status": 404, "content_type": "text/plain", "body": "no such user"},
        {"status": 200, "content_type": "text/plain", "body": "Hello."},
    ]
    assert site.targets == ["/data?q=~", "/latin", "/missing", "/"]
    sent = site.requests[0]
    assert (sent.method, sent.headers["host"], sent.headers["accept-encoding"]) == (
        "GET",
        f"127.0.0.1:{site.port}",
        "gzip",
    )


def test_a_request_sends_a_body_of_a_media_type(site: Site) -> None:
    rows = [
        call("http_request", method="POST", url=f"{site.url}/v1/sink", body='{"a": "é"}'),
        call("http_request", method="PUT", url=f"{site.url}/v1/sink", body="a=1", content_type="text/plain"),
        call("http_request", method="DELETE", url=f"{site.url}/v1/sink"),
    ]
    assert [each["body"] for each in responses(site, *rows)] == ["taken"] * 3
    assert [(each.method, each.body, each.headers.get("content-type")) for each in site.requests] == [
        ("POST", '{"a": "é"}'.encode(), "application/json"),
        ("PUT", b"a=1", "text/plain"),
        ("DELETE", b"", None),
    ]


def test_a_body_that_is_no_text_or_too_long_is_a_note(site: Site) -> None:
    picture, long = responses(site, get(f"{site.url}/picture"), get(f"{site.url}/long"), options={"max_bytes": 1_000})
    assert picture["body"] == ""
    assert picture["note"] == "the body of 8 bytes (image/png) is not text"
    assert long["body"] == "x" * 1_000
    assert long["note"] == "these are the first 1,000 bytes; the rest was not read"


def test_a_body_that_is_too_long_for_the_model_keeps_its_ends(site: Site) -> None:
    (found,) = responses(site, get(f"{site.url}/long"), max_result_bytes=2_000)
    assert found["status"] == 200
    assert found["body"].startswith("xxx")
    assert "bytes left out" in found["body"]
    assert len(found["body"]) < 2_000


def test_configured_headers_are_sent_below_the_base_and_never_shown(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_LOGIN", TOKEN)
    options = {"base_url": f"{site.url}/", "headers": {"X-Login": "Bearer ${SITE_LOGIN}", "X-Team": "${TEAM:-blue}"}}
    runtime = runtime_for(site, get(f"{site.url}/echo"), options=options)
    events = heard(runtime)
    result = carry_out(runtime)

    assert site.requests[0].headers["x-login"] == f"Bearer {TOKEN}"
    assert site.requests[0].headers["x-team"] == "blue"
    ((_, text),) = outcomes(result)
    assert "Bearer [redacted SITE_LOGIN]" in text
    assert TOKEN not in repr(result.messages)
    assert TOKEN not in repr(events.events)


def test_a_variable_that_is_not_set_fails_the_call(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SITE_LOGIN", raising=False)
    options = {"base_url": site.url, "headers": {"X-Login": "${SITE_LOGIN}"}}
    (text,) = responses(site, get(f"{site.url}/echo"), options=options)
    assert "the environment variable SITE_LOGIN is not set" in text
    assert site.requests == []


def test_requests_outside_the_base_are_refused(site: Site) -> None:
    urls = ["/admin", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2fadmin", "/v1/..;/admin", "/v10/x"]
    found = responses(site, *(get(site.url + url) for url in urls), options={"base_url": f"{site.url}/v1/"})
    assert all("isn't below" in each for each in found), found
    assert site.requests == []
    other = responses(site, get(f"http://localhost:{site.port}/v1/x"), options={"base_url": f"{site.url}/v1/"})
    assert "isn't below" in other[0]


def test_a_redirect_is_followed_where_policy_allows_it(site: Site) -> None:
    rules = {"allow": [f"http_get({site.url}/v1/**)"]}
    paths = ["/v1/old", "/v1/admin", "/v1/away", "/v1/loop"]
    found = responses(site, *(get(site.url + path) for path in paths), rules=rules, approvals="prompt")

    assert found[0] == {"status": 200, "content_type": "text/plain", "body": "moved here", "url": f"{site.url}/v1/new"}
    assert (found[1]["status"], found[1]["location"]) == (302, "/admin")
    assert "no rule allows it" in found[1]["note"]
    assert found[2]["location"] == "http://example.invalid/x"
    assert "another host" in found[2]["note"]
    assert "more than 5 redirects" in found[3]["note"]
    assert "/admin" not in site.targets
    assert site.targets.count("/v1/loop") == 6


def test_an_answer_for_one_call_follows_no_redirect(site: Site) -> None:
    person = Answers(["once"])
    (found,) = responses(site, get(f"{site.url}/v1/old"), approvals=person)
    assert found["location"] == "/v1/new"
    assert site.targets == ["/v1/old"]
    assert person.asked[0].description == f"Get {site.url}/v1/old"


def test_a_redirected_request_is_judged_with_the_method_that_it_gets(site: Site) -> None:
    url = f"{site.url}/v1"
    calls = [call("http_request", method="POST", url=f"{url}/{name}", body="x") for name in ("form", "again")]
    narrow = {"allow": [f"http_request(url={url}/**, method=POST)"]}
    form, again = responses(site, *calls, rules=narrow, approvals="prompt")
    assert (form["status"], again["body"]) == (303, "taken")
    assert [(each.method, each.target) for each in site.requests] == [
        ("POST", "/v1/form"),
        ("POST", "/v1/again"),
        ("POST", "/v1/sink"),
    ]
    (form,) = responses(site, calls[0], rules={"allow": [f"http_request({url}/**)"]}, approvals="prompt")
    assert form["body"] == "moved here"
    assert (site.requests[-1].method, site.requests[-1].body) == ("GET", b"")


def test_facts_alone_make_rules_questions_and_effects(site: Site) -> None:
    rules = {"allow": ["net(https://api.example.org/v1/**)"], "deny": ["http_request(method=DELETE)"]}
    project = runtime_for(site, rules=rules).project

    def effect(tool: str, **args: str) -> str:
        return explain_data(project, ["main", tool, json.dumps(args)])["effect"]

    assert effect("http_get", url="https://api.example.org/v1/x") == "allow"
    assert effect("http_get", url="https://api.example.org/") == "ask"
    assert effect("http_request", method="POST", url="https://api.example.org/v1/x") == "allow"
    assert effect("http_request", method="DELETE", url="https://api.example.org/v1/x") == "deny"


def test_a_model_is_told_the_base_and_a_call_that_must_fail_asks_no_one(site: Site) -> None:
    person = Answers(["once"])
    calls = [get("http://10.0.0.1/x"), get(f"{site.url}/admin")]
    runtime = runtime_for(site, *calls, options={"base_url": f"{site.url}/v1"}, approvals=person)
    assert [outcome for outcome, _ in outcomes(carry_out(runtime))] == ["failed", "failed"]
    assert person.asked == []
    toolset = runtime.builder.toolset("api")
    assert isinstance(toolset, FunctionToolset)
    for tool in toolset.tools.values():
        assert str(tool.description).endswith(f"URLs have to begin with {site.url}/v1.")


@each_row(
    "options, fault",
    [
        ({}, None),
        ({"base_url": "https://api.example.org/v1/", "headers": {"Authorization": "Bearer ${T}"}}, None),
        ({"base_url": "http://localhost:8080", "private": ["localhost:8080"], "headers": {"X-Key": "k"}}, None),
        ({"base_url": "http://10.1.2.3/", "private": ["10.0.0.0/8"], "headers": {"X-Key": "k"}}, None),
        ({"base_url": "api.example.org"}, "base_url"),
        ({"base_url": "ftp://example.org/"}, "base_url"),
        ({"base_url": "https://me:pw@example.org/"}, "base_url"),
        ({"base_url": "https://example.org/?q=1"}, "base_url"),
        ({"base_url": "https://example.org/#x"}, "base_url"),
        ({"base_url": "https://example.org/a%2Fb"}, "base_url"),
        ({"base_url": "https://${HOST}/"}, "base_url"),
        ({"base_url": "https://example.org/${VERSION}/"}, "base_url"),
        ({"private": ["${HOST}"]}, "private"),
        ({"base_url": "http://127.0.0.1:8080/"}, "base_url"),
        ({"base_url": "http://localhost/"}, "base_url"),
        ({"base_url": "http://[::1]/", "private": ["127.0.0.1"]}, "base_url"),
        ({"headers": {"X-Key": "k"}}, "headers"),
        ({"headers": {"X-Key": "k"}, "base_url": "http://example.org/"}, "headers"),
        ({"headers": {"Host": "evil.org"}, "base_url": "https://example.org/"}, "headers"),
        ({"headers": {"Content-Length": "1"}, "base_url": "https://example.org/"}, "headers"),
        ({"headers": {"X Key": "k"}, "base_url": "https://example.org/"}, "headers"),
        ({"headers": {"X-Key": "a\r\nX-Other: b"}, "base_url": "https://example.org/"}, "headers"),
        ({"private": ["http://localhost"]}, "private"),
        ({"private": ["*.local"]}, "private"),
        ({"private": ["10.0.0.0/33"]}, "private"),
        ({"private": [""]}, "private"),
        ({"timeout": 0}, "timeout"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"redirects": True}, "redirects"),
    ],
)
def test_options_are_checked(options: dict[str, Any], fault: str | None) -> None:
    assert list(option_faults({"type": "http", **options})) == ([] if fault is None else [fault])


def test_variables_in_addresses_are_refused_with_a_reason() -> None:
    faults = option_faults({"type": "http", "base_url": "${API:-https://example.org/}", "private": ["${HOST}:80"]})
    assert ["`${NAME}` isn't filled in here" in reason for reason in faults.values()] == [True, True]


def test_an_agent_cannot_send_the_manifests_headers_elsewhere() -> None:
    toolset = BuiltinToolset("api", {"type": "http", "base_url": "https://a.org/", "headers": {"X-Key": "${KEY}"}})
    assert "base_url" in find_option_faults(toolset, {"base_url": "https://b.org/"}).wrong
    assert find_option_faults(toolset, {"timeout": 5}).wrong == {}
