"""Assertions about URLs, proved of the built-in HTTP tools by the facts that they declare."""

from __future__ import annotations

from llm_do.linker.linker import check_project
from tests.linker.conftest import Make, agent, codes, manifest
from tests.support.tables import each_row

RULES = {
    "allow": ["http_get(https://a.org/pub/**)", "http_request(url=https://a.org/hook, method=POST)"],
    "deny": ["web:net", "net(https://a.org/secret/**)"],
}


@each_row(
    "assertion, broken",
    [
        ("never net(https://a.org/admin/**) unless asked", False),
        ("never net(https://b.org/**) unless asked", False),
        ("never net(https://a.org/secret/**)", False),
        ("never net(http://A.org:8080/secret/x)", False),
        ("never http_get(https://a.org/pub/secret/**)", True),
        ("never web -> net", False),
        ("never reader -> net(https://a.org/pub/x) unless asked", True),
        ("never net(a.org) unless asked", True),
        ("never net(https://a.org/pub/x?q=*) unless asked", False),
        ("never http_get(https://a.org/hook) unless asked", False),
        ("never http_request(https://a.org/hook/**) unless asked", True),
        ("never http_request(https://a.org/hook/x) unless asked", False),
    ],
)
def test_an_assertion_about_a_url_is_proved_or_broken(make: Make, assertion: str, broken: bool) -> None:
    made = manifest("reader", approvals=RULES, permissions={"assert": [assertion]})
    files = {
        "project.json": made,
        "reader.agent": agent("reader", "toolsets: [http, web]"),
        "web.agent": agent("web", "toolsets: [http]"),
    }
    found = [code for code in codes(check_project(make(files))) if code.startswith("LD61")]
    assert found == (["LD611"] if broken else []), assertion
