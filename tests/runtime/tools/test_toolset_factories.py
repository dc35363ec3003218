"""Toolset factories: what they may return, and the error for anything else."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from llm_do import AgentSpec, Project, RunError, Runtime
from llm_do.project.agent_spec import ToolsetRef
from tests.support.runs import carry_out, runtime_of
from tests.support.scripted import script
from tests.support.tables import each_row


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def number(ctx: Any) -> Any:
    return 5


def kind(ctx: Any) -> Any:
    return FunctionToolset


def functions(ctx: Any) -> Any:
    return [add]


async def later(ctx: Any) -> Any:
    return "text"


@functools.wraps(number)
def decorated(ctx: Any) -> Any:
    return number(ctx)


class Maker:
    def __call__(self, ctx: Any) -> Any:
        return 5

    def make(self, ctx: Any) -> Any:
        return 5


@each_row(
    "factory, called, returned",
    [
        (number, "number", "an object of type int"),
        (kind, "kind", "the class FunctionToolset"),
        (functions, "functions", "an object of type list"),
        (later, "later", "an object of type str"),
        (decorated, "number", "an object of type int"),
        (functools.partial(number), "number", "an object of type int"),
        (Maker(), "Maker.__call__", "an object of type int"),
        (Maker().make, "Maker.make", "an object of type int"),
        (id, "id", "an object of type int"),
    ],
)
def test_a_factory_that_returns_no_toolset_is_named_with_its_return_value(
    factory: Any, called: str, returned: str
) -> None:
    model = script("done")
    spec = AgentSpec("main", model=model, toolsets=[ToolsetRef("kit", value=factory)])
    error = carry_out(runtime_of([spec])).error

    assert isinstance(error, RunError)
    assert error.message == f"the factory {called} of the toolset 'kit' returned {returned}, not a toolset"
    assert error.hint is not None
    assert "Return a toolset" in error.hint
    assert error.agent_path == "main"
    assert model.asked == []


def test_the_location_of_such_a_factory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "kits.py").write_text("X = 1\n\n\ndef kit(ctx):\n    return {}\n\n\nTOOLSETS = [kit]\n")
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [kit]\n---\nGo.\n")
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "python_files": ["kits.py"]}'
    )
    result = carry_out(Runtime(Project.load(tmp_path), approvals="approve_all"))

    assert isinstance(result.error, RunError)
    assert (result.error.file, result.error.line) == ("kits.py", 4)


@pytest.mark.parametrize("made", [None, FunctionToolset([add])], ids=["nothing", "a toolset"])
def test_a_factory_may_return_a_toolset_or_none(made: Any) -> None:
    model = script("done")
    result = carry_out(runtime_of([AgentSpec("main", model=model, toolsets=[lambda ctx: made])]))

    assert result.status == "completed"
    assert model.asked[0].tools == ([] if made is None else ["add"])
