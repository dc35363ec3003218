"""A tool is available when its states and its context say so; the model sees it then, and its calls run only then."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest
from pydantic_ai import ModelRetry

from llm_do import ToolError, Toolkit, ToolkitError, Update, tool
from tests.support.scripted import call
from tests.support.tables import each_row
from tests.toolkits.kits import play


def session(**options: Any) -> Toolkit:
    kit = Toolkit("session", **options)

    @kit.tool(enables_states=["in"])
    def login(ctx, password: str):
        """Log in."""
        if password == "raise":
            raise RuntimeError("boom")
        if password == "retry":
            raise ModelRetry("try another")
        if password == "error":
            raise ToolError("no such user")
        if password != "right":
            return Update.failed("wrong password")
        return "welcome", {"user": "ann"}

    @kit.tool(required_states=["in"], required_context=["user"])
    def profile(ctx) -> str:
        """Show the profile."""
        return f"profile of {ctx.state['user']}"

    @kit.tool(required_states=["in"], disables_states=["in"])
    def logout() -> str:
        """Log out."""
        return "bye"

    @kit.tool(forbidden_states=["in"])
    def register() -> str:
        """Register."""
        return "registered"

    return kit


def test_a_tool_is_shown_once_its_state_is_unlocked_and_no_longer_when_it_is_locked() -> None:
    played = play(call("login", password="right"), call("logout"), "done", kits=[session()])
    assert played.shown == [["login", "register"], ["login", "profile", "logout"], ["login", "register"]]
    assert played.result.toolkits["session"].unlocked_states == frozenset()
    assert played.result.toolkits["session"].context.get("user") == "ann"


def test_a_hidden_tool_that_a_call_before_it_unlocks_runs_in_the_same_response() -> None:
    played = play([call("login", password="right"), call("profile")], "done", kits=[session()])
    assert played.outputs == ["welcome", "profile of ann"]
    assert played.result.status == "completed"


def test_hiding_adds_nothing_to_the_history() -> None:
    played = play(call("login", password="right"), call("profile"), "done", kits=[session()])
    assert [message.kind for message in played.result.messages] == ["request", "response"] * 3
    assert [len(message.parts) for message in played.result.messages] == [1] * 6


def test_a_hidden_tool_is_refused_with_the_reason_and_not_unknown() -> None:
    played = play(call("profile"), "done", kits=[session()])
    assert played.statuses == ["refused"]
    assert played.outputs == ["profile is not available now: it needs the state 'in', which login unlocks"]


@pytest.mark.parametrize("password", ["wrong", "raise", "retry", "error"])
def test_a_failed_login_unlocks_nothing(password: str) -> None:
    played = play([call("login", password=password), call("profile")], call("profile"), "done", kits=[session()])
    assert played.ends == [("login", "failed"), ("profile", "refused"), ("profile", "refused")]
    assert "profile" not in played.shown[1]
    state = played.result.toolkits["session"]
    assert (state.unlocked_states, state.context.to_dict()) == (frozenset(), {})
    assert not played.ear.of("state_changed")


def test_what_a_failing_tool_wrote_into_the_context_is_not_kept() -> None:
    kit = Toolkit("kit", context={"n": 0})

    @kit.tool
    def write(ctx, then: str) -> Any:
        """Write, then succeed or not."""
        ctx.state.set("n", ctx.state["n"] + 1)
        kit.context.set("seen", then)
        if then == "fail":
            return Update.failed("no")
        if then == "raise":
            raise RuntimeError("no")
        return "ok"

    played = play(call("write", then="fail"), call("write", then="raise"), call("write", then="go"), "done", kits=[kit])
    assert played.result.toolkits["kit"].context.to_dict() == {"n": 1, "seen": "go"}
    assert kit.context.to_dict() == {"n": 0}


def test_refused_updates_change_nothing_and_the_model_learns_that_the_tool_ran() -> None:
    kit = Toolkit("kit", validation_enabled=True)
    kit.context.schema.define("priority", {"type": "integer", "maximum": 5})

    @kit.tool(enables_states=["set"])
    def rate(priority: int):
        """Rate."""
        return f"rated {priority}", {"rated": True, "priority": priority}

    played = play(call("rate", priority=9), call("rate", priority=3), "done", kits=[kit])
    assert played.statuses == ["failed", "success"]
    assert "it ran and returned 'rated 9'" in played.outputs[0]
    assert "priority: 9 is greater than the maximum of 5" in played.outputs[0]
    assert [event.updates for event in played.ear.of("state_changed")] == [{"rated": True, "priority": 3}]


def test_a_write_that_the_schema_refuses_is_a_failed_result() -> None:
    kit = Toolkit("kit", validation_enabled=True)
    kit.context.schema.define("n", {"type": "integer"})

    @kit.tool(enables_states=["done"])
    def write(ctx) -> str:
        """Write."""
        ctx.state.set("n", "text")
        return "never"

    played = play(call("write"), "done", kits=[kit], on_tool_error="raise")
    assert played.outputs == ["n: 'text' is not of type 'integer' (rule: type)"]
    assert played.result.toolkits["kit"].unlocked_states == frozenset()


@pytest.mark.parametrize(
    ("value", "outputs", "context"),
    [
        (("r", {"a": 1}), "r", {"a": 1}),
        (("r", {}), "r", {}),
        (Update("r", a=1), "r", {"a": 1}),
        (Update("r"), "r", {}),
        (("r", 1), '["r",1]', {}),
        (("r", {"a": 1}, 2), '["r",{"a":1},2]', {}),
        ({"a": 1}, '{"a":1}', {}),
        (["r", {"a": 1}], '["r",{"a":1}]', {}),
        ((None, {"a": [1]}), "", {"a": [1]}),
        ((Update("r", a=1), {"b": 2}), "r", {"a": 1, "b": 2}),
    ],
)
def test_only_a_pair_of_result_and_dict_or_an_update_updates(value: Any, outputs: str, context: dict[str, Any]) -> None:
    kit = Toolkit("kit")

    @kit.tool
    def give() -> Any:
        """Give it."""
        return value

    played = play(call("give"), "done", kits=[kit])
    assert played.statuses == ["success"]
    assert played.result.toolkits["kit"].context.to_dict() == context
    part = played.result.messages[2].parts[0]
    assert (part.model_response_str() if part.content is not None else "") == outputs


def test_outside_a_toolkit_a_pair_is_just_a_result_and_updates_are_refused() -> None:
    def pair() -> Any:
        """A pair."""
        return "r", {"a": 1}

    def update() -> Any:
        """An update."""
        return Update("r", a=1)

    def plain() -> Any:
        """An update of nothing."""
        return Update("r")

    def failed() -> Any:
        """A failure."""
        return Update.failed("no")

    names = ["pair", "update", "plain", "failed"]
    played = play([call(name) for name in names], "done", tools=[pair, update, plain, failed])
    assert played.result.messages[2].parts[0].content == ["r", {"a": 1}]
    assert sorted(played.ends) == [
        ("failed", "failed"),
        ("pair", "success"),
        ("plain", "success"),
        ("update", "failed"),
    ]
    assert "has no context" in played.outputs[1]
    assert played.outputs[2:] == ["r", "no"]


def test_states_are_enabled_before_they_are_disabled() -> None:
    kit = Toolkit("kit")

    @kit.tool(enables_states=["a", "b"], disables_states=["a"])
    def move() -> str:
        """Move."""
        return "moved"

    assert play(call("move"), "done", kits=[kit]).result.toolkits["kit"].unlocked_states == {"b"}


def test_refusing_shows_every_tool_all_the_time_and_refuses_with_the_reason() -> None:
    played = play(call("profile"), call("login", password="right"), "done", kits=[session(gate="refuse")])
    assert played.shown == [["login", "profile", "logout", "register"]] * 3
    assert played.outputs[0].endswith("which login unlocks")
    assert played.statuses == ["refused", "success"]


def test_an_agent_decides_for_its_toolkits_whether_to_hide() -> None:
    played = play("done", kits=[session()], gate="refuse")
    assert played.shown == [["login", "profile", "logout", "register"]]
    assert play("done", kits=[session(gate="refuse")], gate="hide").shown == [["login", "register"]]


def test_availability_can_be_asked_for_without_a_run() -> None:
    kit = session()
    assert kit.is_tool_available("login")
    assert not kit.is_tool_available("profile")
    assert kit.get_availability_reason("register") is None
    assert [each["function"]["name"] for each in kit.generate_schemas()] == ["login", "register"]
    kit.unlocked_states = {"in"}
    assert kit.get_availability_reason("register") == "it is not possible in the state 'in'"
    assert kit.get_availability_reason("profile") == "it needs 'user' in the context"
    kit.context.set("user", "ann")
    assert [each["function"]["name"] for each in kit.generate_schemas()] == ["login", "profile", "logout"]
    with pytest.raises(KeyError):
        kit.is_tool_available("unknown")


def test_free_functions_keep_what_their_mark_says() -> None:
    @tool(description="Say hello.", required_states=["ready"], timeout=5)
    def hello(name: str) -> str:
        return f"hello {name}"

    def ready() -> str:
        """Be ready."""
        return "ready"

    kit = Toolkit("kit")
    kit.add_tool("greet", hello)
    kit.add_tool("prepare", ready, "Prepare everything.")
    assert not kit.is_tool_available("greet")
    assert kit.generate_schemas()[0]["function"] == {
        "name": "prepare",
        "description": "Prepare everything.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    kit.unlocked_states = {"ready"}
    assert kit.generate_schemas()[0]["function"]["description"] == "Say hello."
    assert hello("x") == "hello x"


def test_a_mark_of_the_functions_own_holds_besides_what_the_toolkit_says() -> None:
    kit = Toolkit("kit")

    @kit.tool(forbidden_states=["closed"], description="Say it.")
    @tool(required_states=["ready"], approval="deny", description="Say hello.", name="greet")
    def hello() -> str:
        return "hello"

    kit.tool(hello, name="second")  # type: ignore[call-overload]
    kit.unlocked_states = {"ready"}
    shown = {each["function"]["name"]: each["function"]["description"] for each in kit.generate_schemas()}
    assert shown == {"greet": "Say it.", "second": "Say hello."}
    played = play(call("greet"), "done", kits=[kit])
    assert played.statuses == ["denied"]
    kit.unlocked_states = {"ready", "closed"}
    assert kit.get_availability_reason("greet") == "it is not possible in the state 'closed'"
    assert kit.is_tool_available("second")
    kit.unlocked_states = set()
    assert kit.get_availability_reason("greet") == "it needs the state 'ready'"


@each_row("name", ["", "a b", "a::b", "x" * 65, "1a", "a\n"])
def test_a_name_that_no_provider_takes_is_refused(name: str) -> None:
    with pytest.raises(ToolkitError, match="can't be the name"):
        Toolkit("kit").add_tool(name, lambda: 1)


def test_a_name_is_given_once() -> None:
    kit = session()
    with pytest.raises(ToolkitError, match="already"):
        kit.add_tool("login", lambda: 1)


def test_only_functions_and_tool_objects_are_tools() -> None:
    kit = Toolkit("kit")
    kit.add_tool("odd", "text")  # type: ignore[arg-type]
    with pytest.raises(ToolkitError, match="not a function"):
        kit.generate_schemas()
    with pytest.raises(ToolkitError, match="'hide' or 'refuse'"):
        Toolkit("kit", gate="show")  # type: ignore[arg-type]


def test_ctx_is_given_wherever_it_stands_and_never_asked_for() -> None:
    kit = Toolkit("kit", context={"n": 1})

    @kit.tool
    def last(a: int, ctx, b: int = 2) -> str:
        """Last."""
        return f"{a} {b} {ctx.state['n']} {ctx.tool_name} {ctx.run_step} {ctx.deps.path}"

    @kit.tool
    async def only_key(*, ctx: "Unknown", a: int) -> str:  # noqa: F821, UP037
        """The type of `ctx` doesn't matter."""
        return f"{a} {ctx.state['n']}"

    played = play([call("last", a=5), call("only_key", a=6)], "done", kits=[kit])
    assert played.outputs == ["5 2 1 last 1 main", "6 1"]
    assert list(played.schema("last")["properties"]) == ["a", "b"]
    assert list(played.schema("only_key")["properties"]) == ["a"]


