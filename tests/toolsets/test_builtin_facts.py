"""Every built-in tool declares what it is: without facts, no rule, question or check could know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from llm_do.formats.toolset_config import parse_options
from llm_do.project.tools.builtin_toolsets import BUILTINS, CONFIGURABLE, BuiltinToolset
from llm_do.project.tools.declared_facts import FACTS_KEY
from llm_do.project.tools.tool_schemas import fixed_tools
from llm_do.runtime.tools.traits import BuiltinContext, traits_of
from tests.support.tables import each_row

KINDS = [
    *((name, BuiltinToolset(name)) for name in BUILTINS),
    *((kind, BuiltinToolset("own", {"type": kind})) for kind, tools in CONFIGURABLE.items() if tools is not None),
]
DECLARED = {name: tools for name, tools in [*BUILTINS.items(), *CONFIGURABLE.items()] if tools is not None}


def tools_of(toolset: BuiltinToolset, root: Path) -> list[Any]:
    context = BuiltinContext(toolset.name, root, root)
    factory = toolset.load()
    made = factory(context, parse_options(toolset.name, toolset.config)) if toolset.config else factory(context)
    if isinstance(made, FunctionToolset):
        return list(made.tools.values())
    return list(fixed_tools(made) or ())


@pytest.mark.parametrize(("name", "toolset"), KINDS, ids=[name for name, _ in KINDS])
def test_every_tool_of_a_built_in_has_the_facts_that_are_declared(
    name: str, toolset: BuiltinToolset, tmp_path: Path
) -> None:
    tools = tools_of(toolset, tmp_path)

    assert {tool.name for tool in tools} == set(DECLARED[name])
    for tool in tools:
        traits, facts = traits_of(tool.metadata), DECLARED[name][tool.name]
        assert traits is not None
        assert FACTS_KEY in tool.metadata
        assert traits.facts.named_arguments == facts.named_arguments
        assert facts.arguments is not None


@each_row("name", DECLARED)
def test_facts_say_what_a_tool_does_or_why_it_is_allowed(name: str) -> None:
    for tool, facts in DECLARED[name].items():
        says = facts.reads or facts.writes or facts.reason or facts.repeatable or facts.kind == "agent"
        assert says, f"{tool} has no facts: rules about files and hosts, questions and `check` know nothing of it"
        assert set(facts.named_arguments) <= set(facts.arguments or ())
