"""Code that a model's tool made is noticed, named, and not loaded before a person has agreed to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do import LinkError, Project, Runtime
from llm_do.files.code_files import CodeFiles
from llm_do.files.code_tree import CodeTree
from llm_do.files.code_watch import watch_code
from llm_do.files.unreviewed import agree, unreviewed_files
from llm_do.linker.linker import check_project
from llm_do.runtime.record.project_variables import file_variables
from tests.cli.cli_processes import run_forked
from tests.support.runs import Answers, carry_out
from tests.support.scripted import call, script


def project_in(root: Path, **keys: Any) -> Path:
    manifest = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent", "team/*.agent"],
        "python_files": ["tools.py", "more/*.py"],
        "toolsets": {"sh": {"type": "shell", "allow": ["make", "make *"]}},
        **keys,
    }
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [sh, dynamic_agents]\n---\nHelp.\n")
    (root / "tools.py").write_text("try:\n    import plugin\nexcept ModuleNotFoundError:\n    pass\nTOOLS = []\n")
    for name in ("more", "team", "build", "made"):
        (root / name).mkdir()
    (root / "team/lead.agent").write_text("---\nname: lead\n---\nLead.\n")
    (root / "more/old.py").write_text("TOOLS = []\n")
    return root


RECIPE = """all:
\techo 'raise SystemExit(3)' > plugin.py
\techo 'raise SystemExit(4)' > more/new.py
\tprintf -- '---\\nname: evil\\n---\\nHarm.\\n' > team/evil.agent
\techo data > build/out.txt
\techo 'x = 1' > build/generated.py
"""


def ran(root: Path, approvals: Any = "approve_all", *calls: Any) -> Any:
    """Run an agent that calls `make`; returns the result and the tool's reply."""
    model = script(*(calls or [call("shell", command="make")]), "done")
    project = Project.load(root)
    runtime = Runtime(project, approvals=approvals, model=model)
    result = carry_out(runtime)
    reply = next(part for part in model.asked[-1].messages[-1].parts if part.part_kind == "tool-return")
    return result, reply.content


def codes(root: Path) -> list[str]:
    return [f"{item.code} {item.file}" for item in check_project(root).diagnostics if item.code.startswith("LD7")]


