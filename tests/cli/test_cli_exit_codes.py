"""Exit codes, and the one object of `--output json`, for every way a run can end."""

from __future__ import annotations

import pytest

from llm_do.runtime.record.results import RunResult
from tests.cli.cli_processes import Ended, run_many, write_project
from tests.support.tables import each_row

CALL = "- tools: [{name: TOOL}]\n- text: done"
SEND = "- tools: [{name: send, args: {to: ann}}]\n- text: done"

MANIFEST = """\
{"version": 1, "entry": ENTRY, "agent_files": ["*.agent"], "python_files": ["tools.py"], "runtime": RUNTIME}
"""


def manifest(entry: str = '{"agent": "main"}', runtime: str = "{}") -> str:
    return MANIFEST.replace("ENTRY", entry).replace("RUNTIME", runtime)


FOREVER = "\n".join(f"- tools: [{{name: send, args: {{to: ann{number}}}}}]" for number in range(5))

# name: (exit code, status, options, answers, files)
CASES: dict[str, tuple[int, str, list[str], str, dict[str, str]]] = {
    "completed": (0, "completed", ["hello"], "", {}),
    "tool failed and was survived": (0, "completed", ["x", "--approve-all"], CALL.replace("TOOL", "fail"), {}),
    "rejected on request": (0, "completed", ["x", "--reject-all"], SEND, {}),
    "entry raised": (1, "failed", ["x"], "", {"manifest": manifest('{"function": "tools.py:entry"}')}),
    "tool failed and raises": (
        1,
        "failed",
        ["x", "--approve-all"],
        CALL.replace("TOOL", "fail"),
        {"manifest": manifest(runtime='{"on_tool_error": "raise"}')},
    ),
    "unknown option": (2, "invalid", ["x", "--nonsense"], "", {}),
    "no such project": (2, "invalid", ["./missing"], "", {}),
    "no input": (2, "invalid", [], "", {}),
    "bad field": (2, "invalid", ["--field", "inptu=x"], "", {}),
    "bad JSON": (2, "invalid", ["--input-json", "{"], "", {}),
    "input that does not fit": (2, "invalid", ["--input-json", '{"input": 3}'], "", {}),
    "bad pattern": (2, "invalid", ["x", "--allow", "send("], "", {}),
    "no such entry": (2, "invalid", ["x", "--entry", "unknown"], "", {}),
    "does not link": (3, "invalid", ["x"], "", {"agent": "---\nname: main\ntols: []\n---\n"}),
    "no one to ask": (4, "denied", ["x"], SEND, {}),
    "no one to ask, then limited": (4, "denied", ["x", "--max-steps", "2"], FOREVER, {}),
    "steps": (6, "limited", ["x", "--approve-all", "--max-steps", "2"], FOREVER, {}),
    "time": (6, "limited", ["x", "--timeout", "0.2"], "- {text: late, delay: 30}", {}),
    "interrupted by a tool": (130, "interrupted", ["x", "--approve-all"], CALL.replace("TOOL", "stop"), {}),
    "no key": (7, "provider_failed", ["x"], "", {"agent": "---\nname: main\nmodel: openai:gpt-5\n---\nx"}),
    "provider": (7, "provider_failed", ["x"], "- error: {status: 401, message: who are you}", {}),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    return run_many(
        {
            name: (
                ["run", *options, "--output", "json"],
                write_project(tmp_path_factory.mktemp("ends") / str(number), answers, **files),
                b"",
            )
            for number, (name, (_, _, options, answers, files)) in enumerate(CASES.items())
        }
    )


@each_row("name", CASES)
def test_exit_code_and_json_object_report_how_a_run_ended(ended: dict[str, Ended], name: str) -> None:
    code, status, *_ = CASES[name]

    assert (ended[name].code, ended[name].json["status"]) == (code, status), ended[name].err
    assert list(ended[name].json) == list(RunResult("completed", None, "").to_dict())


@each_row("name", [name for name, case in CASES.items() if case[0] not in (0,)])
def test_errors_are_one_paragraph_on_stderr_without_a_traceback(ended: dict[str, Ended], name: str) -> None:
    if name != "does not link":
        assert "error: " in ended[name].err
        assert all(line.startswith("error: ") for line in ended[name].err.splitlines())
    assert "Traceback" not in ended[name].err


@each_row("name", [name for name, case in CASES.items() if case[0] in (1, 2, 3, 6, 7, 130)])
def test_the_json_object_lists_the_error_of_an_early_end(ended: dict[str, Ended], name: str) -> None:
    assert ended[name].json["errors"]
    assert ended[name].json["errors"][-1].keys() >= {"type", "message", "agent_path"}


def test_a_link_error_has_its_location_on_stderr_and_in_the_json_object(ended: dict[str, Ended]) -> None:
    failed = ended["does not link"]

    assert "main.agent:3:1: error[" in failed.err
    assert "tols: []" in failed.err
    assert [(error["file"], error["line"]) for error in failed.json["errors"]] == [("main.agent", 3)]


def test_a_call_denied_for_lack_of_a_person_names_the_rule_to_add(ended: dict[str, Ended]) -> None:
    assert "--allow 'send(" in ended["no one to ask"].err
    assert [denial["tool"] for denial in ended["no one to ask"].json["denials"]] == ["send"]
    assert ended["rejected on request"].err == ""


def test_an_interrupt_raised_by_a_tool_leaves_a_complete_record(ended: dict[str, Ended]) -> None:
    result = ended["interrupted by a tool"].json

    assert result["run_id"]
    assert [message["kind"] for message in result["messages"]] == ["request", "response", "request"]
    assert result["usage"]["tool_calls"] == 1


def test_a_failed_entry_reports_the_line_in_the_project(ended: dict[str, Ended]) -> None:
    assert "error: entry raised ValueError: the entry broke (tools.py:" in ended["entry raised"].err
