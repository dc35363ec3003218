"""MCP servers pasted from another program's configuration: the hint is what to write instead, and it is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm_do.formats.manifest import parse_manifest
from tests.support.tables import each_row

BASE = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}
FOO = {"command": "npx", "args": ["-y", "foo"]}
OURS = {"type": "mcp", "command": ["npx", "-y", "foo"]}


def hints(**manifest: Any) -> list[str]:
    found = parse_manifest(json.dumps({**BASE, **manifest}), "project.json").diagnostics
    assert found != []
    return [item.hint or "" for item in found]


@each_row(
    "server, ours",
    [
        (FOO, OURS),
        ({"type": "stdio", **FOO}, OURS),
        ({"type": "mcp", **FOO}, OURS),
        ({"type": "mcp", "command": ["npx"], "args": ["-y", "foo"]}, OURS),
        ({"type": "mcp", "command": "npx -y foo"}, OURS),
        ({"command": ["npx", "-y", "foo"]}, OURS),
        ({"command": "my server", "args": ["x y"]}, {"type": "mcp", "command": ["my server", "x y"]}),
        ({"command": "it's"}, {"type": "mcp", "command": ["it's"]}),
        ({"url": "https://example.org/mcp"}, {"type": "mcp", "url": "https://example.org/mcp"}),
        ({"type": "http", "url": "https://example.org/mcp"}, {"type": "mcp", "url": "https://example.org/mcp"}),
        (
            {"type": "sse", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer secret-1"}},
            {"type": "mcp", "url": "https://example.org/mcp", "headers": {"Authorization": "..."}},
        ),
        ({**FOO, "env": {"TOKEN": "secret-1"}, "timeout": 5}, {**OURS, "env": {"TOKEN": "${TOKEN}"}, "timeout": 5}),
    ],
)
def test_the_hint_is_the_server_as_it_has_to_be_written(server: Any, ours: Any) -> None:
    for hint in hints(toolsets={"foo": server}):
        assert json.loads(hint.removeprefix("write ")) == ours
    accepted = parse_manifest(json.dumps({**BASE, "toolsets": {"foo": ours}}), "project.json")
    assert accepted.diagnostics == ()


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_a_whole_block_is_rewritten(key: str) -> None:
    block = {"foo": {**FOO, "env": {"TOKEN": "secret-1"}}, "bar": {"url": "https://example.org/mcp"}}
    written = {
        "foo": {**OURS, "env": {"TOKEN": "${TOKEN}"}},
        "bar": {"type": "mcp", "url": "https://example.org/mcp"},
    }
    for manifest in ({key: block}, {"toolsets": {key: block}}, {"toolsets": {"mcpServers": {key: block}}}):
        (found,) = parse_manifest(json.dumps({**BASE, **manifest}), "project.json").diagnostics
        assert found.hint == "write the servers as they are below"
        assert json.loads(f"{{{found.block}}}") == {"toolsets": written}


@each_row(
    "manifest",
    [
        {"mcpServers": {}},
        {"mcpServers": 7},
        {"servers": {"a": 1}},
        {"toolsets": {"docs": {"root": "docs"}}},
        {"toolsets": {"sh": {"allow": ["ls"], "command": "x"}}},
        {"toolsets": {"sh": 3}},
    ],
)
def test_what_is_no_server_gets_the_usual_hints(manifest: Any) -> None:
    assert all("mcp" not in hint or "the keys here" in hint for hint in hints(**manifest))