def test_new_code_of_a_command_is_named_and_not_loaded_before_a_person_accepts_it(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    (root / "Makefile").write_text(RECIPE)
    result, reply = ran(root)
    assert reply["note"].startswith("New code: build/generated.py, more/new.py, plugin.py, team/evil.agent.")
    assert "isn't loaded before `llm-do approvals accept`" in result.warnings[-1].message
    assert codes(root) == ["LD708 more/new.py", "LD708 plugin.py", "LD708 team/evil.agent"]
    project = Project.load(root)
    assert project.registry.agent("evil") is None
    agree(root, ["team/evil.agent"])
    assert codes(root) == ["LD708 more/new.py", "LD708 plugin.py"]
    assert Project.load(root).registry.agent("evil") is not None
    agree(root, ["more/new.py"])
    assert {item.code for item in check_project(root).diagnostics} >= {"LD708", "LD302"}


def test_a_person_who_allows_the_command_has_agreed(tmp_path: Path) -> None:
    root = project_in(tmp_path, toolsets={"sh": {"type": "shell"}})
    (root / "Makefile").write_text("all:\n\tprintf -- '---\\nname: good\\n---\\nHelp.\\n' > team/good.agent\n")
    _, reply = ran(root, Answers(["once"]))
    assert "note" not in reply
    assert unreviewed_files(root) == {}
    assert Project.load(root).registry.agent("good") is not None


SERVER = """
from pathlib import Path
from mcp.server.mcpserver import MCPServer
server = MCPServer("files", log_level="ERROR")

@server.tool()
def save(path: str) -> str:
    Path(path).write_text("raise SystemExit")
    return "saved"

server.run("stdio")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("approvals", "noticed"), [("approve_all", True), (Answers(["once"]), False)])
def test_new_code_of_a_server_is_named_too(tmp_path: Path, approvals: Any, noticed: bool) -> None:
    (tmp_path / "server.txt").write_text(SERVER)
    root = project_in(
        tmp_path, toolsets={"sh": {"type": "mcp", "command": [sys.executable, "server.txt"], "prefix": ""}}
    )
    _, reply = ran(root, approvals, call("save", path="more/new.py"))
    assert reply.startswith("saved")
    assert ("New code: more/new.py." in reply) is noticed
    assert unreviewed_files(root) == ({"more/new.py": "save"} if noticed else {})


def test_what_exists_is_not_new_and_data_is_not_code(tmp_path: Path) -> None:
    root = project_in(tmp_path, data_folders=["build"])
    (root / "Makefile").write_text("all:\n\techo 'x = 1' > build/generated.py; echo y > notes.txt\n")
    _, reply = ran(root)
    assert "note" not in reply
    assert unreviewed_files(root) == {}


def test_a_module_in_a_data_folder_can_not_be_imported(tmp_path: Path) -> None:
    root = project_in(tmp_path, data_folders=["build"])
    (root / "build/evil.py").write_text("raise SystemExit\n")
    (root / "tools.py").write_text("import build.evil\nTOOLS = []\n")
    with pytest.raises(LinkError, match=r"No module named 'build\.evil'"):
        Project.load(root)


def test_new_code_that_is_made_again_stays_unreviewed_and_may_be_changed(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    (root / "Makefile").write_text("all:\n\techo x >> more/new.py\n")
    for lines in (1, 2):
        _, reply = ran(root)
        assert reply["exit_code"] == 0, reply
        assert (root / "more/new.py").read_text() == "x\n" * lines
        assert list(unreviewed_files(root)) == ["more/new.py"]


def test_an_agent_that_is_created_without_a_person_is_loaded_once_accepted(tmp_path: Path) -> None:
    root = project_in(tmp_path, generated_agents_dir="team")
    made = call("agent_create", name="helper", instructions="Help.")
    ran(root, "approve_all", made)
    assert unreviewed_files(root) == {"team/helper.agent": "agent_create"}
    assert Project.load(root).registry.agent("helper") is None
    (root / "team/helper.agent").unlink()
    agree(root, ["team/helper.agent"])
    ran(root, Answers(["once"]), made)
    assert Project.load(root).registry.agent("helper") is not None


def test_a_project_in_a_folder_that_a_command_made_is_not_run(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    (root / "Makefile").write_text("all:\n\tmkdir sub; cp main.agent sub; cat project.json > sub/project.json\n")
    ran(root)
    found = check_project(root / "sub")
    assert [item.code for item in found.diagnostics if item.severity == "error"] == ["LD709"]
    assert found.project is None


@pytest.mark.parametrize(
    ("make", "noticed"),
    [
        ("touch x.py", ["x.py"]),
        ("touch deep/er/x.py", ["deep/er/x.py"]),
        ("touch a.AGENT", ["a.AGENT"]),
        ("mv out lib", ["lib/x.py"]),
        ("ln -s out lib", ["lib"]),
        ("ln -s deep lib", ["lib"]),
        ("ln -s data.txt x.py", ["x.py"]),
        ("cd deep; ln -s loop loop; touch x.py", ["deep/x.py"]),
        ("mkdir env; touch env/pyvenv.cfg env/x.py", ["env"]),
        ("touch x.pth conftest.py .hidden.py", [".hidden.py", "conftest.py", "x.pth"]),
        ("touch out/y.py node_modules/y.py data.txt new.txt", []),
        ("touch agents/a.md agents/a.txt", ["agents/a.md"]),
        ("chmod +x desk.json; touch -d 2001-01-01 old.py", ["desk.json", "old.py"]),
        ("echo more >> old.py", ["old.py"]),
    ],
)
def test_everything_that_the_next_link_would_load_is_noticed(tmp_path: Path, make: str, noticed: list[str]) -> None:
    for name in ("out/x.py", "deep/er/a.txt", "node_modules/a.js", "data.txt", "desk.json", "old.py", "agents/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    code = CodeFiles(tmp_path, tmp_path / "desk.json", patterns=["agents/*.md"], data_folders=["out"])
    watch = watch_code(code)
    watch.begin()
    subprocess.run(make, shell=True, cwd=tmp_path, check=True)
    assert watch.end("test") == noticed
    assert sorted(unreviewed_files(tmp_path)) == noticed


def test_a_tree_is_seen_as_it_is_however_quickly_it_changes(tmp_path: Path) -> None:
    tree = CodeTree(CodeFiles(tmp_path), lambda _: False)
    (tmp_path / "deep").mkdir()
    for number in range(50):
        (tmp_path / f"deep/m{number}.py").touch()
        assert len(tree.scan().code) == number + 1
    (tmp_path / "deep").rename(tmp_path / "other")
    assert all(path.startswith("other/") for path in tree.scan().code)


KILLED = """
import os, signal, sys
from pathlib import Path
from llm_do.files.code_files import CodeFiles
from llm_do.files.code_watch import watch_code
root = Path(sys.argv[1])
watch_code(CodeFiles(root, patterns=["agents/*.md"])).begin()
(root / "agents").mkdir()
(root / "agents/a.md").touch()
(root / "evil.py").touch()
print("made", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.py").touch()
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert sorted(unreviewed_files(tmp_path)) == ["agents/a.md", "evil.py"]
    assert [path.name for path in (tmp_path / ".llm-do").glob("watch-*")] == []
    agree(tmp_path, ["evil.py"])
    assert sorted(unreviewed_files(tmp_path)) == ["agents/a.md"]


def test_while_a_command_runs_others_do_not_load_what_it_makes(tmp_path: Path) -> None:
    watch = watch_code(CodeFiles(tmp_path))
    watch.begin()
    (tmp_path / "evil.py").touch()
    assert list(unreviewed_files(tmp_path)) == ["evil.py"]
    assert watch.end("shell: make") == ["evil.py"]
    assert unreviewed_files(tmp_path) == {"evil.py": "shell: make"}


def test_the_command_line_lists_and_accepts_new_code(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    watch = watch_code(CodeFiles(root))
    watch.begin()
    (root / "more/new.py").write_text("TOOLS = []\n")
    watch.end("shell: make")
    there = ["--project", str(root)]
    listed = run_forked("approvals", "accept", *there)
    assert (listed.code, listed.out) == (0, "more/new.py  (shell: make)\n")
    wrong = run_forked("approvals", "accept", "other.py", *there)
    assert (wrong.code, "no new code is called 'other.py'" in wrong.err) == (2, True)
    accepted = run_forked("approvals", "accept", "./more/new.py", *there)
    assert (accepted.code, accepted.err) == (0, "accepted: more/new.py\n")
    empty = run_forked("approvals", "accept", *there)
    assert (empty.out, "there is no new code to accept" in empty.err) == ("", True)


def test_keys_that_a_command_has_made_are_not_used_before_a_person_accepts_them(tmp_path: Path) -> None:
    """Else a model could have the next run send everything to an account of someone else's."""
    root = project_in(tmp_path)
    (root / "Makefile").write_text("all:\n\techo OPENAI_API_KEY=not-ours > .env\n")
    assert file_variables(root) == {}
    _, reply = ran(root)

    assert ".env" in reply["note"]
    assert list(unreviewed_files(root)) == [".env"]
    assert codes(root) == ["LD708 .env"]
    assert file_variables(root) == {}
    assert "OPENAI_API_KEY" not in Runtime(Project.load(root)).pool.environment

    agree(root, [".env"])
    assert file_variables(root) == {"OPENAI_API_KEY": "not-ours"}
    assert codes(root) == []


def test_keys_of_ones_own_stay_in_use_and_hidden(tmp_path: Path) -> None:
    root = project_in(tmp_path)
    (root / ".env").write_text("OPENAI_API_KEY=ours\n")
    (root / "Makefile").write_text("all:\n\t-cat .env\n\t-echo OPENAI_API_KEY=not-ours > .env\n\t-rm -f .env\n")
    _, reply = ran(root)

    assert "ours" not in reply["stdout"].replace("not-ours", "")
    assert file_variables(root) == {"OPENAI_API_KEY": "ours"}
    assert dict(unreviewed_files(root)) == {}
