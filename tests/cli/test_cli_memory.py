"""`llm-do memory`: what agents remember, shown and deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import Ended, run_forked, run_many
from tests.cli.test_cli_completion import complete

AGENT = "---\nname: main\nmodel: script:answers.yaml\ntoolsets: [memory]\n---\nx\n"
ANSWERS = """\
- tools:
    - {name: remember, args: {text: "Ann \\e[31mlikes tea.", scope: user}}
- tools:
    - {name: remember, args: {text: "Ann likes tea and coffee.\\nmemory 1 of user bob", scope: thread}}
- tools:
    - {name: remember, args: {text: Closed on Mondays., scope: project}}
- text: Noted.
"""


@pytest.fixture
def desk(project: Callable[..., Path]) -> Path:
    """A project in which a run has remembered something in each scope."""
    root = project(ANSWERS, agent=AGENT)
    ended = run_forked(
        "run", "hi", "--user", "ann", "--thread", "t", "--allow", "remember(project)", "--quiet", cwd=root
    )
    assert (ended.code, ended.out) == (0, "Noted.\n"), ended.err
    return root


def rows(ended: Ended) -> list[tuple[str, str]]:
    assert ended.code == 0, ended.err
    return [(each["scope"], each["id"]) for each in json.loads(ended.out)]


def test_memories_are_listed_by_whose_they_are_and_what_they_say(desk: Path) -> None:
    calls = {
        "all": ["list", "--format", "json"],
        "user": ["list", "--user", "ann", "--json"],
        "scope": ["list", "--scope", "project", "--json"],
        "thread": ["list", "--thread", "t", "--json"],
        "nobody": ["list", "--user", "bob"],
        "search": ["list", "--search", "coffee mondays", "--json"],
        "text": ["list"],
        "limited": ["list", "--limit", "1"],
    }
    ended = run_many({name: (["memory", *args], desk, b"") for name, args in calls.items()})

    assert [scope for scope, _ in rows(ended["all"])] == ["project", "thread", "user"]
    assert [scope for scope, _ in rows(ended["user"])] == ["thread", "user"]
    assert [scope for scope, _ in rows(ended["scope"])] == ["project"]
    assert [scope for scope, _ in rows(ended["thread"])] == ["thread"]
    assert sorted(scope for scope, _ in rows(ended["search"])) == ["project", "thread"]
    assert ended["nobody"].out == "nothing is remembered\n"
    lines = ended["text"].out.splitlines()
    assert [line.split("  ")[1].strip() for line in lines] == ["project", "thread t of ann", "user ann"]
    assert "\x1b" not in ended["text"].out
    assert ended["limited"].err.startswith("2 more are not shown; --limit shows more")
    first = json.loads(ended["all"].out)[0]
    assert (first["text"], first["agent_path"], first["user_id"]) == ("Closed on Mondays.", "main", None)


def test_a_memory_is_shown_and_forgotten_by_the_beginning_of_its_id(desk: Path) -> None:
    (_, project), (_, thread), (_, user) = rows(run_forked("memory", "list", "--json", cwd=desk))

    shown = run_forked("memory", "show", thread[:5], cwd=desk)
    assert shown.out.splitlines()[0] == f"memory {thread} of thread t of ann"
    # A line of a text can't pass for another memory.
    assert shown.out.splitlines()[2:] == ["    Ann likes tea and coffee.", "    memory 1 of user bob"]
    assert complete(f"llm-do memory show {user[:3]}", desk) == [user]
    assert run_forked("memory", "forget", project, user, cwd=desk).out.count("\n") == 2
    assert rows(run_forked("memory", "list", "--json", cwd=desk)) == [("thread", thread)]
    assert rows(run_forked("memory", "forget", "--user", "ann", "--all", "--json", cwd=desk)) == [("thread", thread)]
    assert run_forked("memory", "forget", "--all", cwd=desk).out == "nothing is remembered\n"


@pytest.mark.slow
def test_the_same_text_of_two_users_is_two_memories_with_one_id(desk: Path) -> None:
    run_forked("run", "hi", "--user", "bob", cwd=desk)
    (_, id) = rows(run_forked("memory", "list", "--user", "bob", "--json", cwd=desk))[-1]

    assert run_forked("memory", "show", id, cwd=desk).out.count(f"memory {id} of user ") == 2
    refused = run_forked("memory", "forget", id, cwd=desk)
    assert (refused.code, refused.out) == (2, "")
    assert f"error: '{id}' stands for 2 memories: user bob, user ann. Write more of it" in refused.err
    assert rows(run_forked("memory", "forget", id, "--user", "bob", "--json", cwd=desk)) == [("user", id)]
    assert len(rows(run_forked("memory", "list", "--json", cwd=desk))) == 3


def test_deleting_a_thread_forgets_what_is_remembered_for_it(desk: Path) -> None:
    run_forked("threads", "delete", "t", "--user", "ann", cwd=desk)

    assert [scope for scope, _ in rows(run_forked("memory", "list", "--json", cwd=desk))] == ["project", "user"]


WRONG = {
    "show 123456789": "there is no memory 123456789. See `llm-do memory list`",
    "forget 00000 --scope user": "there is no memory 00000 that these options select.",
    "forget": "no memory is named. Name ids, or select memories by --scope",
    "forget --all abc": "--all and ids exclude each other.",
    "list --scope team": "Invalid value for '--scope': 'team' is not one of 'thread', 'user', 'project'.",
    "lst": "Did you mean `list`?",
}


def test_what_can_not_be_done_is_answered_with_what_to_write(desk: Path) -> None:
    ended = run_many({line: (["memory", *line.split(" ")], desk, b"") for line in WRONG})

    for line, text in WRONG.items():
        assert (ended[line].code, ended[line].out) == (2, ""), line
        assert text in ended[line].err, line
    assert len(rows(run_forked("memory", "list", "--json", cwd=desk))) == 3


def test_where_nothing_has_been_recorded_there_is_nothing_to_show(project: Callable[..., Path]) -> None:
    ended = run_forked("memory", "list", cwd=project())

    assert (ended.code, ended.err.startswith("error: nothing has been recorded in ")) == (2, True)
