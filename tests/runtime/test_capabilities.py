"""Capabilities of PydanticAI: what they add takes every step that others take; what could pass one by is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset, ModelRetry
from pydantic_ai.capabilities import (
    AbstractCapability,
    CombinedCapability,
    PrefixTools,
    ProcessHistory,
    Thinking,
    Toolset,
    WebSearch,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do import EntryError, Project, RunError, RunResult, Runtime
from llm_do.policy.rules import build_policy
from llm_do.threads import memory_store
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.threads.thread_support import done, runtime_on


@dataclass
class Shelf(AbstractCapability[Any]):
    """Parts on a shelf."""

    name: str = "left"

    def get_instructions(self) -> str:
        return f"Look on the {self.name} shelf."

    def get_model_settings(self) -> Any:
        return {"temperature": 0.25}

    def get_toolset(self) -> Any:
        def find_part(part: str) -> str:
            """Find a part."""
            return f"{part} on the {self.name} shelf"

        return FunctionToolset([find_part])


def finding(**fields: Any) -> Any:
    return agent("main", script(call("find_part", part="bolt"), "fin"), capabilities=[Shelf()], **fields)


def asked_of(spec: Any) -> list[Any]:
    return spec.model.asked


def results(result: RunResult) -> list[Any]:
    return [part.content for each in result.messages for part in each.parts if part.part_kind == "tool-return"]


def test_a_capability_adds_instructions_settings_and_tools_that_need_approval() -> None:
    spec = finding()
    denied = carry_out(runtime_of([spec], approvals="reject_all"))
    assert [each.tool for each in denied.denials] == ["find_part"]
    asked = spec.model.asked[0]
    assert "Look on the left shelf." in asked.info.instructions
    assert asked.info.model_settings["temperature"] == 0.25
    policy, _ = build_policy({"allow": ["find_part"]})
    allowed = carry_out(runtime_of([finding()], approvals="reject_all", policy=policy))
    assert (results(allowed), allowed.denials) == (["bolt on the left shelf"], [])


def test_its_tools_are_recorded_budgeted_streamed_and_nested_like_others() -> None:
    inner = replace(finding(), name="inner")
    main = agent("main", script(call("inner", {"input": "x"}), "fin"), toolsets=[inner])
    runtime = runtime_of([main, inner], budget={"tool_calls": 2})
    log = heard(runtime)
    result = carry_out(runtime)
    assert result.status == "completed"
    assert [(each.path, each.tool_name) for each in log.of("tool_call")] == [
        ("main", "inner"),
        ("main/inner", "find_part"),
    ]
    limited = carry_out(runtime_of([finding()], budget={"tool_calls": 0}))
    assert limited.status == "limited"

    async def streamed() -> list[str]:
        return [event.type async for event in runtime_of([finding()]).stream("go")]

    assert {"tool_call", "tool_result", "text", "text_done"} <= set(asyncio.run(streamed()))


def test_a_history_processor_changes_what_is_sent_and_the_record_has_it() -> None:
    def short(messages: list[Any]) -> list[Any]:
        return [ModelRequest(parts=[UserPromptPart("short")]), *messages[1:]]

    store = memory_store()
    spec = agent("main", script("fin"), capabilities=[ProcessHistory(short)])
    result = carry_out(runtime_on(store, spec, options={"record": True}), "a long prompt")
    (exchange,) = done(store.exchanges(result.run_id))
    assert exchange.sent.messages[0]["parts"][-1]["content"] == "short"


def test_capabilities_of_capabilities_are_judged_too_and_their_tools_get_the_prefix() -> None:
    both = CombinedCapability([Thinking("low"), PrefixTools(wrapped=Shelf("right"), prefix="r")])
    spec = agent("main", script(call("r_find_part", part="nut"), "fin"), capabilities=[both])
    assert results(carry_out(runtime_of([spec]))) == ["nut on the right shelf"]
    assert asked_of(spec)[0].info.model_settings["temperature"] == 0.25


def test_what_its_provider_runs_needs_a_rule_or_a_mode_that_allows_it() -> None:
    def searching() -> Any:
        return agent("main", script("found"), capabilities=[WebSearch(max_uses=2)])

    refused = carry_out(runtime_of([searching()], approvals="prompt"))
    assert isinstance(refused.error, EntryError)
    assert "web_search" in refused.error.message
    assert "no one can be asked" in refused.error.message
    policy, _ = build_policy({"allow": ["web_search"]})
    for fields in ({"approvals": "reject_all", "policy": policy}, {"approvals": "approve_all"}):
        spec = searching()
        assert carry_out(runtime_of([spec], **fields)).output == "found"
        (tool,) = spec.model.asked[0].info.model_request_parameters.native_tools
        assert (tool.kind, tool.max_uses) == ("web_search", 2)
    policy, _ = build_policy({"deny": ["web_search"]})
    assert isinstance(carry_out(runtime_of([searching()], policy=policy)).error, EntryError)
    main = agent(
        "main", script(call("main2", {"input": "x"}), "without"), toolsets=[replace(searching(), name="main2")]
    )
    nested = carry_out(runtime_of([main], approvals="prompt", agent_calls_require_approval=False))
    assert (nested.status, nested.output) == ("completed", "without")


@dataclass
class Executes(AbstractCapability[Any]):
    async def wrap_tool_execute(self, *args: Any, **data: Any) -> Any: ...


@dataclass
class Wraps(AbstractCapability[Any]):
    def get_wrapper_toolset(self, toolset: Any) -> Any: ...


@dataclass
class Swallows(AbstractCapability[Any]):
    async def on_model_request_error(self, *args: Any, **data: Any) -> Any: ...


@dataclass
class Routes(AbstractCapability[Any]):
    def get_wrapper_model(self, model: Any) -> Any: ...


@dataclass
class Chooses(AbstractCapability[Any]):
    def get_native_tools(self) -> Any:
        return [lambda ctx: None]


@dataclass
class Fails(AbstractCapability[Any]):
    def get_toolset(self) -> Any:
        raise ValueError("no toolset today")


@each_row(
    "capability, message",
    [
        (Executes(), "it has a `wrap_tool_execute` of its own, which llm-do can't judge"),
        (Wraps(), "it changes the agent's other tools after policy has seen them"),
        (Swallows(), "it may hide a limit"),
        (Routes(), "past budget and record"),
        (Chooses(), "a function chooses its provider's tools"),
        (PrefixTools(wrapped=Executes(), prefix="x"), "it has a `wrap_tool_execute` of its own"),
        (Toolset(FunctionToolset([]), id="t", defer_loading=True), "`defer_loading`"),
        (lambda ctx: Thinking(), "can't be judged before a run"),
        (Fails(), "no toolset today"),
    ],
)
def test_a_capability_that_could_pass_a_step_by_is_refused_each_time(capability: Any, message: str) -> None:
    spec = agent("main", script("fin"), capabilities=[Thinking("low"), capability])
    runtime = runtime_of([spec])
    for _ in range(2):
        result = carry_out(runtime)
        assert isinstance(result.error, RunError)
        assert message in result.error.message
    assert asked_of(spec) == []


@dataclass
class Fresh(AbstractCapability[Any]):
    made: AbstractCapability[Any] | None = None

    async def for_run(self, ctx: Any) -> Any:
        return self.made or self


@dataclass
class Switches(AbstractCapability[Any]):
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        return replace(request_context, model=script("unseen"))


@dataclass
class Hides(AbstractCapability[Any]):
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        return replace(
            request_context,
            model_request_parameters=replace(request_context.model_request_parameters, function_tools=[]),
        )


def test_what_a_capability_does_in_a_run_is_watched() -> None:
    def run_with(capability: Any, **fields: Any) -> RunResult:
        return carry_out(runtime_of([finding_with(capability)], **fields))

    def finding_with(capability: Any) -> Any:
        return agent("main", script(call("find_part", part="bolt"), "fin"), capabilities=[Shelf(), capability])

    assert run_with(Fresh(Thinking("low"))).output == "fin"
    for capability, message in (
        (Fresh(Executes()), "its `for_run` made it"),
        (Switches(), "changed the model of a request"),
        (Hides(), "changed the tools of a request"),
    ):
        result = run_with(capability)
        assert isinstance(result.error, EntryError)
        assert message in result.error.message


@dataclass
class Strict(AbstractCapability[Any]):
    """Asks again until the answer is a long one."""

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: ModelResponse) -> ModelResponse:
        if response.text == "no":
            raise ModelRetry("say more")
        return replace(response, parts=[*response.parts, TextPart("!")])


def test_a_response_that_it_rejects_counts_and_one_that_it_changes_is_the_conversations() -> None:
    answers = iter(("no", "yes"))
    model = script(lambda *_: next(answers))
    result = carry_out(runtime_of([agent("main", model, capabilities=[Strict()], retries=2)]))
    assert (result.output, result.usage.requests) == ("yes!", 2)
    limited = carry_out(runtime_of([agent("main", script("no"), capabilities=[Strict()], retries=9, max_steps=3)]))
    assert (limited.status, limited.usage.requests) == ("limited", 3)


def test_a_durable_run_on_a_thread_replays_what_capabilities_added(tmp_path: Path) -> None:
    runtimes: list[Runtime] = []
    found: list[str] = []

    async def find_part(part: str) -> str:
        """Find a part, and stop the first attempt at the second one."""
        found.append(part)
        if len(runtimes) == 1 and part == "nut":
            runtimes[0].interrupt()
            await asyncio.Event().wait()
        return f"the {part}"

    async def attempt() -> RunResult:
        parts = Toolset(FunctionToolset([find_part]))
        turns = (call("find_part", {"part": "bolt"}, "1"), call("find_part", {"part": "nut"}, "2"), "fin")
        main = agent("main", script(*turns), capabilities=[Thinking("low"), parts])
        runtimes.append(Runtime(project_of([main], root=tmp_path), durable=True, approvals="approve_all"))
        try:
            if len(runtimes) == 1:
                return await runtimes[0].execute("go", run_id="r", thread_id="t")
            return await runtimes[1].execute_again("r", in_flight="repeat")
        finally:
            await runtimes[-1].aclose()

    assert asyncio.run(attempt()).status == "interrupted"
    result = asyncio.run(attempt())
    assert (result.error, result.output) == (None, "fin")
    assert found == ["bolt", "nut", "nut"]
    assert results(result) == ["the bolt", "the nut"]


CAPS = '''
from dataclasses import dataclass
from pydantic_ai import FunctionToolset
from pydantic_ai.capabilities import AbstractCapability

@dataclass
class Parts(AbstractCapability):
    where: str = "here"

    def get_toolset(self):
        def find_part(name: str) -> str:
            """Find a part."""
            return f"{name} is {self.where}"
        return FunctionToolset([find_part])

CAPABILITIES = [Parts]
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with capabilities of PydanticAI and one of its own."""
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["caps.py"],'
        ' "approvals": {"allow": ["web_search", "find_part"]},'
        ' "permissions": {"assert": ["never web_search unless asked", "never shell"]}}'
    )
    (tmp_path / "main.agent").write_text(
        "---\nname: main\ncapabilities:\n  - Thinking: low\n  - WebSearch\n  - Parts: {where: there}\n---\nLook.\n"
    )
    (tmp_path / "caps.py").write_text(CAPS)
    return tmp_path


