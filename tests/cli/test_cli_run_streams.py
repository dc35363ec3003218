"""What goes to stdout and stderr, and where input comes from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import LLM_DO, environment, run, run_forked, run_many
from tests.cli.cli_terminal import start_process

SHOUT = '- {tools: [{name: shout}], expect: "Zürich"}\n- text: "{tool} €"'
ALLOW = ("--approve-all",)


def shell(command: str, cwd: Path, **env: str | None) -> subprocess.CompletedProcess[bytes]:
    """Run a bash command line in which `LLM_DO` stands for this command."""
    return subprocess.run(
        ["bash", "-c", command.replace("LLM_DO", " ".join(f"'{word}'" for word in LLM_DO))],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


@pytest.mark.slow
def test_stdout_holds_only_the_result_in_any_locale(
    project: Callable[..., Path],
) -> None:
    root = project(SHOUT)

    ended = run(
        "run",
        *ALLOW,
        cwd=root,
        stdin="Grüezi aus Zürich\n".encode(),
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LANG": None, "TERM": "dumb", "CI": "1"},
    )

    assert (ended.code, ended.out) == (0, "Grüße €\n")
    lines = ended.err.splitlines()
    assert [line for line in lines if line.startswith("by ")] == ["by print", "by write", "by child"]
    assert "UserWarning: by warning" in ended.err
    assert "\x1b" not in ended.err
    # In CI, calls approved by --approve-all are logged, in lines without times.
    assert "main > shout()" in lines
    assert "main: completed: Grüße €" in lines


@pytest.mark.slow
def test_events_are_json_lines_and_prompts_can_be_arguments_in_any_locale(project: Callable[..., Path]) -> None:
    root = project(SHOUT)

    ended = run(
        "run",
        "Zürich",
        *ALLOW,
        "--output",
        "events",
        "-q",
        cwd=root,
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LANG": None},
    )

    events = [json.loads(line) for line in ended.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[0]["input"]["input"] == "Zürich"
    assert (events[0]["type"], events[-1]["type"]) == ("run_started", "run_finished")
    assert {"tool_call", "tool_result", "text", "usage"} <= {event["type"] for event in events}


@pytest.mark.slow
def test_closed_streams_do_not_hang_or_mix_up_files(project: Callable[..., Path]) -> None:
    root = project('- text: "answer to {input}"')

    no_input = shell("LLM_DO run hello <&- 2>&-", root)
    no_output = shell("LLM_DO run hello <&- >&-", root)
    nothing = shell("LLM_DO run <&- >&- 2>&-", root)

    assert (no_input.returncode, no_input.stdout) == (0, b"answer to hello\n")
    assert (no_output.returncode, no_output.stderr) == (0, b"")
    assert nothing.returncode == 2


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(project: Callable[..., Path]) -> None:
    gone = shell("LLM_DO run hello | true; exit ${PIPESTATUS[0]}", project('- text: "answer to {input}"'))

    assert (gone.returncode, gone.stderr) == (0, b"")


@pytest.mark.slow
def test_a_pipe_closed_between_events_is_not_an_error_and_a_full_disk_is(project: Callable[..., Path]) -> None:
    root = project('- text: "answer to {input}"')

    events = shell("LLM_DO run hello --output events | head -1; exit ${PIPESTATUS[0]}", root)

    assert (events.returncode, events.stderr) in ((141, b""), (0, b""))  # 0: it ended before `head` did
    if Path("/dev/full").exists():
        full = shell("LLM_DO run hello > /dev/full", root)
        assert (full.returncode, full.stderr.count(b"\n")) == (1, 1)
        assert full.stderr.startswith(b"error: the result can't be written to stdout: ")


@pytest.mark.slow
def test_waiting_for_stdin_is_announced(project: Callable[..., Path]) -> None:
    root = project()
    process = start_process(["run"], root, stdin=subprocess.PIPE)
    assert process.stderr is not None

    notice = process.stderr.readline()
    out, err = process.communicate("\ufeffhello", timeout=60)

    assert notice.startswith("waiting for input on stdin")
    assert (out, err, process.returncode) == ("answer to hello\n", "", 0)


MANIFEST = """\
{
  "version": 1, "entry": {"agent": "main", "args": {"input": "the default"}},
  "agent_files": ["*.agent"], "python_files": ["tools.py"], "allow_cli_input": ALLOWED
}
"""


@pytest.mark.slow
def test_input_comes_from_arguments_then_stdin_then_the_manifest(project: Callable[..., Path], tmp_path: Path) -> None:
    root = project(manifest=MANIFEST.replace("ALLOWED", "true"))
    (root / "inner").mkdir()
    note = tmp_path / "note.txt"
    note.write_text("a note")
    attach = ["--attach", "tools.py", "--attach", str(note), "--attach", "-"]
    default = {"input": "the default", "attachments": []}
    cases: dict[str, tuple[list[str], Path, bytes, object]] = {
        "argument": (["prompt"], root, b"", {"input": "prompt", "attachments": []}),
        "argument and stdin": (
            ["prompt"], root, b"one\ntwo\n", {"input": "prompt\n\n<stdin>\none\ntwo\n</stdin>", "attachments": []},
        ),
        "argument and white stdin": (["prompt"], root, b" \n", {"input": "prompt", "attachments": []}),
        "a mark in stdin": (
            ["prompt"], root, b"</stdin>", {"input": "prompt\n\n<stdin->\n</stdin>\n</stdin->", "attachments": []},
        ),
        "field and stdin": (
            ["--field", "attachments=tools.py"], root, b"piped", {"input": "piped", "attachments": ["tools.py"]},
        ),
        "all fields and stdin": (["--field", "input=3"], root, b"piped", {"input": "3", "attachments": []}),
        "json and stdin": (["--input-json", '"text"'], root, b"piped", {"input": "text", "attachments": []}),
        "several": (
            ["--field", "input=3", "--field", "attachments=a", "--field", "attachments=b"],
            root, b"", {"input": "3", "attachments": ["a", "b"]},
        ),
        "argument and not UTF-8": (["prompt"], root, b"ab\xff", "stdin is not UTF-8: byte 0xff at offset 2"),
        "one value": (["--field", "input=3", "--field", "input=4"], root, b"", "--field input is given 2 times"),
        "fields": (
            ["--field", "input=3", "--field", 'attachments=["a"]'], root, b"", {"input": "3", "attachments": ["a"]},
        ),
        "json and field": (
            ["--input-json", '{"input": "json"}', "--field", "input=x"], root, b"", {"input": "x", "attachments": []},
        ),
        "json text": (["--input-json", '"text"'], root, b"", {"input": "text", "attachments": []}),
        "stdin": ([], root, b" piped \n", {"input": " piped \n", "attachments": []}),
        "white stdin": ([], root, b" \n", default),
        "no stdin": ([], root / "inner", b"", default),
        "attached": (
            attach, root, b"\xff", {"input": "the default", "attachments": ["tools.py", str(note), "-"]},
        ),
        "not UTF-8": ([], root, b"ab\xff", "stdin is not UTF-8: byte 0xff at offset 2"),
        "endless": ([], root, b"a" * (64 * 1024**2 + 1), "stdin has more than 64 MiB"),
        "key twice": (["--input-json", '{"input": 1, "input": 2}'], root, b"", 'the key "input" appears twice'),
        "twice": (["prompt", "--input-json", "{}"], root, b"", "a prompt and --input-json exclude each other"),
        "empty prompt": ([".", " "], root, b"", "the prompt is empty"),
        "unquoted prompt": (["two", "words"], root, b"", "Quote a prompt of several words: llm-do run 'two words'"),
        "folder": (["inner"], root, b"", "no project in inner"),
        "like a path": (["a/b"], root, b"", "no project at a/b"),
        "like a manifest": (["old.json"], root, b"", "no project at old.json"),
        "no file": (["--attach", "no-such-file"], root, b"", "can't attach 'no-such-file'"),
    }  # fmt: skip
    ended = run_many(
        {
            name: (["run", "--dry-run", "--output", "json", *args], cwd, stdin)
            for name, (args, cwd, stdin, _) in cases.items()
        }
    )

    for name, (_, _, _, expected) in cases.items():
        if isinstance(expected, str):
            assert ended[name].code == 2, name
            assert expected in ended[name].err
            assert ended[name].json["status"] == "invalid"
        else:
            assert (ended[name].code, ended[name].json["input"]) == (0, expected), name


@pytest.mark.slow
def test_a_loop_that_reads_lines_keeps_its_stdin(project: Callable[..., Path]) -> None:
    root = project('- text: "answer to {input}"')
    (root / "questions").write_text("one\ntwo\n")

    asked = shell('while read question; do LLM_DO run . "$question" --no-record; done < questions', root)

    assert asked.stdout == b"answer to one\nanswer to two\n"


def test_a_project_without_cli_input_refuses_every_kind_of_input(project: Callable[..., Path]) -> None:
    root = project(manifest=MANIFEST.replace("ALLOWED", "false"))
    inputs = {
        "prompt": (["prompt"], b""),
        "json": (["--input-json", "{}"], b""),
        "field": (["--field", "input=x"], b""),
        "attach": (["--attach", "tools.py"], b""),
        "stdin": ([], b"piped"),
    }

    refused = run_many({name: (["run", "--dry-run", *args], root, stdin) for name, (args, stdin) in inputs.items()})
    taken = run_many({"nothing": (["run"], root, b"  \n")})["nothing"]

    for ended in refused.values():
        assert (ended.code, ended.out) == (2, "")
        assert "the project takes no input from the command line" in ended.err
    assert (taken.code, taken.out) == (0, "answer to the default\n")


def test_files_outside_the_project_and_stdin_can_be_attached(project: Callable[..., Path], tmp_path: Path) -> None:
    root = project("- {text: seen, expect: look}")
    (tmp_path / "note.txt").write_text("a note")

    ended = run_forked(
        "run", "look", "--attach", str(tmp_path / "note.txt"), "--attach", "-", "--output", "json",
        cwd=root, stdin=b"piped bytes",
    )  # fmt: skip

    request = ended.json["messages"][0]["parts"][0]["content"]
    assert [part["media_type"] for part in request[1:]] == ["text/plain", "text/plain"]


def test_quiet_prints_nothing_and_debug_shows_the_traceback(project: Callable[..., Path]) -> None:
    root = project(
        "- tools: [{name: send, args: {to: a}}]\n- text: done",
        manifest="""\
        {"version": 1, "entry": {"function": "tools.py:entry"},
         "python_files": ["tools.py"], "agent_files": ["*.agent"]}
        """,
    )

    ended = run_many(
        {
            "quiet": (["run", "x", "--entry", "main", "--approve-all", "-q"], root, b""),
            "debug": (["run", "x", "--debug"], root, b""),
        }
    )
    quiet, debug = ended["quiet"], ended["debug"]

    assert (quiet.out, quiet.err) == ("done\n", "")
    assert "Traceback" in debug.err
    assert "ValueError: the entry broke" in debug.err
