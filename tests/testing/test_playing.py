"""`llm_do.testing.play`: the recorded run, answers to approval requests, conversations, and invalid arguments."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from llm_do import InputError, LinkError, UsageError
from llm_do.testing import Question, play
from llm_do.threads import ConversationManager, memory_store
from tests.support.tables import each_row

TOOLS = '''
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"

def fail() -> str:
    """Fail."""
    raise RuntimeError("it broke")

TOOLS = [send, fail]
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "main.agent").write_text("---\nname: main\ntools: [send, fail]\ntoolsets: [helper]\n---\nHelp.\n")
    (tmp_path / "helper.agent").write_text("---\nname: helper\ndescription: helps\ntools: [send]\n---\nHelp.\n")
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["tools.py"]}
    (tmp_path / "project.json").write_text(json.dumps(manifest))
    return tmp_path


def calls(*names: str, **args: str) -> dict[str, object]:
    return {"tools": [{"name": name, "args": args} for name in names]}


def test_a_run_shows_its_calls_its_questions_and_its_result(root: Path) -> None:
    played = play(root, "x", answers=[calls("send", to="ann"), calls("fail"), {"text": "result: {tool}"}])

    assert played.tools == ["send", "fail"]
    assert played.call("send").result == "sent to ann"
    assert played.call("fail").status == "failed"
    assert [question.tool for question in played.questions] == ["send", "fail"]
    assert played.status == "completed"
    assert played.output.startswith("result: ")


def test_each_tool_may_have_its_own_answer_and_others_are_denied(root: Path) -> None:
    answers = {
        "main": [calls("send", to="ann"), calls("helper", input="go"), {"text": "over"}],
        "helper": [calls("fail"), calls("send", to="bob"), {"text": "helped"}],
    }

    played = play(root, "x", answers=answers, approvals={"send": "once"})
    refused = play(root, "x", answers=[calls("fail"), {"text": "over"}], approvals={"send": "once"})

    assert [(call.path, call.tool, call.status) for call in played.calls] == [
        ("main", "send", "success"),
        ("main/helper", "fail", "refused"),
        ("main/helper", "send", "success"),
        ("main", "helper", "success"),
    ]
    assert refused.denied == ["fail"]
    assert refused.questions == [Question("fail", {}, "main", refused.questions[0].reason, "deny")]


def test_asking_for_a_call_made_twice_or_never_is_an_error(root: Path) -> None:
    played = play(root, "x", answers=[calls("send", "send", to="ann"), {"text": "over"}], approvals="approve_all")

    with pytest.raises(AssertionError, match="send was called 2 times"):
        played.call("send")
    with pytest.raises(AssertionError, match="fail was called 0 times; calls: send, send"):
        played.call("fail")
    assert played.questions == []


def test_an_early_end_is_a_status_and_invalid_arguments_an_exception(root: Path) -> None:
    limited = play(root, "x", answers=[calls("send", to="a"), calls("send", to="b")], approvals="once", max_steps=1)

    assert limited.status == "limited"
    with pytest.raises(InputError):
        play(root, {"nonsense": 1}, answers=[{"text": "x"}])
    (root / "main.agent").write_text("---\nname: main\ntools: [sned]\n---\n")
    with pytest.raises(LinkError):
        play(root, "x", answers=[{"text": "x"}])


@pytest.mark.parametrize("approvals", ["allow", {"send": "allow"}, {"send": "approve_all"}])
def test_an_invalid_answer_is_refused_before_anything_runs(root: Path, approvals: object) -> None:
    with pytest.raises(UsageError, match="is not an answer") as error:
        play(root, "x", answers=[calls("send", to="ann"), {"text": "over"}], approvals=approvals)  # type: ignore[arg-type]
    assert "Answers are once, all, session, always, deny, abort, unanswered" in str(error.value.hint)


SAYS = """---
name: main
tools: [send, count]
---
Help.
"""
COUNTS = '''
from llm_do import CallContext
from pydantic_ai import RunContext

def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"

def count(ctx: RunContext[CallContext]) -> str:
    """Count."""
    state = ctx.deps.thread.state
    state["times"] = state.get("times", 0) + 1
    return f"{state['times']} for {ctx.deps.user_id}"

TOOLS = [send, count]
'''


@pytest.fixture
def talking(root: Path) -> Path:
    (root / "main.agent").write_text(SAYS)
    (root / "tools.py").write_text(COUNTS)
    return root


def test_each_input_of_a_conversation_continues_from_the_previous_one(talking: Path) -> None:
    answers = [calls("send", to="ann"), {"text": "first: {tool}"}, calls("send", to="bob"), {"text": "second: {tool}"}]

    played = play(talking, ["one", "two"], answers=answers)

    assert [turn.output for turn in played.turns] == ["first: sent to ann", "second: sent to bob"]
    assert [turn.tools for turn in played.turns] == [["send"], ["send"]]
    assert [len(turn.questions) for turn in played.turns] == [1, 1]
    assert [turn.events[0].type for turn in played.turns] == ["run_started", "run_started"]
    assert played.output == "second: sent to bob"
    assert played.tools == ["send", "send"]
    assert len(played.questions) == 2
    assert len(played.result.messages) == 8
    assert played.turns[0].turns == []


def test_denials_of_all_turns_are_listed_and_an_early_end_does_not_end_the_conversation(talking: Path) -> None:
    answers = [calls("send", to="a"), {"text": "no"}, calls("send", to="b"), {"text": "over"}]

    played = play(talking, ("one", "two"), answers=answers, approvals="deny")
    aborted = play(talking, ["one", "two"], answers=[calls("send", to="a"), {"text": "went on"}], approvals="abort")

    assert played.denied == ["send", "send"]
    assert [turn.denied for turn in played.turns] == [["send"], ["send"]]
    assert [turn.status for turn in aborted.turns] == ["failed", "completed"]


def test_a_thread_is_kept_in_memory_for_the_conversation(talking: Path) -> None:
    answers = [calls("count"), {"text": "{tool}"}, calls("count"), {"text": "{tool}"}]

    played = play(talking, ["one", "two"], answers=answers, thread_id="t", user_id="ann")
    again = play(talking, "one", answers=answers, thread_id="t", user_id="ann")

    assert [turn.output for turn in played.turns] == ["1 for ann", "2 for ann"]
    assert played.result.thread_id == "t"
    assert again.output == "1 for ann"
    assert not (talking / ".llm-do").exists()


def test_a_thread_in_an_own_store_continues_in_the_next_play(talking: Path) -> None:
    answers = [calls("count"), {"text": "{tool}"}, calls("count"), {"text": "{tool}"}]
    store = memory_store()

    outputs = [play(talking, text, answers=answers, thread_id="t", store=store).output for text in ("one", "two")]

    assert outputs == ["1 for None", "2 for None"]
    assert len(asyncio.run(ConversationManager(store).get_messages("t"))) == 8


def test_an_invalid_input_in_the_middle_raises(talking: Path) -> None:
    with pytest.raises(InputError):
        play(talking, ["one", {"nonsense": 1}], answers=[{"text": "x"}, {"text": "y"}])
    with pytest.raises(ValueError, match="at least one input"):
        play(talking, [], answers=[{"text": "x"}])


@each_row(
    "option, message",
    [
        ("max_step", "play has no option 'max_step'; did you mean `max_steps`?"),
        ("thread", "play has no option 'thread'; did you mean `thread_id`?"),
        ("config", "play has no option 'config'"),
        ("nonsense", "options are approvals, model, models, allow"),
    ],
)
def test_an_unknown_option_is_reported_before_anything_is_loaded(option: str, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        play("nowhere", "x", **{option: 1})


def test_a_name_that_no_tool_has_is_a_warning(root: Path) -> None:
    answers = [calls("send", to="ann"), {"text": "over"}]

    with pytest.warns(UserWarning, match="approvals: sned can't match: no agent has such a tool; did you mean `send`"):
        assert play(root, "x", answers=answers, approvals={"sned": "once"}).denied == ["send"]
    with pytest.warns(UserWarning, match="recorded_tools: sned can't match"):
        play(root, "x", model="test", cassette=root / "c.json", record_cassette=True, recorded_tools=["sned", "s*"])


def test_answers_that_no_model_would_use_are_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="pass answers or a model"):
        play(root, "x", answers=[{"text": "over"}], model="test")

    assert play(root, "x", model="test", approvals="deny").status == "completed"