def test_files_name_capabilities_and_proofs_know_what_they_add(project: Path) -> None:
    from llm_do.linker.linker import check_project

    broken = [each.message for each in check_project(project).diagnostics if each.severity == "error"]
    assert [each for each in broken if "never web_search unless asked" in each] == broken != []
    text = (project / "project.json").read_text().replace('"never web_search unless asked", ', "")
    (project / "project.json").write_text(text)
    model = script(call("find_part", name="bolt"), "fin")
    linked = Project.load(project)
    assert linked.warnings == ()
    result = carry_out(Runtime(linked, model=model, approvals="reject_all"))
    assert results(result) == ["bolt is there"]
    (native,) = model.asked[0].info.model_request_parameters.native_tools
    assert native.kind == "web_search"
    setup = {each.name: each.capability for each in linked.registry["main"].value.capabilities}["Parts"]
    assert setup.where == "there"


def test_nothing_of_a_closed_folder_is_imported_for_its_capabilities(project: Path) -> None:
    from llm_do._startup.code_access import closed_folders
    from llm_do.linker.linker import check_project

    (project / "caps.py").write_text(f"{CAPS}\nopen({str(project / 'ran')!r}, 'w').close()\n")
    with closed_folders("looks"):
        report = check_project(project)
    assert [each for each in report.diagnostics if each.severity == "error"] == []
    assert report.left_out is not None
    assert report.left_out.names == {"main": ("Parts",)}
    assert not (project / "ran").exists()
