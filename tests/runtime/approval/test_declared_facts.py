"""The facts that authors declare for functions, objects and toolsets, and how rules use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset

from llm_do import Tool, ToolFacts, tool
from llm_do.policy.rules import build_policy
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

RULES = {"allow": ["*http_get(*.example.org)"], "deny": ["*http_get(secret.example.org)"]}
URLS = {
    "https://api.example.org/v1": "success",
    "https://evil.org/?a=.example.org": "denied",
    "https://SECRET.example.org": "denied",
}


def http_get(url: str) -> str:
    return "a page"


class HttpGet(Tool):
    name = "http_get"
    description = "Get a page."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
    primary = "url"
    hosts = ("url",)

    async def execute(self, **kwargs: Any) -> str:
        return "a page"


class Web(FunctionToolset[Any]):
    tool_facts: ClassVar = {"http_get": ToolFacts(primary="url", hosts=["url"])}


def outcomes(rules: Mapping[str, Any] = RULES, urls: Mapping[str, str] = URLS, **fields: Any) -> list[str]:
    name = fields.pop("name", "http_get")
    spec = agent("main", script([call(name, url=url) for url in urls], "fin"), **fields)
    result = carry_out(runtime_of([spec], approvals="reject_all", policy=build_policy(rules)[0]))
    return [outcome for _, outcome, _ in results_of(result.messages)]


def declared() -> dict[str, dict[str, Any]]:
    facts = {"facts": ToolFacts(primary="url", hosts=["url"])}

    @tool(name="http_get", primary="url", hosts=["url"], reads=["url"], repeatable=True)
    def get(url: str) -> str:
        return http_get(url)

    return {
        "a function": {"tools": [get]},
        "a tool object": {"tools": [HttpGet()]},
        "a tool of PydanticAI's": {"tools": [PydanticTool(http_get, metadata=facts)]},
        "a toolset's tool": {"toolsets": [FunctionToolset([PydanticTool(http_get, metadata=facts)])]},
        "a toolset": {"toolsets": [Web([http_get])]},
        "a toolset in a wrapper": {"toolsets": [Web([http_get]).prefixed("web")], "name": "web_http_get"},
        "a toolset that a factory makes": {"toolsets": [lambda ctx: Web([http_get])]},
        "a toolset that may hide its tools": {"toolsets": [Web([http_get]).filtered(lambda ctx, each: True)]},
    }


@pytest.mark.parametrize("name", declared())
def test_rules_match_a_declared_host(name: str) -> None:
    assert outcomes(**declared()[name]) == list(URLS.values())


def test_a_tool_without_declared_facts_is_compared_as_text() -> None:
    rules = {"allow": ["http_get(url=*.example.org)"]}
    assert outcomes(rules, {"https://evil.org/?a=.example.org": ""}, tools=[http_get]) == ["success"]


def test_a_declared_default_applies_if_no_rule_matches() -> None:
    for default, outcome in (("allow", "success"), ("ask", "denied"), ("deny", "denied")):
        facts = {"http_get": ToolFacts(default=default)}  # type: ignore[arg-type]
        toolset = type("Own", (FunctionToolset,), {"tool_facts": facts})([http_get])
        assert outcomes({}, {"https://example.org": ""}, toolsets=[toolset]) == [outcome]
    assert outcomes({"allow": ["http_get"]}, {"https://example.org": ""}, toolsets=[toolset]) == ["denied"]


@pytest.mark.parametrize("kind", ["agent", "builtin"])
def test_an_author_cannot_declare_a_kind_that_is_allowed_by_default(kind: Any) -> None:
    facts = ToolFacts(kind, primary="url", hosts=["url"])
    described = PydanticTool(http_get, metadata={"facts": facts})
    declaring = type("Own", (FunctionToolset,), {"tool_facts": {"http_get": facts}})([http_get])
    every: list[dict[str, Any]] = [
        {"tools": [described]},
        {"toolsets": [FunctionToolset([described])]},
        {"toolsets": [declaring]},
    ]
    for fields in every:
        assert outcomes({}, {"https://example.org": ""}, **fields) == ["denied"]
        assert outcomes(**fields) == list(URLS.values())


@each_row("default", ["never", "prompt", "", False, {"effect": "ask"}])
def test_an_unknown_default_is_an_error(default: Any) -> None:
    with pytest.raises(ValueError, match="default is 'allow', 'ask' or 'deny'"):
        ToolFacts(default=default)


def test_invalid_facts_deny_the_call() -> None:
    toolset = FunctionToolset([PydanticTool(http_get, metadata={"facts": {"hosts": ["url"]}})])
    assert outcomes({"allow": ["http_get"]}, {"https://example.org": ""}, toolsets=[toolset]) == ["denied"]


def test_a_declared_command_is_matched_word_by_word() -> None:
    @tool(primary="command", commands=["command"])
    def run(command: str) -> str:
        return "done"

    rules = {"allow": ["run(git log *)"]}
    calls = [call("run", command=line) for line in ("git log -3", "git log; rm x", "git log --output=x")]
    result = carry_out(
        runtime_of(
            [agent("main", script(calls, "fin"), tools=[run])], approvals="reject_all", policy=build_policy(rules)[0]
        )
    )
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success", "denied", "denied"]
