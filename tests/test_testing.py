from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_do import InputError, LinkError
from llm_do.testing import Question, play

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
    played = play(root, "x", answers=[calls("send", to="ann"), calls("fail"), {"text": "said: {tool}"}])

    assert played.tools == ["send", "fail"]
    assert played.call("send").result == "sent to ann"
    assert played.call("fail").status == "failed"
    assert [question.tool for question in played.questions] == ["send", "fail"]
    assert played.status == "completed"
    assert played.output.startswith("said: ")


def test_each_tool_may_have_its_own_answer_and_what_is_not_named_is_denied(root: Path) -> None:
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


def test_a_call_that_was_made_twice_or_never_is_told(root: Path) -> None:
    played = play(root, "x", answers=[calls("send", "send", to="ann"), {"text": "over"}], approvals="approve_all")

    with pytest.raises(AssertionError, match="send was called 2 times"):
        played.call("send")
    with pytest.raises(AssertionError, match="fail was called 0 times; calls: send, send"):
        played.call("fail")
    assert played.questions == []


def test_an_early_end_is_a_status_and_a_wrong_start_an_exception(root: Path) -> None:
    limited = play(root, "x", answers=[calls("send", to="a"), calls("send", to="b")], approvals="once", max_steps=1)

    assert limited.status == "limited"
    with pytest.raises(InputError):
        play(root, {"nonsense": 1}, answers=[{"text": "x"}])
    (root / "main.agent").write_text("---\nname: main\ntools: [sned]\n---\n")
    with pytest.raises(LinkError):
        play(root, "x", answers=[{"text": "x"}])


@pytest.mark.parametrize("approvals", ["allow", {"send": "allow"}, {"send": "approve_all"}])
def test_what_is_no_answer_is_refused_before_anything_runs(root: Path, approvals: object) -> None:
    with pytest.raises(ValueError, match="is no answer; answers are once, session, always, deny, abort"):
        play(root, "x", answers=[calls("send", to="ann"), {"text": "over"}], approvals=approvals)  # type: ignore[arg-type]
