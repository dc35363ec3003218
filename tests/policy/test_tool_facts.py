"""How a tool's facts resolve its arguments, and how rules match hosts."""

from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.policy.arguments import read_host, resolve_by_text
from llm_do.policy.decision import decide
from llm_do.policy.digest import call_digest
from llm_do.policy.proofs import check_examples
from llm_do.policy.proposals import narrowest_rule, proposed_rules
from llm_do.policy.rules import Policy, build_policy
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import ToolCallInfo
from tests.support.tables import each_row

HTTP_GET = ToolFacts("toolset", ("url", "timeout"), primary="url", hosts=["url"], reads=["url"])


def policy(**rules: list[object]) -> Policy:
    found, faults = build_policy(rules)
    assert not faults
    return found


def get(url: str) -> ToolCallInfo:
    args = {"url": url}
    resolved = resolve_by_text(HTTP_GET, args)
    return ToolCallInfo("http_get", args, kind="toolset", primary="url", resolved=resolved)


@each_row(
    "text, host",
    [
        ("https://example.org", "example.org"),
        ("https://EXAMPLE.org./path?query#fragment", "example.org"),
        ("http://api.example.org:8080/", "api.example.org"),
        ("https://user:secret@example.org/", "example.org"),
        ("https://example.org?x=@evil.org", "example.org"),
        ("https://example.org#@evil.org", "example.org"),
        ("ftp://example.org", "example.org"),
        ("example.org", "example.org"),
        ("localhost:8080", "localhost"),
        ("https://[2001:DB8::0:1]:443/x", "2001:db8::1"),
        ("[::1]", "::1"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("_service.example.org", "_service.example.org"),
    ],
)
def test_a_url_is_read_as_its_host(text: str, host: str) -> None:
    assert read_host(text) == host


@each_row(
    "text",
    [
        "",
        "https://",
        "https:///path",
        "https:example.org",
        "example.org/path",
        "//example.org",
        "https://example.org\\@evil.org/",
        "https://a@b@example.org/",
        "https://example.org:80:90/",
        "https://example.org:x/",
        "https://exa mple.org/",
        " https://example.org/",
        "https://example.org/\n",
        "https://exam\tple.org/",
        "https://exämple.org/",
        "https://example%2eorg/",
        "https://-example.org/",
        "https://example..org/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://010.0.0.1/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[fe80::1%25eth0]/",
        "https://[127.0.0.1]/",
        "https://[::ffff:127.0.0.1]/",
        f"https://{'a' * 64}.org/",
        f"https://{'a.' * 130}org/",
    ],
)
def test_a_url_that_programs_could_parse_differently_has_no_host(text: str) -> None:
    assert read_host(text) is None
    assert decide(get(text), policy(allow=["http_get(*)"])).effect == "ask"
    assert decide(get(text), policy(deny=["http_get(evil.org)"])).effect == "deny"


@given(st.text(alphabet="aA0.:/@[]%\\?#-x \n", max_size=12))
def test_any_text_has_a_valid_host_or_none(text: str) -> None:
    host = read_host(text)
    assert host is None or set(host) <= set("a0x.:-")


def test_a_rule_matches_the_host_of_a_url() -> None:
    rules = policy(allow=["http_get(*.example.org)"])
    for url in ("https://api.example.org/v1", "http://API.EXAMPLE.ORG:8080", "a.b.example.org"):
        assert decide(get(url), rules).effect == "allow", url
    for url in (
        "https://example.org",
        "https://evil.org/.example.org",
        "https://evil.org?x=.example.org",
        "https://api.example.org.evil.org",
        "https://api.example.org@evil.org",
    ):
        assert decide(get(url), rules).effect == "ask", url
    assert decide(get("https://www.Example.com"), policy(allow=["http_get(url=WWW.example.com)"])).effect == "allow"


def test_a_deny_or_ask_rule_may_match_the_rest_of_a_url_too() -> None:
    assert decide(get("https://evil.org/x"), policy(deny=["http_get(EVIL.org)"])).effect == "deny"
    assert decide(get("https://example.org/admin/x"), policy(deny=["http_get(*/admin/*)"])).effect == "deny"
    assert decide(get("https://example.org/x"), policy(deny=["http_get(*/admin/*)"])).effect == "ask"


def test_a_deny_or_ask_rule_matches_an_internationalized_host_in_both_spellings() -> None:
    for text in ("https://xn--exmple-cua.org", "https://EXÄMPLE.org", "https://xn--exmple-cua.org:443/x"):
        assert decide(get(text), policy(deny=["http_get(*exämple.org)"])).effect == "deny", text
    assert decide(get("https://xn--exmple-cua.org"), policy(allow=["http_get(exämple.org)"])).effect == "ask"
    assert decide(get("https://xn--999999999.org"), policy(deny=["http_get(exämple.org)"])).effect == "ask"


def test_a_rule_is_proposed_for_the_url_and_an_answer_is_bound_to_it() -> None:
    call = get("https://API.example.org/v1/users?q=1#top")
    exact, folder = "http_get('https://api.example.org/v1/users?q=1')", "http_get(https://api.example.org/v1/**?*)"
    assert narrowest_rule(call) == exact
    assert proposed_rules(call) == [f"main:{exact}", f"main:{folder}", "main:http_get"]
    assert narrowest_rule(get("api.example.org:8080")) == "http_get(api.example.org)"
    assert narrowest_rule(get("https://me:secret@api.example.org/v1")) == "http_get(api.example.org)"
    assert call_digest(call) != call_digest(get("https://api.example.com/v1?q=1"))


def test_the_facts_resolve_arguments_whatever_the_tools_name() -> None:
    (rule,) = policy(allow=[{"rule": "shell(git log *)", "refuses": ["git log x; rm x"]}]).rules
    assert check_examples(rule, [ToolFacts(primary="command", commands=["command"])]) == ()
    assert len(check_examples(rule, [ToolFacts(primary="command")])) == 1
    assert resolve_by_text(ToolFacts(paths=["path"]), {"path": "a/b", "content": "../x"}) == {"path": "a/b"}
    assert resolve_by_text(ToolFacts(paths=["path"]), {"path": "../x"}) == {"path": None}
    assert resolve_by_text(ToolFacts(commands=["line"]), {"line": "ls | head"}) == {"line": (("ls",), ("head",))}
    assert resolve_by_text(ToolFacts(hosts=["urls"]), {"urls": ["a.org"]}) == {"urls": None}
    assert resolve_by_text(ToolFacts(paths=["path"]), {"path": None}) == {}


def test_an_example_must_hold_for_every_tool_the_rule_matches() -> None:
    (rule,) = policy(allow=[{"rule": "*_file(docs/*)", "refuses": ["docs/a/b"]}]).rules
    path, text = ToolFacts(primary="path", paths=["path"]), ToolFacts(primary="path")
    assert check_examples(rule, [path]) == ()
    assert len(check_examples(rule, [path, text])) == 1
