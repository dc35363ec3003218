"""`threads` and `runs`: nested settings, export and import, and lists."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked, run_many
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
        (["history_limit=" + "[" * 100_000], "the thread setting history_limit must be a positive whole number."),
    ],
)
def test_an_invalid_setting_is_refused(project: Callable[..., Path], values: list[str], wrong: str) -> None:
    ended = run_forked("threads", "set", "t", *values, cwd=project())

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {wrong}")


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


def test_an_import_announces_that_it_waits_for_stdin_and_ends_on_ctrl_c(project: Callable[..., Path]) -> None:
    process = start_process(["threads", "import", "-"], project(), stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == "waiting for a thread on stdin\n"

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 130  # with stdin still open
    process.communicate()
