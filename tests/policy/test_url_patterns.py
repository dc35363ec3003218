"""How rules are compared with URLs: scheme, host, port, path and query, in whatever way a URL is spelled."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import example, given, strategies as st

from llm_do.linker.proofs.representative_urls import representative_urls
from llm_do.policy.arguments import read_host, resolve_by_text
from llm_do.policy.decision import decide
from llm_do.policy.pattern import ArgumentPattern, parse_pattern
from llm_do.policy.rules import Policy, build_policy
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.urls.url import read_url
from llm_do.policy.values import Host, ToolCallInfo
from tests.support.tables import each_row

FACTS = ToolFacts("toolset", ("url",), primary="url", hosts=["url"], reads=["url"])


def call(url: str) -> ToolCallInfo:
    args = {"url": url}
    return ToolCallInfo(
        "http_get", args, kind="toolset", primary="url", resolved=resolve_by_text(FACTS, args), reads=("url",)
    )


def policy(**rules: list[object]) -> Policy:
    found, faults = build_policy(rules)
    assert not faults
    return found


def pattern(text: str) -> ArgumentPattern:
    found = parse_pattern(f"http_get({text})").primary
    assert found is not None
    return found


def host(url: str) -> Host:
    found = read_host(url)
    assert found is not None, url
    return found


@each_row(
    "rule, allowed, refused",
    [
        (
            "https://api.example.org/v1/**",
            "https://api.example.org/v1/ https://API.example.org:443/v1/a/b https://api.example.org./v1/a#x "
            "https://api.example.org/%761/a https://api.example.org/x/../v1/a https://api.example.org/v1/a?",
            "https://api.example.org/v1 https://api.example.org/v2/a http://api.example.org/v1/a "
            "https://api.example.org:8443/v1/a https://api.example.org/v1/../admin https://example.org/v1/a "
            "https://api.example.org/v1/%2e%2e/admin https://api.example.org/V1/a https://api.example.org/v1/a?q=1 "
            "https://api.example.org.evil.org/v1/a https://evil.org/https://api.example.org/v1/a "
            "https://me@api.example.org/v1/a https://api.example.org@evil.org/v1/a api.example.org",
        ),
        (
            "https://a.org/users/*/posts",
            "https://a.org/users/7/posts https://a.org/users/a%20b/posts https://a.org/users/é%2C/posts".replace(
                "é", "%C3%A9"
            ),
            "https://a.org/users//posts https://a.org/users/a/b/posts https://a.org/users/a%2Fb/posts "
            "https://a.org/users/a%5Cb/posts https://a.org/users/7/posts/ https://a.org/users/7/posts;x=1/.. "
            "https://a.org/users/..;/posts https://a.org/users/%252e%252e/posts",
        ),
        (
            "https://a.org",
            "https://a.org https://a.org/ https://A.ORG:443",
            "https://a.org/x http://a.org https://a.org/?x",
        ),
        ("a.org/**", "https://a.org/x http://a.org http://a.org:80/", "https://a.org:8443/x ftp://a.org/x b.org"),
        ("a.org:*/**", "https://a.org:8443/x http://a.org:1/", "https://b.org:8443/x"),
        ("localhost:8080", "http://localhost:8080/", "http://localhost:8081/ http://localhost/"),
        ("'http://[::1]:8080'/**", "http://[0:0::1]:8080/x", "http://[::1]/x http://[::2]:8080/x"),
        ("*.example.org/**", "https://a.b.example.org/x", "https://example.org/x https://evil.org/.example.org/"),
        ("https://a.org/**?*", "https://a.org/x?q=1&r=2 https://a.org/x", "https://b.org/x?q=1"),
        (
            "https://a.org/s?q=*&page=*",
            "https://a.org/s?page=2&q=x https://a.org/s?q=a+b https://a.org/s https://a.org/s?%71=x",
            "https://a.org/s?q=x&token=1 https://a.org/s?q=x;token=1 https://a.org/s?Q=x https://a.org/s?q",
        ),
        ("https://a.org/s?q='a b'", "https://a.org/s?q=a+b https://a.org/s?q=a%20b", "https://a.org/s?q=a%2Bb"),
        (
            "https://a.org/g%2Fp/**",
            "https://a.org/g%2Fp/x https://a.org/g%2fp/",
            "https://a.org/g/p/x https://a.org/gXp/x",
        ),
        ("https://a.org/K%C3%B6ln", "https://a.org/K%c3%b6ln", "https://a.org/K%C3%B6l"),
        ("https://a.org/Köln", "https://a.org/K%c3%b6ln", "https://a.org/Koln"),
        ("**/secret", "", "https://a.org/secret/x"),
        ("*", "https://a.org/x?y=z a.org", "https://127.1/"),
    ],
)
def test_a_rule_allows_the_urls_that_it_spells(rule: str, allowed: str, refused: str) -> None:
    for name in (f"http_get({rule})", f"net({rule})"):
        rules = policy(allow=[name])
        for url in allowed.split():
            assert decide(call(url), rules).effect == "allow", (name, url)
        for url in refused.split():
            assert decide(call(url), rules).effect == "ask", (name, url)


@each_row(
    "url",
    [
        "https://a.org/admin",
        "https://a.org/ADMIN/x",
        "http://a.org:8080/admin/x?y=1",
        "https://a.org/x/../admin",
        "https://a.org/x%2f..%2fadmin",
        "https://a.org/%2561dmin/x",
        "https://a.org/x/..;/admin",
        "https://a.org//admin/",
        "https://a.org/%5cadmin",
        "https://a.org./%61dmin",
        "https://a.org/admin;x=1",
        "https://me:pw@a.org/admin",
        "https://a.org/x/%ff/admin",
        "a.org",
        "http://127.1/admin",
    ],
)
def test_a_rule_that_denies_matches_whatever_a_server_may_make_of_a_url(url: str) -> None:
    for name in ("http_get(https://a.org/admin)", "net(a.org/admin/**)", "net(https://a.org/admin/)"):
        if name.startswith("net(a.org/admin/**") and url == "https://a.org/admin":
            continue
        assert decide(call(url), policy(deny=[name], allow=["*"])).effect == "deny", (name, url)


def test_a_rule_that_denies_leaves_other_urls_alone() -> None:
    rules = policy(deny=["http_get(https://a.org/admin/**)", "net(https://a.org/**?token=*)"], allow=["net(*)"])
    for url in ("https://a.org/", "https://a.org/administrator", "https://b.org/admin/x", "https://a.org/x?q=token"):
        assert decide(call(url), rules).effect == "allow", url
    for url in ("https://a.org/x?q=1&TOKEN=2", "https://a.org/?q=1;%74oken=2"):
        assert decide(call(url), rules).effect == "deny", url


def test_commands_are_compared_with_the_host_of_a_url_that_a_rule_denies() -> None:
    facts = ToolFacts("toolset", ("command",), "command", commands=["command"], reads=["command"], writes=["command"])
    for command in ("curl https://a.org/", "curl -L https://a.org/public", "wget -r https://A.ORG", "curl a.org/admin"):
        args = {"command": command}
        shell = ToolCallInfo("shell", args, primary="command", resolved=resolve_by_text(facts, args))
        assert decide(shell, policy(deny=["net(https://a.org/admin/**)"])).effect == "deny", command
        assert decide(shell, policy(allow=["net(https://a.org/**)"])).effect == "ask", command


@each_row(
    "rule, fault",
    [
        ("https://me@a.org/**", "user name"),
        ("me@a.org", "user name"),
        ("https://a.org/x/../y", "`..`"),
        ("https://a.org/x#y", "`#`"),
        ("https://a.org:http/**", "port"),
        ("https://a.org:[0-9]/**", "port"),
        ("https://a.org/%zz", "`%`"),
        ("https:///x", "no host"),
        ("/admin/**", "no host"),
        ("https://[::1]/**", "quote an address"),
        ("https://bücher.example/**", "xn--bcher-kva.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("https://a.org/**", None),
        ("net.org:8080", None),
        ("*.example.org", None),
    ],
)
def test_a_pattern_that_no_url_can_match_has_a_fault(rule: str, fault: str | None) -> None:
    found = pattern(rule).mismatch("host")
    assert (found is None) if fault is None else (found is not None and fault in found), found


SEGMENTS = st.sampled_from(
    [
        "pub",
        "admin",
        "a",
        "A",
        ".",
        "..",
        "%2e%2e",
        "%2E.",
        "%2f",
        "..%2fadmin",
        "%5c..%5cadmin",
        "..;x",
        "a;b",
        "%252e%252e",
        "%25252e%25252e",
        "%252f",
        ";",
        "%3b",
        "%41",
        "..%5c",
        "%c3%a9",
        "..%3bx",
        "",
    ]
)
PATHS = st.lists(SEGMENTS, max_size=6).map("/".join)


def readings(path: str) -> set[str]:
    """What servers may make of a path: decoded never or often, with or without parameters, backslashes as slashes."""
    texts = [path.replace("%2e", ".").replace("%2E", ".")]
    while (decoded := unquote(texts[-1])) != texts[-1]:
        texts.append(decoded)
    found: set[str] = set()
    for text in (texts[0], texts[-1], texts[-1].replace("\\", "/")):
        bare = "/".join(part.partition(";")[0] for part in text.split("/"))
        found |= {posixpath.normpath("/" + each.lstrip("/")) for each in (text, bare)}
    return found


@given(PATHS)
@example("pub/..%2f..%2fadmin")
def test_what_a_rule_allows_stays_in_its_folder_however_a_server_reads_it(path: str) -> None:
    if not pattern("https://a.org/pub/**").url.allows(host(f"https://a.org/pub/{path}")):
        return
    for reading in readings(f"/pub/{path}"):
        assert reading == "/pub" or reading.startswith("/pub/"), reading


@given(PATHS, st.booleans(), st.sampled_from(["", "?", "?q=%41", "?q=a+b&r", "#x"]))
def test_a_url_has_one_spelling(path: str, upper: bool, rest: str) -> None:
    first = read_url(f"https://a.org/{path}{rest}")
    assert first is not None
    assert first.url is not None
    assert read_url(f"HTTPS://{'A.ORG.' if upper else 'a.org:443'}{first.url.target}#x") == first
    encoded = "".join(f"%{ord(char):02x}" if char.isalpha() and char > "f" else char for char in path)
    assert read_url(f"HTTPS://a.org/{encoded}{rest}") == first


PATTERNS = st.sampled_from(
    [
        "https://a.org/**",
        "https://a.org/pub/**",
        "https://a.org/pub/*",
        "a.org/pub/",
        "https://a.org/**?q=*",
        "*.org",
        "a.org",
        "a.org:8080",
        "https://a.org/*/admin",
        "https://a.org/**/admin?*",
        "http*://a.org:*/pub/**",
        "*/a*/**",
    ]
)
URLS = st.builds(
    "{}://{}{}/{}{}".format,
    st.sampled_from(["https", "http", "ftp"]),
    st.sampled_from(["a.org", "b.org", "x.a.org", "A.org"]),
    st.sampled_from(["", ":443", ":8080", ":1"]),
    st.lists(st.sampled_from(["pub", "admin", "a", "ab", "PUB", "x", ""]), max_size=4).map("/".join),
    st.sampled_from(["", "?q=1", "?r=1", "?q=1&r=2", "?Q=1"]),
)


@given(PATTERNS, URLS | PATHS.map("https://a.org/{}".format))
def test_a_rule_that_denies_matches_all_that_a_rule_of_the_same_pattern_allows(text: str, url: str) -> None:
    glob = pattern(text).url
    # A rule that denies a parameter is about URLs that have one.
    assert not glob.allows(host(url)) or glob.touches(host(url)) or (glob.query and "?" not in url)


@pytest.mark.slow
@given(st.lists(PATTERNS, min_size=1, max_size=4, unique=True), URLS | PATHS.map("https://a.org/pub/{}".format))
def test_some_representative_is_as_lenient_as_any_url(texts: list[str], url: str) -> None:
    """The first pattern is what an assertion is about; each other one may allow, deny or ask."""
    globs = [pattern(text).url for text in texts]
    about, rules = globs[0], globs[1:]
    here = host(url)
    if not about.touches(here):
        return
    others = [host(each) for each in representative_urls([pattern(text) for text in texts]) if read_host(each)]
    assert any(
        about.touches(other)
        and all(rule.allows(other) or not rule.allows(here) for rule in rules)
        and all(rule.touches(here) or not rule.touches(other) for rule in rules)
        for other in others
    ), (texts, url)


@pytest.mark.parametrize("text", ["https://a.org/" + "*a" * 60, "https://a.org/" + "**/a/" * 40 + "b"])
def test_a_pattern_takes_no_exponential_time(text: str) -> None:
    assert not pattern(text).url.allows(host("https://a.org/" + "a/" * 800 + "aaaaaaaaaaaa" * 40))


def test_equal_hosts_are_equal_whatever_the_url() -> None:
    one, other = host("https://a.org/x"), host("https://a.org/y")
    assert one == other
    assert hash(one) == hash(other)
    assert one.url is not None
    assert replace(one.url, path="/y") == other.url
