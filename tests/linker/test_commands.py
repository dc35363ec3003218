"""`check`, `graph`, `tools` and `schema` as commands: what they print, how they end, and what they import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llm_do.formats.editor_schema import agent_schema, cases_schema, project_schema
from llm_do.ui.reports.graph_languages import dot, mermaid
from llm_do.ui.reports.project_graph import permissions
from tests.cli.cli_processes import run, run_forked
from tests.linker.conftest import Make, agent, manifest

AGENTS = {
    "project.json": manifest(approvals={"deny": ["write_file(secret/**)"]}, runtime={"max_depth": 5}),
    "main.agent": agent("main", "toolsets: [filesystem_project, main]"),
}
TOOLS = '''
def search(query: str, limit: int = 10) -> str:
    """Search the web.

    Args:
        query: What to look for.
        limit: How many to give.
    """
    return query
TOOLS = [search]
'''
PYTHON = {
    "project.json": manifest(python_files=["tools.py"]),
    "main.agent": agent("main", "tools: [search]\nserver_side_tools: [{tool_type: web_search}]"),
    "tools.py": TOOLS,
}


@pytest.mark.slow
def test_a_hanging_project_is_still_checked(make: Make) -> None:
    main = agent("main", "tools: [search]\nmodle: x")
    root = make({**PYTHON, "tools.py": f"import time\ntime.sleep(1000)\n{TOOLS}", "main.agent": main})
    done = run("check", "--import-timeout", "1", "--format", "json", cwd=root)
    assert done.code == 3
    found = done.json
    assert [(item["code"], item["file"], item["line"]) for item in found["diagnostics"]] == [
        ("LD120", "main.agent", 4),
        ("LD310", "tools.py", 2),
    ]


@pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 3)])
def test_warnings_fail_a_strict_check(make: Make, strict: list[str], code: int) -> None:
    root = make({**AGENTS, "project.json": manifest(approvals={"allow": ["*"]}, runtime={"max_depth": 5})})
    done = run_forked("check", "--format", "github", *strict, cwd=root)
    assert done.code == code
    assert done.out.startswith("::warning file=project.json,line=1,endLine=1,col=")


def test_a_project_is_shown_with_its_manifests_name_and_description(make: Make) -> None:
    named = manifest(name='The "desk"', description="Answers\nquestions.\u202e")
    root = make({**AGENTS, "project.json": named, "main.agent": agent("main", "model: test")})
    title = 'The "desk": Answers questions.\\u202e'
    done = run_forked("check", cwd=root)
    assert (done.out, done.err) == ("", f"{title}\nno errors\n")
    assert run_forked("graph", cwd=root).out == f"{title}\nmain  test\n"
    data = run_forked("graph", "--format", "json", cwd=root).json
    assert (data["name"], data["description"]) == ('The "desk"', "Answers\nquestions.\u202e")
    assert run_forked("run", "hello", cwd=root).code == 0
    listed = run_forked("runs", "list", cwd=root)
    assert (listed.err, listed.out.count("\n")) == (f"{title}\n", 1)
    assert permissions(data).splitlines()[0] == title
    assert mermaid(data).splitlines()[1].startswith('title: "The \\"desk\\": Answers')
    assert '  label="The \\"desk\\": Answers' in dot(data)


def test_graph_prints_text_and_json(make: Make) -> None:
    root = make(AGENTS)
    assert run_forked("graph", cwd=root).out.splitlines()[:2] == ["main", "├─ read_file  allow  filesystem_project"]
    assert "deny   for write_file(secret/**)  project.json:1" in run_forked("graph", "--permissions", cwd=root).out
    data = run_forked("graph", "--format", "json", cwd=root).json
    assert data["entry"] == {"kind": "agent", "name": "main"}
    assert mermaid(data).startswith("flowchart LR\n")
    assert dot(data).startswith("digraph project {\n")


def test_graph_reports_why_a_project_does_not_link(make: Make) -> None:
    done = run_forked("graph", cwd=make({"main.agent": agent("main", "tools: [add]")}))
    assert (done.code, done.out) == (3, "")
    assert "LD201" in done.err


def test_tools_are_listed_with_their_schemas(make: Make) -> None:
    root = make(PYTHON)
    assert run_forked("tools", cwd=root).out == (
        "main\n"
        "  search(query: string, limit: integer = 10)  [function]\n"
        "      Search the web.\n"
        "      query: What to look for.\n"
        "      limit: How many to give.\n"
        "  web_search: run by the provider\n"
    )


def test_tools_of_one_agent_are_listed_as_json(make: Make) -> None:
    root = make(AGENTS)
    (listed,) = run_forked("tools", "main", "--format", "json", cwd=root).json["agents"]
    assert listed["tools"][0]["name"] == "read_file"
    assert listed["tools"][0]["parameters"]["required"] == ["path"]
    done = run_forked("tools", "mian", cwd=root)
    assert done.code == 2
    assert "Did you mean `main`?" in done.err


def test_the_schema_of_agents_is_printed() -> None:
    assert run_forked("schema", "agent").json == agent_schema()


def test_the_schema_of_tests_is_printed() -> None:
    assert run_forked("schema", "tests").json == cases_schema()


def test_a_fault_in_a_test_file_is_found_by_check_alone(make: Make) -> None:
    root = make({"main.agent": agent("main"), "tools.py": "", "tests/a.test.yaml": "tests:\n  - nmae: greets\n"})
    done = run_forked("check", cwd=root)
    assert done.code == 3
    assert "tests/a.test.yaml:2:5: error[LD120]: unknown key `nmae` in `tests[0]`" in done.out
    assert run_forked("graph", cwd=root).code == 0


def test_the_schema_of_manifests_is_printed() -> None:
    assert run_forked("schema", "project").json == project_schema()


@pytest.mark.slow
def test_inspecting_agents_without_code_does_not_import_pydantic_ai(make: Make) -> None:
    root = make(AGENTS)
    code = f"""
import sys
from pathlib import Path
from llm_do.linker.subprocess_check import check_in_subprocess
found = check_in_subprocess(Path({str(root)!r}), "llm_do.ui.reports.project_graph:graph_data")
assert found.data["entry"]["name"] == "main"
print([name for name in ("pydantic_ai", "openai", "jsonschema") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
