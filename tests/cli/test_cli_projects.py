"""`init` and `doctor`, the first commands that people use."""

from __future__ import annotations

import json
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from llm_do import Project
from llm_do.cli.actions.project_templates import TEMPLATES
from tests.cli.cli_processes import run_many
from tests.cli.cli_terminal import Screen


@pytest.mark.slow
def test_every_template_passes_check_and_its_own_test(tmp_path: Path) -> None:
    calls = {name: (["init", name, "--template", name], tmp_path, b"") for name in TEMPLATES}
    made = run_many(calls)
    checked = run_many({name: (["check", name, "--strict"], tmp_path, b"") for name in TEMPLATES})

    assert {name: ended.code for name, ended in made.items()} == dict.fromkeys(TEMPLATES, 0)
    assert {name: ended.out + ended.err for name, ended in checked.items()} == {
        name: f"{name}\nno errors\n" for name in TEMPLATES
    }
    for name in TEMPLATES:
        tests = runpy.run_path(str(tmp_path / name / "tests" / "test_project.py"))
        found = [function for key, function in tests.items() if key.startswith("test_")]
        assert found
        for function in found:
            function()


def test_what_the_first_template_suggests_works(tmp_path: Path) -> None:
    for name, text in TEMPLATES["agent"].files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("NAME", '"new"').replace("MODEL", ""), encoding="utf-8")
    agent, skill = tmp_path / "main.agent", tmp_path / "skills" / "sums" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: sums\ndescription: How to add.\n---\nAdd.\n", encoding="utf-8")
    suggested = agent.read_text(encoding="utf-8").replace("# toolsets:", "toolsets:").replace("# skills:", "skills:")
    agent.write_text(suggested, encoding="utf-8")

    project = Project.load(tmp_path)
    spec = project.registry.agent("main")

    assert not project.warnings
    assert spec is not None
    assert {"http", "memory", "filesystem_project", "skills"} == {getattr(each, "name", each) for each in spec.toolsets}


def test_init_asks_for_a_template_only_on_a_terminal(tmp_path: Path) -> None:
    screen = Screen(["init", "chosen"], tmp_path)
    screen.wait("which one? [agent] ")
    screen.type("toolkit\n")
    assert screen.end() == 0
    screen.close()
    piped = run_many({"piped": (["init", "piped"], tmp_path, b"toolkit\n")})["piped"]

    assert (tmp_path / "chosen" / "desk.py").exists()
    assert (tmp_path / "piped" / "tools.py").exists()
    assert "which" not in piped.err


def test_init_refuses_a_folder_with_a_project_before_it_asks(tmp_path: Path) -> None:
    (tmp_path / "project.json").write_text("{}")
    screen = Screen(["init"], tmp_path)
    assert screen.end() == 2
    screen.close()

    assert "which one?" not in screen.raw
    assert "error: . has project.json already, and nothing was written." in screen.raw


def test_doctor_reports_what_it_finds_and_never_shows_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llm_do.ui.reports.checkup import checkup, checkup_lines

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / "main.agent").write_text("---\nname: main\n---\n")
    (tmp_path / ".llm-do").mkdir()
    (tmp_path / ".llm-do" / "state.db").write_text("no database" * 100)

    found = {check.name: check for check in checkup(tmp_path)}

    assert "OPENAI_API_KEY" in found["keys"].found
    assert "sk-secret" not in "\n".join(checkup_lines(list(found.values()), 40))
    assert found["terminal"].status == "note"
    assert (found["state.db"].status, found["clock"].status) == ("bad", "ok")
    assert {"python", "extra local", "extra otel", "sandbox", "locale", "store", "local model"} <= set(found)


@pytest.mark.parametrize("name", ["what?mode=rw", "a#b", "100%41", "ünder"])
def test_doctor_finds_the_store_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    from llm_do.ui.reports.checkup import checkup

    folder = tmp_path / name / ".llm-do"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "state.db")) as store:
        store.execute("CREATE TABLE t (x)")
        store.commit()

    found = next(check for check in checkup(tmp_path / name) if check.name == "state.db")

    assert (found.status, found.found[-5:]) == ("ok", "sound")


def test_doctor_never_breaks_a_path_and_prints_one_line_per_check_into_a_pipe() -> None:
    from llm_do.ui.reports.checkup import Check, checkup_lines

    checks = [Check("project", "ok", f"{'/folder' * 20} and more words than fit into forty columns")]

    assert len(list(checkup_lines(checks))) == 1
    broken = list(checkup_lines(checks, 40))
    assert f"{'':8}{'/folder' * 20}" in broken
    assert [line for line in broken if len(line) >= 40 and "/" not in line] == []


def test_doctor_reports_an_invalid_model_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llm_do.ui.reports.checkup import checkup

    monkeypatch.setenv("LLM_DO_MODEL", "opnai:gpt-5")

    found = next(check for check in checkup(tmp_path) if check.name == "LLM_DO_MODEL")

    assert (found.status, found.hint) == ("note", "Did you mean `openai:gpt-5`?")
    assert found.found.startswith("opnai:gpt-5 names an unknown provider")


def test_doctor_looks_for_the_programs_of_servers_and_starts_none(tmp_path: Path) -> None:
    from llm_do.ui.reports.checkup import checkup

    server = tmp_path / "server"
    server.write_text("#!/bin/sh\ntouch started\n")
    server.chmod(0o755)
    servers = {
        "own": {"type": "mcp", "command": ["./server"]},
        "none": {"type": "mcp", "command": ["no-such-program-of-a-server"]},
        "web": {"type": "mcp", "url": "http://127.0.0.1:9/mcp"},
        "docs": {"type": "filesystem"},
    }
    manifest = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "toolsets": servers}
    (tmp_path / "project.json").write_text(json.dumps(manifest))

    found = {check.name: (check.status, check.found) for check in checkup(tmp_path) if check.name.startswith("server")}

    assert found == {
        "server own": ("ok", f"{server} (not started)"),
        "server none": ("note", "there is no program 'no-such-program-of-a-server'"),
        "server web": ("ok", "http://127.0.0.1:9/mcp (not contacted)"),
    }
    assert not (tmp_path / "started").exists()


def test_doctor_prints_json_and_exits_with_one_when_something_is_broken(tmp_path: Path) -> None:
    (tmp_path / "project.json").write_text("{}")
    well = run_many({"x": (["doctor", "--json"], tmp_path, b"")})["x"]
    (tmp_path / ".llm-do").mkdir(exist_ok=True)
    (tmp_path / ".llm-do" / "state.db").write_text("no database" * 100)
    ill = run_many({"x": (["doctor", "--json"], tmp_path, b"")})["x"]

    assert (well.code, json.loads(well.out)["ok"]) == (0, True)
    assert (ill.code, json.loads(ill.out)["ok"]) == (1, False)
