"""Mistakes in Python code are answered with a sentence, and a PydanticAI agent keeps its dependencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext

from llm_do import AgentSpec, CallContext, Runtime, Toolkit, UsageError, run, tool
from llm_do.testing import play
from llm_do.toolsets.agent import AgentToolset
from tests.support.history import results_of
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def mistaken(**fields: Any) -> Any:
    return run.sync(AgentSpec("writer", model="test", **fields), "go")


def session(**options: Any) -> Runtime:
    return Runtime(project_of([agent("a", script("x"))]), **options)


class Later:
    """A callable object, whose call is async."""

    async def __call__(self, event: object) -> None:
        """Do nothing."""


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a path": (
        lambda: Runtime("examples/greeter"),
        UsageError,
        "Runtime takes a linked Project, not a value of type str",
    ),  # type: ignore[arg-type]
    "a Path": (lambda: Runtime(Path("examples")), UsageError, "Runtime takes a linked Project, not a value of"),  # type: ignore[arg-type]
    "a spec": (lambda: Runtime(AgentSpec("a")), UsageError, "not a value of type AgentSpec"),  # type: ignore[arg-type]
    "nothing": (lambda: Runtime(None), UsageError, "not a value of type NoneType"),  # type: ignore[arg-type]
    "a session's option": (
        lambda: Runtime(project_of([agent("a", script("x"))])).run_sync("go", model="test"),  # type: ignore[call-arg]
        TypeError,
        r"a run has no option 'model': it is one of the session, Runtime\(..., model=...\)",
    ),
    "an option of tool": (
        lambda: tool(require_states=["in"]),  # type: ignore[call-overload]
        TypeError,
        "@tool has no option 'require_states'; did you mean `required_states`",
    ),
    "an option of a toolkit's tool": (
        lambda: Toolkit("desk").tool(enable_states=["in"])(lambda: ""),  # type: ignore[call-overload]
        TypeError,
        "@tool has no option 'enable_states'; did you mean `enables_states`",
    ),
    "a name with a space": (lambda: run.sync(AgentSpec("my writer", model="test"), "go"), UsageError, "'my writer'"),
    "no name": (lambda: run.sync(AgentSpec("", model="test"), "go"), UsageError, "'' can't be registered"),
    "no steps": (lambda: mistaken(max_steps=0), UsageError, "agent 'writer': max_steps must be a whole number, 1 or"),
    "half a step": (
        lambda: mistaken(max_steps=1.5),
        UsageError,
        "max_steps must be a whole number, 1 or more, not 1.5",
    ),
    "steps as text": (lambda: mistaken(max_steps="3"), UsageError, "max_steps must be a whole number, 1 or more"),
    "negative retries": (lambda: mistaken(retries=-1), UsageError, "retries must be a whole number, 0 or more, not -1"),
    "a negative timeout": (lambda: mistaken(tool_timeout=-1), UsageError, "tool_timeout must be a number of seconds"),
    "a number as a model": (lambda: session(model=3), UsageError, "model must be the name of a model, .*, not 3"),
    "no models": (lambda: session(model=[]), UsageError, "model must be the name of a model, a list of names .*, not"),
    "a number in models": (
        lambda: session(models={"a": 3}),
        UsageError,
        "models must be models by names of agents",
    ),
    "a number as a store": (lambda: session(store=3), UsageError, "store must be a ThreadStore, .* or a URL, not 3"),
    "a dict as a store": (lambda: session(store={}), UsageError, "store must be a ThreadStore"),
    "a path as a transport": (lambda: session(transport="x"), UsageError, "transport must be a Transport, not 'x'"),
    "text as ask_user": (lambda: session(ask_user="yes"), UsageError, "ask_user must be a function, not 'yes'"),
    "text as record": (lambda: session(record="no"), UsageError, "record must be True or False, not 'no'"),
    "a number as durable": (lambda: session(durable=1), UsageError, "durable must be True or False, not 1"),
    "a number as an env file": (lambda: session(env_file=3), UsageError, "env_file must be the path of a file, not 3"),
    "a dict as config": (lambda: session(config={}), UsageError, "config must be a RuntimeConfig, not {}"),
    "an event that doesn't exist": (
        lambda: session().on("tool_results", print),
        UsageError,
        "there are no events of type 'tool_results'",
    ),
    "no callback": (lambda: session().on("text", None), UsageError, "an event callback must be a function, not None"),  # type: ignore[arg-type]
    "an object whose call is async": (
        lambda: session().on(None, Later()),
        UsageError,
        "an event callback can't be async",
    ),
    "a text to map": (lambda: session().map("abc"), UsageError, "map takes several inputs, not a value of type str"),
    "a mapping to map": (lambda: session().map({"input": "a"}), UsageError, "map takes several inputs, not a value of"),
    "a number to map": (lambda: session().map(3), UsageError, "map takes several inputs, not a value of type int"),  # type: ignore[arg-type]
    "an agent to play": (
        lambda: play(AgentSpec("a"), "go"),  # type: ignore[arg-type]
        UsageError,
        "play takes a project or its path, not a value of type AgentSpec",
    ),
    **{
        f"{name}={value!r}": (lambda name=name, value=value: mistaken(**{name: value}), UsageError, text)
        for name, value, text in [
            ("tools", 3, "tools must be a list of names, functions or tool objects, not 3"),
            ("tools", [3], "tools is a list of names, functions or tool objects, and has 3"),
            ("tools", {"add": print}, "tools must be a list of names, functions or tool objects, not {"),
            ("toolsets", 3, "toolsets must be a list of names, toolsets or factories, not 3"),
            ("toolsets", [None], "toolsets is a list of names, toolsets or factories, and has None"),
            ("handoffs", [3], "handoffs is a list of names or AgentSpecs, and has 3"),
            ("hooks", 3, "hooks must be a list of pairs of a point and a function, not 3"),
            ("hooks", [("start", 3)], r"hooks is a list of pairs of a point and a function, and has \('start', 3\)"),
            ("output_guards", ["x", 3], "output_guards is a list of functions, and has 3"),
            ("instructions", ["a"], r"instructions must be text or a function, not \['a'\]"),
            ("description", 3, "description must be text, not 3"),
            ("model_settings", 3, "model_settings must be a dict, not 3"),
            ("model_settings", {"temperature": "hot"}, "wrong settings: temperature: Input should be a valid number"),
            ("temperature", "hot", "wrong settings: temperature: Input should be a valid number"),
            ("compaction", 3, "compaction must be a dict, not 3"),
            ("compaction", {"max_tokens": "x"}, "wrong compaction: max_tokens: Input should be a valid integer"),
            ("output_type", 3, "output_type must be a type, or a JSON Schema as a dict, not 3"),
            ("output_type", "str", "output_type must be a type, or a JSON Schema as a dict, not 'str'"),
            ("input_model", 3, "input_model must be a subclass of AgentArgs, not 3"),
            ("input_model", dict, "input_model must be a subclass of AgentArgs, not <class 'dict'>"),
        ]
    },
    "a late agent": (
        lambda: session().register_agents({"b": AgentSpec("b", input_model=3)}),  # type: ignore[arg-type]
        UsageError,
        "agent 'b': input_model must be a subclass of AgentArgs, not 3",
    ),
    "tools as text": (lambda: mistaken(tools="add"), UsageError, "tools must be a list of names, not the text 'add'"),
}


@each_row("mistake", MISTAKES)
def test_a_mistake_in_python_is_a_sentence(mistake: str) -> None:
    make, kind, text = MISTAKES[mistake]

    with pytest.raises(kind, match=text):
        make()


@dataclass
class Bank:
    balance: int


def bank_agent(model: Any) -> Agent[Bank, str]:
    made = Agent(model, deps_type=Bank, name="bank", instructions="Help.")

    @made.tool
    def balance(ctx: RunContext[Bank]) -> int:
        return ctx.deps.balance

    return made


def test_a_pydantic_ai_agent_keeps_its_dependencies() -> None:
    result = run.sync(bank_agent(script(call("balance"), "done")), "go", deps=Bank(7), approvals="approve_all")

    assert results_of(result.messages)[0][2] == "7"


def test_dependencies_that_are_missing_are_named() -> None:
    with pytest.raises(UsageError, match="the agent has dependencies of type Bank") as raised:
        run.sync(bank_agent(script("done")), "go")
    assert raised.value.hint == "Pass them as `deps=`."
    assert run.sync(bank_agent(script("done")), "go", deps=None).output == "done"


def test_an_agent_without_dependencies_gets_the_call_context() -> None:
    made: Any = Agent(script(call("where"), "done"), name="my agent")

    @made.tool
    def where(ctx: RunContext[CallContext]) -> str:
        return ctx.deps.path

    result = run.sync(made, "go", approvals="approve_all")
    assert results_of(result.messages)[0][2] == "my_agent"


def test_an_agent_with_dependencies_can_call_agents_of_ours() -> None:
    helper = AgentSpec("helper", model=script("helped"))
    made: Any = Agent(
        script(call("helper", input="x"), "done"), deps_type=Bank, name="bank", toolsets=[AgentToolset(helper)]
    )
    result = run.sync(made, "go", deps=Bank(1))

    assert results_of(result.messages)[0][2] == "helped"
    assert [record.path for record in result.calls] == ["bank/helper"]
