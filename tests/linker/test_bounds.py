"""The worst case of a run: no run exceeds it, and it says what decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import AgentSpec, Runtime, RuntimeConfig
from llm_do.linker.linker import check_project
from llm_do.linker.proofs.bounds import bounds_data, number_text
from llm_do.linker.proofs.totals import Unbounded
from llm_do.linker.proofs.worst_case import worst_case
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.project import Project
from llm_do.project.registry import Registered, Registry
from llm_do.ui.reports.bounds import bounds_lines
from tests.linker.conftest import Check, Make, agent, codes, manifest
from tests.support.runs import carry_out, project_of
from tests.support.tables import each_row

NAMES = ("a", "b", "c")


def busy_model(seed: int, most: int) -> FunctionModel:
    """A model that asks for every tool it has as often as it may, and now and then fails."""
    state = {"number": seed}

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        state["number"] += 1
        if state["number"] % 7 == 0:
            raise ModelHTTPError(503, "busy")
        if state["number"] % 5 == 0 or not info.function_tools:
            return ModelResponse([TextPart("b" if state["number"] % 2 else "done")])
        tools = [tool for tool in info.function_tools if not tool.name.startswith("transfer")] or info.function_tools
        tools = info.function_tools if state["number"] % 3 == 0 else tools
        calls: list[Any] = []
        for number in range(most):
            tool = tools[(state["number"] + number) % len(tools)]
            text = f"{state['number']} {number}"
            arguments = {"reason": text} if tool.name.startswith("transfer") else {"input": text, "task": text, "x": 1}
            known = tool.parameters_json_schema["properties"]
            calls.append(ToolCallPart(tool.name, {key: value for key, value in arguments.items() if key in known}))
        return ModelResponse(calls)

    return FunctionModel(answer)


def add(x: int) -> int:
    """Add nothing."""
    return x


@st.composite
def projects(draw: st.DrawFn) -> tuple[Project, int]:
    """A small project of agents that call each other, hand over, and form a flow; and a seed for their models."""
    seed, most = draw(st.integers(0, 20)), draw(st.integers(1, 2))
    specs = [
        AgentSpec(
            name,
            model=busy_model(seed + number, most + 1),
            tools=[add] if draw(st.booleans()) else [],
            toolsets=draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2)),
            handoffs=draw(st.lists(st.sampled_from([each for each in NAMES if each != name]), unique=True, max_size=1)),
            max_steps=draw(st.none() | st.integers(1, 2)),
        )
        for number, name in enumerate(NAMES)
    ]
    budget = draw(
        st.none()
        | st.fixed_dictionaries(
            {},
            optional={"requests": st.integers(1, 9), "tool_calls": st.integers(0, 5), "descendants": st.integers(0, 3)},
        )
    )
    made = project_of(
        specs,
        max_steps=2,
        max_depth=draw(st.integers(1, 3)),
        max_retries=draw(st.integers(0, 1)),
        max_calls_per_response=most,
        loop_threshold=0,
        budget=budget,
    )
    mode = draw(st.sampled_from(["agent", "workflow", "handoff", "team"]))
    if mode == "agent":
        return made, seed
    agents = draw(st.permutations(NAMES))
    flow = FlowSpec("flow", mode=mode, agents=tuple(agents), max_handoffs=draw(st.integers(0, 2)))  # pyright: ignore[reportArgumentType]
    registry = Registry({**made.registry, "flow": Registered("flow", "flow", flow)})
    entry = made.entry.__class__("flow", "flow")
    return Project(made.root, entry, registry, settings=made.settings), seed


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(projects())
def test_no_run_exceeds_its_worst_case(found: tuple[Project, int]) -> None:
    stay_within(found[0])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(projects())
def test_no_run_of_many_exceeds_its_worst_case(found: tuple[Project, int]) -> None:
    stay_within(found[0])


def stay_within(project: Project) -> None:
    """Run a project and compare what it took with its worst case."""
    worst = worst_case(project)
    assert not isinstance(worst.requests, Unbounded)
    assert not isinstance(worst.tool_calls, Unbounded)
    runtime = Runtime(project, config=RuntimeConfig.of(project, approvals="approve_all", retry_delay=0.0))
    result = carry_out(runtime)
    assert result.usage.requests <= worst.requests
    assert result.usage.tool_calls <= worst.tool_calls
    assert worst.cost_usd == 0


def worst(make: Make, files: Mapping[str, object], **keys: Any) -> dict[str, Any]:
    linked = check_project(make({"project.json": manifest(**keys), **files}))
    assert linked.project is not None, linked.diagnostics
    return bounds_data(linked.project)


@each_row(
    "front, runtime, requests, tool_calls",
    [
        ("", {}, 40, 0),
        ("max_steps: 3", {}, 12, 0),
        ("", {"max_retries": 0, "max_steps": 5}, 5, 0),
        ("model: [test, script:a.yaml]", {"max_retries": 0}, 20, 0),
        ("toolsets: [todo]", {"max_retries": 0}, 10, 1280),
        ("toolsets: [todo]", {"max_retries": 0, "max_calls_per_response": 2}, 10, 20),
        ("toolsets: [main]", {"max_retries": 0, "max_steps": 2, "max_calls_per_response": 2, "max_depth": 2}, 10, 20),
        ("toolsets: [todo]", {"budget": {"requests": 7, "tool_calls": 9}}, 7, 9),
        ("toolsets: [main]", {"budget": {"descendants": 2}, "max_retries": 0}, 30, 3840),
        ("compaction: {max_tokens: 100, strategies: [summarization]}", {"max_retries": 0}, 20, 0),
    ],
)
def test_limits_multiply(make: Make, front: str, runtime: dict[str, Any], requests: int, tool_calls: int) -> None:
    files = {"main.agent": agent("main", front), "a.yaml": "- done\n"}
    found = worst(make, files, model="test", runtime=runtime)["worst_case"]
    assert (found["requests"]["most"], found["tool_calls"]["most"]) == (requests, tool_calls)
    assert found["cost_usd"]["most"] == 0


def test_code_that_calls_in_a_loop_is_unbounded_until_a_budget_bounds_it(make: Make) -> None:
    code = """
        async def main(input, ctx):
            for number in range(3):
                await ctx.call("helper", {"input": str(number)})
        """
    files = {"main.py": code, "helper.agent": agent("helper", "model: test")}
    found = worst(make, files, entry={"function": "main.py:main"}, python_files=["main.py"])
    requests = found["worst_case"]["requests"]
    assert (requests["most"], requests["place"]) == (None, "main.py:3")
    assert found["worst_case"]["cost_usd"]["most"] == 0
    assert "runtime.budget.requests" in requests["remedy"]
    lines = "\n".join(bounds_lines(found))
    assert "unbounded  main calls in a loop, or more than once (main.py:3)" in lines
    assert "to bound it, set runtime.budget.requests and runtime.budget.tool_calls" in lines
    found = worst(
        make, files, entry={"function": "main.py:main"}, python_files=["main.py"], runtime={"budget": {"requests": 50}}
    )
    assert found["worst_case"]["requests"]["most"] == 50


def test_code_that_calls_once_is_bounded(make: Make) -> None:
    code = """
        async def main(input, ctx):
            first = await ctx.call("helper", input)
            return await polish(first, ctx)
        async def polish(text, ctx):
            return await ctx.call("helper", {"input": text})
        """
    files = {"main.py": code, "helper.agent": agent("helper", "model: test\nmax_steps: 3")}
    keys: dict[str, Any] = {"entry": {"function": "main.py:main"}, "python_files": ["main.py"]}
    found = worst(make, files, **keys, runtime={"max_retries": 0})
    assert found["worst_case"]["requests"]["most"] == 6


def test_flows_add_up_and_plans_multiply(make: Make) -> None:
    files = {name: agent(name[0], "model: test\nmax_steps: 2") for name in ("a.agent", "b.agent", "c.agent")}
    flows = {
        "serial": {"mode": "workflow", "flow": "a >> (b | c)"},
        "study": {"mode": "plan", "planner": "a", "executor": "b", "synthesiser": "c"},
    }
    outcomes = [
        worst(make, files, entry={"flow": name}, flows=flows, runtime={"max_retries": 0})["worst_case"]["requests"]
        for name in flows
    ]
    assert [each["most"] for each in outcomes] == [6, 104]


def test_dollars_come_from_prices_and_contexts(make: Make) -> None:
    files = {"main.agent": agent("main", "max_steps: 2\nmodel_settings: {max_tokens: 1000}")}
    priced = worst(make, files, model="openai:gpt-5-mini", runtime={"max_retries": 0})["worst_case"]["cost_usd"]
    assert 0.1 < priced["most"] < 1
    unknown = worst(make, files, model="openai:no-such-model")["worst_case"]["cost_usd"]
    assert "openai:no-such-model isn't known" in unknown["reason"]
    unnamed = worst(make, files)["worst_case"]["cost_usd"]
    assert "no model is named for main" in unnamed["reason"]
    budget = worst(make, files, model="openai:gpt-5-mini", runtime={"budget": {"cost_usd": 0.01}})["worst_case"]
    assert 0.01 < budget["cost_usd"]["most"] < priced["most"]


def test_the_limit_that_lowers_it_most_comes_first(make: Make) -> None:
    files = {"main.agent": agent("main", "toolsets: [helper]"), "helper.agent": agent("helper", "max_steps: 30")}
    found = worst(make, files, model="test")
    assert [each["limit"] for each in found["tighten"]][:2] == ["runtime.max_calls_per_response", "runtime.max_retries"]
    assert found["tighten"][0]["try"] < found["tighten"][0]["now"]
    assert "it is lowered most by runtime.max_calls_per_response, now 128" in "\n".join(bounds_lines(found))


def test_a_maximum_is_a_warning_at_its_key(check_files: Check) -> None:
    bounds = {"requests": 39, "tool_calls": 0, "cost_usd": 0.0}
    report = check_files({"project.json": manifest(bounds=bounds, model="test"), "main.agent": agent("main")})
    assert codes(report) == ["LD615"]
    (found,) = report.diagnostics
    assert found.message == "a run may take 40 model requests, more than the 39 under `bounds`"
    assert "`runtime.budget.requests` to 39" in (found.hint or "")
    report = check_files({"project.json": manifest(bounds={**bounds, "requests": 40}, model="test")})
    assert codes(report) == []


def test_deep_and_endless_calls_are_counted_or_named(make: Make) -> None:
    files = {"main.agent": agent("main", "toolsets: [main]\nmodel: test")}
    found = worst(make, files, runtime={"max_depth": 90})["worst_case"]
    assert found["requests"]["most"] > 10**200
    found = worst(make, files, runtime={"max_depth": 5000})
    assert "deeper than 100 levels" in found["worst_case"]["requests"]["reason"]
    assert "unbounded" in "\n".join(bounds_lines(found))


@each_row(
    "number, text",
    [(0, "0"), (1280, "1,280"), (10**12, "1.0e12"), (10**400, "1.0e400"), (float("inf"), "too much to count")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert number_text(number, "requests") == text
