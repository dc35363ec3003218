"""`llm-do map`: lines of inputs to lines of results; failures, budgets, questions, and what is refused."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import LLM_DO, Ended, environment, run_forked, run_many, write_project

MANIFEST = '{"version": 1, "entry": {"function": "work.py:main"}, "agent_files": ["*.agent"], "python_files": ["*.py"]}'

WORK = """\
from pathlib import Path


async def main(input, ctx):
    word = input.input
    if word.startswith("bad") and not Path("mended").exists():
        raise ValueError(f"no {word[:3]}")
    if word.startswith("pay"):
        return await ctx.call("main", word)
    return {"word": word.upper(), "ü": 1.5}
"""


def lines(*inputs: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in inputs)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a Python entry that fails for some words."""
    answers = """\
    - tools: [{name: send, args: {to: Ada}}]
    - text: done
    """
    return write_project(tmp_path, answers, manifest=MANIFEST, **{"work.py": WORK})


def do(root: Path, *args: str, stdin: bytes = b"") -> Ended:
    return run_forked("map", *args, cwd=root, stdin=stdin)


def statuses(ended: Ended) -> list[str]:
    return [json.loads(line)["status"] for line in ended.out.splitlines()]


def test_an_invalid_input_is_listed_with_the_time_of_its_refusal_and_a_queued_one_without(root: Path) -> None:
    (root / "in.jsonl").write_text(lines("one", {"inputs": "two"}))
    since = time.strftime("%Y-%m-%d")
    assert statuses(do(root, "in.jsonl", "--batch", "b")) == ["completed", "invalid"]
    listed = run_forked("runs", "list", "--status", "invalid", "--since", "1h", cwd=root).out
    assert since <= listed.split()[-4] <= time.strftime("%Y-%m-%d")
    assert listed.endswith(" 0.0 s\n")

    do(root, "in.jsonl", "--batch", "later", "--detach")
    queued = run_forked("runs", "list", "--status", "queued", cwd=root).out
    assert [line.split()[-2:] for line in queued.splitlines()] == [["-", "-"]] * 2


def test_each_line_is_answered_in_order_and_the_same_command_prints_the_same(root: Path) -> None:
    (root / "in.jsonl").write_text('\ufeff"one"\n\n{"input": "grün"}\n', encoding="utf-8")
    first = do(root, "in.jsonl")
    assert first.code == 0
    assert first.out == (
        '{"line": 1, "status": "completed", "output": {"word": "ONE", "ü": 1.5}}\n'
        '{"line": 3, "status": "completed", "output": {"word": "GRÜN", "ü": 1.5}}\n'
    )
    assert "2 inputs in" in first.err
    again = do(root, ".", "in.jsonl", "--quiet")
    assert (again.out, again.err, again.code) == (first.out, "", 0)
    # An entry by name, and stdin, are other batches.
    named = do(root, "main", "-", "--approve-all", stdin=b'"x"\n')
    assert named.out == '{"line": 1, "status": "completed", "output": "done"}\n'
    assert do(root, "--entry", "main", stdin=b'"x"\n').out == named.out
    listed = run_forked("runs", "list", "--format", "json", cwd=root)
    assert len(json.loads(listed.out)) == 3


def test_failures_are_lines_of_their_own_and_run_again_when_asked(root: Path) -> None:
    (root / "in.jsonl").write_text(lines("a", "bad1", {"x": 1}, *(f"bad{n}" for n in range(2, 9))))
    first = do(root, "in.jsonl", "--concurrency", "1")
    assert first.code == 1
    assert statuses(first) == ["completed", "failed", "invalid", *["failed"] * 7]
    line = json.loads(first.out.splitlines()[1])
    assert (line["line"], line["status"], line["error"]["type"]) == (2, "failed", "EntryError")
    assert line["error"]["message"] == "main raised ValueError: no bad"
    assert line["error"]["line"] == 7
    said = first.err.splitlines()
    assert said.count("line 2 failed: main raised ValueError: no bad") == 1
    assert "more failures of this kind are only counted" in said
    assert "10 inputs in" in first.err
    assert "  8 × main raised ValueError: no bad (lines 2, 4, 5, 6, 7, …)" in said
    assert said[-1].startswith("run what has failed again: llm-do map in.jsonl")

    (root / "mended").touch()
    assert do(root, "in.jsonl").out == first.out
    again = do(root, "in.jsonl", "--retry", "failed")
    assert statuses(again) == ["completed", "completed", "invalid", *["completed"] * 7]
    assert again.code == 1


@pytest.mark.slow
def test_a_changed_project_or_file_is_refused_until_that_is_accepted(root: Path) -> None:
    (root / "in.jsonl").write_text(lines("a", "bad1"))
    assert do(root, "in.jsonl", "--batch", "words").code == 1
    (root / "work.py").write_text(WORK.replace('startswith("bad")', 'startswith("worse")'))
    (root / "other.jsonl").write_text(lines("a"))
    ended = run_many(
        {
            "project": (("map", "in.jsonl", "--batch", "words"), root, b""),
            "file": (("map", "other.jsonl", "--batch", "words"), root, b""),
            "entry": (("map", "main", "in.jsonl", "--batch", "words"), root, b""),
            "model": (("map", "in.jsonl", "--batch", "words", "-m", "test"), root, b""),
        }
    )
    assert {each.code for each in ended.values()} == {2}
    assert not any(each.out for each in ended.values())
    assert "what batch words was begun with has changed: work.py. Undo the changes" in ended["project"].err
    assert "other.jsonl has other inputs than batch words was begun with (2 then, 1 now)" in ended["file"].err
    assert "batch words runs the project's entry main, not main" in ended["entry"].err
    assert "has changed: work.py, model" in ended["model"].err
    accepted = do(root, "in.jsonl", "--batch", "words", "--retry", "failed", "--accept-changes")
    assert statuses(accepted) == ["completed", "completed"]


