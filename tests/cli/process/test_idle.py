from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.cli_processes import run_many


def test_a_pattern_that_cannot_match_is_a_warning_and_the_run_continues(project: Callable[..., Path]) -> None:
    root = project()
    (root / "files").mkdir()
    (root / "files" / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [filesystem_cwd]\n---\nx\n")
    line = ["run", ".", "hello", "--no-record"]
    ended = run_many(
        {
            "typo": ([*line, "--deny", "snd(to=eve)", "--allow", "main:sned"], root, b""),
            "unnamed": ([*line, "--deny", "send(eve)", "--allow", "send(eve)"], root, b""),
            "argument": ([*line, "--deny", "send(too=eve)"], root, b""),
            "right": ([*line, "--deny", "send(to=eve)", "--allow", "*", "--deny", "transfer_to_x"], root, b""),
            "prefix": (
                [
                    *("run", "files", "hello", "--no-record", "--reject-all"),
                    *("--deny", "filesystem_cwd::write_file", "--deny", "main:filesystem_cwd::*"),
                ],
                root,
                b"",
            ),
            "quiet": ([*line, "--deny", "snd", "-q"], root, b""),
        }
    )

    assert [each.code for each in ended.values()] == [0] * 6
    assert ended["typo"].err.splitlines() == [
        "warning: --allow main:sned can't match: no agent has such a tool; did you mean `send`?",
        "warning: --deny snd(to=eve) can't match: no agent has such a tool; did you mean `send`?",
    ]
    assert ended["prefix"].err.splitlines() == [
        "warning: --deny filesystem_cwd::write_file can't match: the tool is called `write_file` there.",
        "warning: --deny main:filesystem_cwd::* can't match: no tool has that name; `filesystem_cwd` is a toolset, "
        "and rules name its tools: `read_file`, `list_files`, `search_files`, `write_file`, `edit_file`, ...",
    ]
    assert ended["unnamed"].err.splitlines() == [
        "warning: --allow send(eve) can't match: `send` has no primary argument; write `send(to=...)`; its "
        "arguments are to, text.",
    ]
    assert ended["argument"].err.splitlines() == [
        "warning: --deny send(too=eve) can't match: `too` is no argument of `send`; did you mean `to`?",
    ]
    assert (ended["right"].err, ended["quiet"].err) == ("", "")
