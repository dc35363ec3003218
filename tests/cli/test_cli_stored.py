"""`threads` and `runs`: nested settings, export and import, and lists."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.cli_processes import environment, run_forked, run_many
from tests.cli.cli_terminal import start_process


def test_changing_a_nested_setting_leaves_its_siblings_alone(project: Callable[..., Path]) -> None:
    root = project()
    steps = [
        ["model_settings.extra_body.top_k=5", "model_settings.extra_body.seed=1", "model_settings.temperature=0.5"],
        ["model_settings.extra_body.top_k="],
        ["reasoning.params.max_tokens=3", "reasoning.model=test"],
        ["model_settings="],
    ]

    shown = [run_forked("threads", "set", "t", *values, cwd=root).json for values in steps]

    settings = {"temperature": 0.5, "extra_body": {"seed": 1}}
    assert shown[0] == {"model_settings": {"temperature": 0.5, "extra_body": {"top_k": 5, "seed": 1}}}
    assert shown[1] == {"model_settings": settings}
    assert shown[2] == {"model": "test", "model_settings": {**settings, "max_tokens": 3}}
    assert shown[3] == {"model": "test"}


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (["model=test", "model.x=1"], "model.x can't be set: 'x' would be in \"test\", which is not an object."),
        (["model_settings=5", "model_settings.a=1"], "model_settings.a can't be set: 'a' would be in 5"),
        (["xreasoning.model=test"], "a thread has no setting 'xreasoning'"),
        (["model_settings=NaN"], "the thread setting model_settings must be an object. Got 'NaN'."),
        (
            ["model_settings.temperature=hot"],
            "the thread setting model_settings is invalid: temperature: Input should be a valid number. Pass",
        ),
        (
            ['compaction={"max_tokens": 9, "strategies": ["zip"]}'],
            "the thread setting compaction is invalid: strategies.0: Input should be 'tool_result_clearing', "
            "'summarization' or 'sliding_window'. Pass",
        ),
        (["history_limit=" + "[" * 100_000], "the thread setting history_limit must be a positive whole number."),
    ],
)
def test_an_invalid_setting_is_refused(project: Callable[..., Path], values: list[str], wrong: str) -> None:
    ended = run_forked("threads", "set", "t", *values, cwd=project())

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {wrong}")


def test_an_import_that_is_no_message_is_refused_with_the_place_of_the_fault(project: Callable[..., Path]) -> None:
    root = project("- text: 'answer'")
    run_forked("run", "hi", "--thread", "t", cwd=root)
    exported = run_forked("threads", "export", "t", cwd=root).out
    (root / "odd.jsonl").write_text(exported.replace('"content": "answer"', '"content": 3'))

    ended = run_forked("threads", "import", "odd.jsonl", "--as", "b", cwd=root)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: a stored message can't be read: 0.response.parts.0.text.content: Input should be a valid string "
        "(odd.jsonl:3). Import a complete file written by `llm-do threads export`.\n"
    )


def test_imported_threads_keep_unusual_line_separators(project: Callable[..., Path], tmp_path: Path) -> None:
    root = project("- text: 'answer'")
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    run_forked("run", "--thread", "odd", cwd=root, stdin=text.encode())
    exported = tmp_path / "odd.jsonl"
    exported.write_text(run_forked("threads", "export", "odd", cwd=root).out, encoding="utf-8", newline="")

    ended = run_many(
        {
            "file": (["threads", "import", str(exported), "--as", "b"], root, b""),
            "pipe": (["threads", "import", "-", "--as", "c"], root, exported.read_bytes().replace(b"\n", b"\r\n")),
        }
    )

    assert [(each.code, each.err) for each in ended.values()] == [(0, ""), (0, "")]
    for name in "bc":
        shown = run_forked("threads", "show", name, "--json", cwd=root).json
        assert shown["messages"][0]["parts"][0]["content"] == text


def test_one_long_name_does_not_widen_the_columns_of_a_list(project: Callable[..., Path]) -> None:
    root = project()
    for name in ("ab", "日本", "x" * 200):
        run_forked("threads", "set", name, "model=test", cwd=root)

    lines = run_forked("threads", "list", cwd=root).out.splitlines()

    assert [line.partition("messages")[0] for line in lines] == [
        f"{'x' * 200}  0 ",
        f"日本{'':36}  0 ",
        f"ab{'':38}  0 ",
    ]
    assert json.loads(run_forked("threads", "list", "--json", cwd=root).out)[0]["id"] == "x" * 200


@pytest.mark.slow
def test_an_import_announces_that_it_waits_for_stdin_and_ends_on_ctrl_c(project: Callable[..., Path]) -> None:
    process = start_process(["threads", "import", "-"], project(), stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == "waiting for a thread on stdin\n"

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 130  # with stdin still open
    process.communicate()


def test_runs_are_filtered_summed_up_and_shown_with_their_requests(project: Callable[..., Path]) -> None:
    root = project("- tools: [{name: shout}]\n- text: 'Done.'")
    run_forked("run", "--approve-all", "go", cwd=root)
    calls: dict[str, list[str]] = {
        "all": ["list", "--format", "json"],
        "none": ["list", "--status", "failed"],
        "late": ["list", "--since", "2100-01-01"],
        "text": ["list", "--since", "1d", "--entry", "main", "--status", "completed"],
        "cost": ["list", "--cost-above", "0"],
        "unknown": ["list", "--status", "failled"],
        "when": ["list", "--since", "tomorrow"],
        "costs": ["costs", "--by", "agent", "--format", "json"],
        "days": ["costs"],
        "requests": ["show", "--requests"],
        "request": ["show", "--requests", "2", "--format", "json"],
        "beyond": ["show", "--requests=3"],
        "odd": ["show", "--requests=x"],
        "events": ["show", "--requests", "--type", "usage"],
        "compare": ["compare", "none", "none"],
    }
    ended = run_many({name: (["runs", *words], root, b"") for name, words in calls.items()})

    (run,) = ended["all"].json
    assert (run["status"], run["exchanges"], run["usage"]["requests"], run["models"][0][:7]) == (
        "completed",
        2,
        2,
        "script:",
    )
    assert [ended[name].out for name in ("none", "late", "cost")] == ["no runs\n"] * 3
    assert f"{run['usage']['total_tokens']} tokens" in ended["text"].out
    assert "Did you mean `failed`?" in ended["unknown"].err
    assert "'tomorrow' is not a day" in ended["when"].err
    (agent,) = ended["costs"].json
    assert (agent["agent"], agent["requests"], agent["unpriced_tokens"]) == ("main", 2, run["usage"]["total_tokens"])
    assert "2 requests" in ended["days"].out
    assert "\nresult of shout (call_1)\n" in ended["requests"].out
    assert ended["request"].json["response"]["parts"][0]["content"] == "Done."
    assert "has no request 3. Its requests are 1 to 2." in ended["beyond"].err
    assert "takes the number of a request, not 'x'" in ended["odd"].err
    assert "--requests shows no events" in ended["events"].err
    assert "no run has the id 'none'" in ended["compare"].err
    assert {ended[name].code for name in ("unknown", "when", "beyond", "odd", "events", "compare")} == {2}


def test_only_the_latest_runs_are_listed(project: Callable[..., Path]) -> None:
    root = project()
    for text in ("a", "b", "c"):
        run_forked("run", text, "--model", "test", cwd=root)
    every = run_forked("runs", "list", "--limit", "3", cwd=root)

    for limit, says in ((2, "only the latest 2 runs are shown; --limit shows more"), (1, "only the latest run is")):
        some = run_forked("runs", "list", "--limit", str(limit), cwd=root)
        assert some.out.splitlines() == every.out.splitlines()[:limit]
        assert says in some.err
    assert len(every.out.splitlines()) == 3
    assert every.err == ""


def test_a_run_that_cannot_be_read_is_named(project: Callable[..., Path]) -> None:
    root = project()
    run_forked("run", "a", "--model", "test", cwd=root)
    with closing(sqlite3.connect(root / ".llm-do" / "state.db")) as db:
        db.execute("UPDATE runs SET usage = '{'")
        db.commit()
        (run,) = db.execute("SELECT id FROM runs").fetchone()

    listed = run_forked("runs", "list", cwd=root)

    assert listed.code != 0
    assert f"state.db has data that can't be read: run '{run}': JSONDecodeError" in " ".join(listed.err.split())


def test_runs_whose_requests_are_not_kept_say_why(project: Callable[..., Path]) -> None:
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "python_files": ["tools.py"]}
    root = project(manifest=json.dumps({**manifest, "runtime": {"record": {"exchanges": False}}}))
    run_forked("run", "go", cwd=root)

    ended = run_many({"show": (["runs", "show"], root, b""), "sent": (["runs", "show", "--requests"], root, b"")})

    why = "what models were sent is not kept, as `runtime.record.exchanges` says"
    assert ended["show"].out.splitlines()[-1] == why
    assert (ended["sent"].code, why in ended["sent"].err) == (2, True)


@pytest.mark.slow
def test_a_run_is_written_as_a_page_or_printed_as_one(project: Callable[..., Path]) -> None:
    root = project("- text: </script><b>answer</b>")
    run_forked("run", "hello", cwd=root)

    show = ["runs", "show", "--html"]
    calls = {
        "written": [*show, "run.html"],
        "again": [*show, "run.html"],
        "printed": [*show, "-"],
        "folder": [*show, "."],
        "nowhere": [*show, "no/run.html"],
        "types": [*show, "run.html", "--type", "usage"],
        "requests": ["runs", "show", "--requests", "--html", "run.html"],
    }
    ended = run_many({name: (words, root, b"") for name, words in calls.items()})

    page = (root / "run.html").read_text(encoding="utf-8")
    assert (ended["written"].code, ended["written"].out) == (0, "")
    assert ended["written"].err.startswith("wrote run.html, the page of run ")
    assert ended["again"].code == 0
    assert ended["printed"].out == page
    assert "</script><b>" not in page
    assert "\\u003c/script\\u003e\\u003cb" in page
    assert {ended[name].code for name in ("folder", "nowhere", "types", "requests")} == {2}
    assert "there is no folder no for the page" in ended["nowhere"].err


def test_lists_import_no_more_than_they_need(project: Callable[..., Path]) -> None:
    manifest = {"version": 1, "name": "shop", "description": "Sells\nthings.", "entry": {"agent": "main"}}
    files = {"agent_files": ["*.agent"], "python_files": ["tools.py"]}
    root = project(manifest=json.dumps(manifest | files))
    run_forked("run", "hello", "--thread", "t", cwd=root)
    script = (
        "import json, sys\n"
        "from llm_do.cli import app\n"
        "codes = [app.run(['runs', 'list']), app.run(['threads', 'list'])]\n"
        "print(json.dumps([codes, [n for n in sys.argv[1:] if n in sys.modules]]), file=sys.stderr)\n"
    )
    names = [
        "pydantic",
        "pydantic_core",
        "pydantic_ai",
        "openai",
        "rich",
        "yaml",
        "llm_do.diagnostics.known_codes",
        "llm_do.linker.sources.project_files",
        "llm_do.runtime.record.events.event",
        "llm_do.threads.sql.exchange_rows",
        "llm_do.threads.sql.runs.process_runs",
        "llm_do.ui.live.run_tree",
    ]

    ended = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=root, env=environment(), capture_output=True, text=True, timeout=60
    )

    assert json.loads(ended.stderr.splitlines()[-1]) == [[0, 0], []]
    assert ended.stderr.splitlines()[0] == "shop: Sells things."


def test_nothing_is_promised_of_a_durable_run_that_the_store_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\n---\nHelp.\n", encoding="utf-8")
    (tmp_path / "odd.db").write_text("no database " * 100, encoding="utf-8")
    run = ["run", ".", "--durable", "--run-id", "r", "go"]
    failed = run_forked(*run, "--store", "odd.db", cwd=tmp_path)
    kept = run_forked(*run, "--store", "kept.db", cwd=tmp_path)

    assert failed.code != 0
    assert "is durable" not in failed.err
    assert kept.err.startswith("run r is durable: after an interruption, `llm-do resume ")


def test_a_message_is_named_by_a_beginning_that_no_other_has(project: Callable[..., Path], tmp_path: Path) -> None:
    root = project("- text: done\n" * 10)  # ten runs write 20 messages, of which two begin with one of 16 digits
    for each in range(10):
        assert run_forked("run", str(each), "--thread", "t", cwd=root).code == 0
    with closing(sqlite3.connect(root / ".llm-do" / "state.db")) as db:
        ids = [id for (id,) in db.execute("SELECT id FROM messages ORDER BY depth")]
    shown = [line.split()[0] for line in run_forked("threads", "show", "t", cwd=root).out.splitlines()[1:]]
    digits = [id[0] for id in ids]
    several = next(each for each in digits if digits.count(each) > 1)

    empty, refused = (run_forked("threads", "branch", "t", "--to", each, cwd=root) for each in ("", several))
    assert (empty.code, empty.err.splitlines()[0][:37]) == (2, "error: thread 't' has no message ''. ")
    assert (refused.code, refused.out) == (2, "")
    assert f"have ids that begin with {several!r}: {several}" in refused.err
    assert run_forked("threads", "show", "t", cwd=root).out.startswith("thread t, 20 messages")
    assert shown == [id[:12] for id in ids]
    assert run_forked("threads", "branch", "t", "--to", shown[3], cwd=root).out == "t: 4 messages\n"
    assert run_forked("threads", "branch", "t", "--to", ids[1], cwd=root).out == "t: 2 messages\n"


def test_state_and_settings_of_a_thread_are_shown_without_what_acts_on_a_terminal(
    project: Callable[..., Path], tmp_path: Path
) -> None:
    root = project()
    run_forked("run", "x", "--thread", "t", cwd=root)
    first, *others = run_forked("threads", "export", "t", cwd=root).out.splitlines()
    evil = "\x9b2J\u202e"
    kept = {"id": "copy", "state": {"main": {evil: evil}}, "config": {"model": f"test{evil}"}}
    (tmp_path / "copy.jsonl").write_text("\n".join([json.dumps(json.loads(first) | kept), *others]))

    assert run_forked("threads", "import", str(tmp_path / "copy.jsonl"), cwd=root).code == 0
    shown = run_forked("threads", "show", "copy", cwd=root).out
    assert not set(evil[:1] + evil[-1]) & set(shown)
    assert [line.split()[0] for line in shown.splitlines()[1:3]] == ["settings", "state"]