REFUSED = {
    "not json": (["in.jsonl"], b'"a"\n{bad\n', "line 2 is not JSON: Expecting property name"),
    "place": (["in.jsonl"], b'"a"\n{bad\n', "(in.jsonl:2)"),
    "a number": (["in.jsonl"], b"7\n", "line 1 must hold an object or a string, not 7"),
    "no number": (["in.jsonl"], b'{"a": NaN}\n', "NaN is not a JSON value"),
    "twice": (["in.jsonl"], b'{"a": 1, "a": 2}\n', 'the key "a" appears twice'),
    "deep": (["in.jsonl"], b"[" * 100_000 + b"\n", "line 1"),
    "not text": (["in.jsonl"], b'"a"\n"\xff"\n', "line 2 is not UTF-8: byte 0xff"),
    "empty": (["in.jsonl"], b"\n \n", "in.jsonl has no inputs"),
    "missing": (["none.jsonl"], b"", "none.jsonl can't be read: No such file or directory"),
    "endless": (["/dev/zero"], b"", "line 1 is longer than 64 MiB"),
    "a folder": ([".", "."], b"", ". can't be read: Is a directory"),
    "nothing": ([], b"", "there are no inputs"),
    "unknown entry": (["nobody", "in.jsonl"], b'"a"\n', "the project has nothing named 'nobody' to run"),
    "two entries": (["main", "in.jsonl", "--entry", "main"], b'"a"\n', "the entry is named twice"),
    "budget": (["in.jsonl", "--budget-usd", "5"], b'"a"\n', "a budget for all inputs needs one for each"),
    "id": (["in.jsonl", "--batch", "a/b"], b'"a"\n', "'a/b' can't be a batch's id"),
    "unknown batch": (["in.jsonl", "--batch", "q", "--retry", "failed"], b'"a"\n', "there is no batch 'q'"),
}


@pytest.mark.slow
def test_what_cannot_be_mapped_is_said_before_anything_runs(tmp_path: Path) -> None:
    calls: dict[str, Any] = {}
    for name, (args, text, _) in REFUSED.items():
        folder = write_project(tmp_path / name.replace(" ", "-"))
        (folder / "in.jsonl").write_bytes(text)
        calls[name] = (["map", *args], folder, b"")
    for name, ended in run_many(calls).items():
        assert REFUSED[name][2] in " ".join(ended.err.split()), (name, ended.err)
        assert (ended.out, ended.code) == ("", 2), name
        assert "Traceback" not in ended.err


def test_a_project_that_records_nothing_or_takes_no_input_maps_nothing(tmp_path: Path) -> None:
    calls: dict[str, Any] = {}
    for name, setting in {"record": '"record": false', "input": '"allow_cli_input": false'}.items():
        manifest = f'{{"version": 1, "entry": {{"agent": "main"}}, "agent_files": ["*.agent"], {setting}}}'
        folder = write_project(tmp_path / name, manifest=manifest, agent="---\nname: main\nmodel: test\n---\nX.\n")
        calls[name] = (["map", "-"], folder, b'"a"\n')
    ended = run_many(calls)
    assert "nothing is recorded here" in ended["record"].err, ended["record"]
    assert "takes no input from the command line" in ended["input"].err, ended["input"]
    assert {each.code for each in ended.values()} == {2}


@pytest.mark.slow
def test_a_call_that_needs_approval_is_no_question_to_the_terminal(root: Path) -> None:
    ended = do(root, "-", stdin=lines("pay", "b").encode())
    allowed = do(root, "-", "--approve-all", stdin=lines("pay", "c").encode())
    assert ended.code in (1, 5)  # denied, or waiting for a person
    assert statuses(allowed) == ["completed", "completed"]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_command_quietly(root: Path) -> None:
    (root / "in.jsonl").write_text(lines(*(f"w{number}" for number in range(30))))

    process = subprocess.Popen(
        [*LLM_DO, "map", "in.jsonl"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(30) == 141, said
    assert "Traceback" not in said
    assert len(do(root, "in.jsonl").out.splitlines()) == 30


@pytest.mark.slow
def test_runs_of_a_batch_are_listed_with_ids_that_commands_take(root: Path) -> None:
    (root / "in.jsonl").write_text(lines("one", "two", "pay Ada"))
    assert do(root, "in.jsonl", "--batch", "letters-2026").code == 5
    assert do(root, "in.jsonl", "--batch", "letters-2027", "--detach").code == 0
    done = run_forked("runs", "list", "--batch", "letters-2026", cwd=root).out.splitlines()
    ids = [line.split()[0] for line in done]
    assert sorted(ids) == ["letters-2026-1", "letters-2026-2", "letters-2026-3"]
    for id in ids:
        assert run_forked("runs", "show", id, cwd=root).out.startswith(f"run {id}")
    assert run_forked("runs", "list", "--batch", "letters", cwd=root).out == "no runs\n"
    queued = run_forked("runs", "list", "--batch", "letters-2027", "--status", "queued", cwd=root).out
    assert len(queued.splitlines()) == 3
    assert "llm-do resume letters-2026-3" in run_forked("approvals", "pending", cwd=root).err
    assert run_forked("runs", "costs", "--batch", "letters-2026", cwd=root).out.endswith("\n")