@pytest.mark.parametrize(
    "take",
    [
        lambda run, ctx: run + ctx.state["n"],
        lambda self, ctx: self + ctx.state["n"],
        lambda ctx, args: args + ctx.state["n"],
        lambda name, *, ctx: name + ctx.state["n"],
    ],
)
def test_a_parameter_may_have_any_name(take: Any) -> None:
    (name,) = [each for each in inspect.signature(take).parameters if each != "ctx"]
    kit = Toolkit("kit", context={"n": "1"})
    kit.add_tool("take", take)
    played = play(call("take", {name: "v"}), "done", kits=[kit])
    assert played.outputs == ["v1"]
    assert list(played.schema("take")["properties"]) == [name]


def test_a_function_without_a_name_needs_one() -> None:
    kit = Toolkit("kit")
    nameless = functools.partial(lambda text: text, "x")
    with pytest.raises(ToolkitError, match="'' can't be the name of a tool"):
        kit.tool(nameless)


def test_a_schema_that_a_tool_defines_holds_from_then_on() -> None:
    kit = Toolkit("kit", validation_enabled=True)

    @kit.tool
    def define(ctx) -> str:
        """Define."""
        ctx.state.schema.define("n", {"type": "integer"})
        return "defined"

    @kit.tool
    def write(n: Any) -> Any:
        """Write."""
        return "written", {"n": n}

    played = play(call("define"), call("write", n="x"), call("write", n=1), "done", kits=[kit])
    assert played.statuses == ["success", "failed", "success"]
    assert list(kit.context.schema) == []


def test_updates_that_cannot_be_told_change_nothing() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    kit = Toolkit("kit")

    @kit.tool(enables_states=["on"])
    def write() -> Any:
        """Write."""
        return "written", {"mute": Mute()}

    played = play(call("write"), "done", kits=[kit])
    assert played.statuses == ["failed"]
    state = played.result.toolkits["kit"]
    assert (state.unlocked_states, state.context.to_dict()) == (frozenset(), {})
