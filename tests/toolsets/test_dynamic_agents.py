"""Agents that create agents: files that pass the project's checks, with no more permissions than their creator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do import AgentSpec, Project, Runtime
from llm_do.formats.agent_file import parse_agent
from llm_do.project.agent_spec import ToolsetRef
from llm_do.toolsets.dynamic_agents import agent_file_text
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, carry_out, project_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def delete_everything() -> str:
    """Delete everything."""
    return "deleted"


def runtime(root: Path, *turns: Any, approvals: Any = "approve_all", **fields: Any) -> Runtime:
    spec = agent(
        "main",
        script(*turns, "done"),
        tools=["add"],
        toolsets=["dynamic_agents", "todo", ToolsetRef("filesystem_project", "files", include=("read_*",)), "helper"],
        **fields,
    )
    helper = agent("helper", script("helped"))
    (root / "made").mkdir()
    project = project_of(
        [spec, helper],
        root=root,
        tools={"add": add, "delete_everything": delete_everything},
        generated_agents_dir=root / "made",
    )
    return Runtime(project, approvals=approvals, models={"critic": "test"})


CRITIC: dict[str, Any] = {"name": "critic", "instructions": "Judge the text.", "model": "test"}


def results(runtime: Runtime) -> list[tuple[str, str]]:
    result = carry_out(runtime)
    assert result.status == "completed", result.error
    strict(result.messages)
    return [(outcome, text) for _, outcome, text in results_of(result.messages)]


def test_a_created_agent_is_a_file_and_can_be_called(tmp_path: Path) -> None:
    made = call(
        "agent_create", CRITIC | {"description": "Judges: well.", "tools": ["add"], "toolsets": ["files", "todo"][1:]}
    )
    outcomes = results(runtime(tmp_path, made, call("agent_call", name="critic", input="A text.")))
    assert outcomes[0] == ("success", "Created the agent critic; it is in made/critic.agent")
    assert outcomes[1][0] == "success"
    assert "add" in outcomes[1][1]
    parsed = parse_agent((tmp_path / "made/critic.agent").read_text(), "critic.agent")
    assert not parsed.diagnostics
    assert parsed.value.description == "Judges: well."
    assert parsed.body == "Judge the text."


def test_a_created_agent_is_given_files_as_projects_of_0_3_do(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the notes")
    outcomes = results(
        runtime(
            tmp_path,
            call("agent_create", CRITIC),
            call("agent_call", agent="critic", input="Judge.", attachments=["notes.txt"]),
            call("agent_call", agent="critic", input="Judge.", attachments=["../secret"]),
        )
    )
    assert [outcome for outcome, _ in outcomes] == ["success", "success", "failed"]
    assert "outside the root folder" in outcomes[2][1]


def test_creating_an_agent_needs_approval_and_shows_the_file(tmp_path: Path) -> None:
    person = Answers(["deny"])
    outcomes = results(runtime(tmp_path, call("agent_create", CRITIC | {"tools": ["add"]}), approvals=person))
    assert person.asked[0].description == "Create the agent critic, with tools add"
    assert outcomes[0][0] == "denied"
    assert list((tmp_path / "made").iterdir()) == []


def test_calling_a_created_agent_needs_no_approval(tmp_path: Path) -> None:
    person = Answers(["once"])
    outcomes = results(
        runtime(tmp_path, call("agent_create", CRITIC), call("agent_call", name="critic", input="x"), approvals=person)
    )
    assert [asked.tool_name for asked in person.asked] == ["agent_create"]
    assert outcomes[1][0] == "success"


def test_creating_the_same_name_again_replaces_the_agent(tmp_path: Path) -> None:
    outcomes = results(
        runtime(
            tmp_path,
            call("agent_create", CRITIC),
            call("agent_create", CRITIC | {"instructions": "Judge harder."}),
            call("agent_call", name="critic", input="x"),
        )
    )
    assert outcomes[1] == ("success", "Replaced the agent critic; it is in made/critic.agent")
    assert (tmp_path / "made/critic.agent").read_text().endswith("Judge harder.\n")
    assert outcomes[2][0] == "success"


def test_of_two_agents_created_in_one_response_the_later_wins(tmp_path: Path) -> None:
    session = runtime(
        tmp_path, [call("agent_create", CRITIC | {"instructions": f"Judge as {n}."}, f"c{n}") for n in range(5)]
    )
    outcomes = results(session)
    assert [text.split()[0] for _, text in outcomes] == ["Created", *["Replaced"] * 4]
    assert (tmp_path / "made/critic.agent").read_text().endswith("Judge as 4.\n")
    assert session.registry.agent("critic").instructions == "Judge as 4."  # type: ignore[union-attr]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tools": ["delete_everything"]}, "you have no tool 'delete_everything' to pass on. Your tools: add."),
        ({"tools": ["missing"]}, "you have no tool 'missing'"),
        ({"toolsets": ["shell_readonly"]}, "you have no toolset 'shell_readonly' to pass on"),
        ({"toolsets": ["filesystem_project_ro"]}, "you have no toolset"),
        ({"toolsets": ["main"]}, "you have no toolset 'main'"),
        ({"name": "main"}, "already the name of the project's own agent"),
        ({"name": "helper"}, "already the name of the project's own agent"),
        ({"name": "add"}, "already the name of the project's own tool"),
        ({"name": "todo"}, "todo"),
        ({"name": "../evil"}, "can't be an agent's name"),
        ({"name": "a b"}, "can't be an agent's name"),
        ({"name": "1st"}, "starting with a letter or _"),
        ({"name": ""}, "can't be an agent's name"),
        ({"name": "x" * 65}, "can't be an agent's name"),
        ({"name": "MAIN"}, "differs from the name 'main' by its case only"),
        ({"name": "Helper"}, "differs from the name 'helper' by its case only"),
        ({"name": "ADD"}, "differs from the name 'add' by its case only"),
        ({"model": "no such model"}, "the project names no model 'no such model' that you could choose"),
        ({"model": "a: b\ntools: [delete_everything]"}, "the project names no model"),
        ({"model": "openai:o1-pro"}, "choose one of these: test"),
        ({"model": "script:/etc/passwd"}, "the project names no model 'script:/etc/passwd'"),
    ],
)
def test_an_agent_that_exceeds_its_creator_is_not_created(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    ((outcome, text),) = results(runtime(tmp_path, call("agent_create", CRITIC | change)))
    assert outcome == "failed"
    assert why in text
    assert list((tmp_path / "made").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made"]


def test_a_created_agent_can_have_the_models_that_the_project_names_but_never_a_script(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "secret.txt").write_text("- text: the secret\n")
    wanted = ("local", "openai:gpt-5-mini", "test", "openai:o1-pro", "script:secret.txt", "script", "Test")
    main = agent(
        "main",
        script(
            [call("agent_create", CRITIC | {"name": f"c{n}", "model": name}, f"c{n}") for n, name in enumerate(wanted)],
            "done",
        ),
        toolsets=["dynamic_agents"],
    )
    others = [agent("reader", ["local", "script:secret.txt"]), agent("writer", "test")]
    project = project_of(
        [main, *others], root=tmp_path, generated_agents_dir=tmp_path / "made", model="openai:gpt-5-mini"
    )
    outcomes = results(Runtime(project, approvals="approve_all", models={"writer": "script:secret.txt"}))
    assert [outcome for outcome, _ in outcomes] == ["success"] * 3 + ["failed"] * 4
    assert "choose one of these: openai:gpt-5-mini, local, test" in outcomes[3][1]


def test_an_agents_name_differs_from_those_in_the_folder_by_more_than_its_case(tmp_path: Path) -> None:
    made = [call("agent_create", CRITIC | {"name": name}, name) for name in ("critic", "Critic", "CRITIC", "critic2")]
    outcomes = results(runtime(tmp_path, made))
    assert [outcome for outcome, _ in outcomes] == ["success", "failed", "failed", "success"]
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["critic.agent", "critic2.agent"]


def test_a_created_agents_toolset_is_as_narrow_as_its_creators(tmp_path: Path) -> None:
    session = runtime(tmp_path, call("agent_create", CRITIC | {"toolsets": ["filesystem_project"]}))
    assert results(session)[0][0] == "success"
    made = session.registry.agent("critic")
    assert made is not None
    assert [(ref.name, ref.prefix, ref.include) for ref in made.toolsets] == [
        ("filesystem_project", "files", ("read_*",))
    ]


@pytest.mark.parametrize("name", ["helper", "main", "unknown", "add"])
def test_agent_call_reaches_only_created_agents(tmp_path: Path, name: str) -> None:
    ((outcome, text),) = results(runtime(tmp_path, call("agent_call", name=name, input="x")))
    assert outcome == "failed"
    assert "no created agent is called" in text


def test_an_agent_with_fewer_permissions_cannot_call_anothers_creation(tmp_path: Path) -> None:
    session = runtime(tmp_path, call("agent_create", CRITIC | {"tools": ["add"]}))
    assert results(session)[0][0] == "success"
    poor = AgentSpec(
        "poor", model=script(call("agent_call", name="critic", input="x"), "done"), toolsets=["dynamic_agents"]
    )
    session.register_agents({"poor": poor})
    result = carry_out(session, entry="poor")
    ((_, outcome, text),) = results_of(result.messages)
    assert (outcome, "permissions that you don't have: add" in text) == ("failed", True)


def test_an_agent_whose_tools_depend_on_states_cannot_pass_them_on(tmp_path: Path) -> None:
    from llm_do.project.gates import Gate

    session = runtime(tmp_path, call("agent_create", CRITIC | {"tools": ["add"]}), states={"add": Gate()})
    assert "depend on your states" in results(session)[0][1]


def test_without_a_configured_folder_no_agents_are_created(tmp_path: Path) -> None:
    spec = agent("main", script(call("agent_create", CRITIC), "done"), toolsets=["dynamic_agents"])
    outcomes = results(Runtime(project_of([spec], root=tmp_path), approvals="approve_all"))
    assert "no `generated_agents_dir`" in outcomes[0][1]


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("kept")
    root = tmp_path / "project"
    root.mkdir()
    session = runtime(root, call("agent_create", CRITIC))
    (root / "made" / "critic.agent").symlink_to(outside)
    results(session)
    assert outside.read_text() == "kept"


def test_a_created_agent_is_available_in_the_next_session(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [dynamic_agents, todo]\n---\nGo.\n")
    (tmp_path / "made").mkdir()
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent", "made/*.agent"],'
        ' "generated_agents_dir": "made"}'
    )
    (tmp_path / "made" / "critic.agent").write_text(agent_file_text("critic", "Judge.", None, "test", [], []))
    project = Project.load(tmp_path)
    spec = agent("again", script(call("agent_call", name="critic", input="x"), "done"), toolsets=["dynamic_agents"])
    session = Runtime(project, approvals="prompt")
    session.register_agents({"again": spec})
    result = carry_out(session, entry="again")
    assert results_of(result.messages)[0][1] == "success"


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60),
)
def test_any_text_survives_being_written_as_an_agent_file(description: str, instructions: str) -> None:
    text = agent_file_text("a", instructions, description, None, ["x", "no"], [ToolsetRef("t", "on", ("a*",))])
    parsed = parse_agent(text, "a.agent")
    assert {item.code for item in parsed.diagnostics} <= {"LD109"}, text  # a warning of characters that can't be seen
    assert parsed.value.description == description
    assert parsed.body == instructions.rstrip()
    assert parsed.value.tools == ["x", "no"]
    assert parsed.value.toolset_uses()[0][1].include == ["a*"]


def test_no_one_is_asked_about_a_call_of_an_agent_that_does_not_exist(tmp_path: Path) -> None:
    person = Answers(["once"])
    outcomes = results(runtime(tmp_path, call("agent_call", agent="absent", input="x"), approvals=person))

    assert person.asked == []
    assert outcomes == [("failed", "no created agent is called 'absent'. Create it with agent_create first.")]


def test_an_agent_may_be_created_and_called_in_one_response(tmp_path: Path) -> None:
    person = Answers(["once", "once"])
    both = [call("agent_create", CRITIC, "c1"), call("agent_call", {"agent": "critic", "input": "x"}, "c2")]
    carry_out(runtime(tmp_path, both, approvals=person))

    assert len(person.asked) >= 1
    assert (tmp_path / "made/critic.agent").exists()
