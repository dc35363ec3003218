"""What is known of agents' tools without running them, and of built-ins without importing them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm_do import AgentSpec, tool
from llm_do.formats.toolset_config import parse_options
from llm_do.linker.analysis.inventory import Inventory
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE, BuiltinToolset, find_builtin, known_tools
from llm_do.runtime.tools.traits import BuiltinContext


@pytest.mark.parametrize("name", BUILTINS)
def test_the_declared_facts_of_a_builtin_match_its_toolset(name: str, tmp_path: Path) -> None:
    toolset = find_builtin(name)
    assert toolset is not None
    known = known_tools(toolset, {})
    assert known is not None
    made = toolset.load()(BuiltinContext(name, tmp_path, tmp_path))
    assert known == {
        tool.name: replace(tool.metadata["facts"], arguments=tuple(tool.tool_def.parameters_json_schema["properties"]))
        for tool in made.tools.values()
    }


@pytest.mark.parametrize("kind", [kind for kind in CONFIGURABLE if kind != "mcp"])
def test_a_configured_builtin_has_its_declared_tools(kind: str, tmp_path: Path) -> None:
    toolset = BuiltinToolset("mine", {"type": kind})
    made = toolset.load()(BuiltinContext("mine", tmp_path, tmp_path), parse_options("mine", {"type": kind}))
    known = known_tools(toolset, {})
    assert known is not None
    assert list(known) == list(made.tools)


def test_an_agents_tools_have_the_names_its_model_sees() -> None:
    @tool(primary="to", approval="allow")
    def send(to: str, text: str) -> str:
        return text

    critic = AgentSpec("critic", description="Judges.")
    names = {
        "send": Registered("send", "tool", send),
        "critic": Registered("critic", "agent", critic),
        "kit": Registered("kit", "toolset", lambda ctx: None),
    }
    spec = AgentSpec(
        "main",
        tools=["send"],
        toolsets=[
            ToolsetRef("critic", prefix="ask"),
            ToolsetRef("filesystem_project", include=("read_*", "delete_file"), exclude=("delete_*",)),
            "kit",
        ],
    )
    found = Inventory(names).of(spec)
    assert [(tool.name, tool.kind, tool.facts.primary, tool.approval) for tool in found.tools] == [
        ("send", "function", "to", "allow"),
        ("ask_critic", "agent", None, None),
        ("read_file", "toolset", "path", None),
    ]
    assert [origin.name for origin in found.open] == ["kit"]


def test_a_tool_listed_by_several_agents_is_made_once() -> None:
    def send(to: str) -> str:
        return to

    inventory = Inventory({"send": Registered("send", "tool", send)})
    assert inventory.build_tool(send, "send") is inventory.build_tool(send, "send")
