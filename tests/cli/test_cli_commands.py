"""`check`, `init`, `models`, `schema`, and `run --dry-run`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do.models.providers.model_names import DEFAULT_MODELS
from llm_do.ui.terminal.text_width import text_width
from tests.cli.cli_processes import Ended, environment, run_forked, run_many
from tests.support.tables import each_row

BROKEN = "---\nname: main\ntols: [send]\n---\nx"
UNUSED = "---\nname: idle\nmodel: test\n---\nx"


def test_check_reports_problems_in_every_format(project: Callable[..., Path], tmp_path: Path) -> None:
    broken = project(agent=BROKEN)
    (tmp_path / "empty").mkdir()
    calls: dict[str, list[str]] = {
        "text": [],
        "json": ["--format", "json"],
        "github": ["--format", "github"],
        "sarif": ["--format", "sarif"],
        "missing": ["nowhere"],
    }

    ended = run_many({name: (["check", *args], broken, b"") for name, args in calls.items()})

    assert {name: one.code for name, one in ended.items()} == {**dict.fromkeys(calls, 3), "missing": 2}
    assert ended["text"].out.startswith("main.agent:3:1: error[")
    assert "  3 | tols: [send]\n    | ^^^^\n" in ended["text"].out
    assert ended["text"].err == "1 error\n"
    assert ended["json"].json["errors"] == 1
    assert ended["json"].json["diagnostics"][0]["line"] == 3
    assert ended["github"].out.startswith("::error file=main.agent,line=3,")
    (result,) = ended["sarif"].json["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert ended["sarif"].err == ""
    assert ended["missing"].err.startswith("error: no project at nowhere")


def test_check_explains_a_code_without_a_project(tmp_path: Path) -> None:
    text, data, unknown = (
        run_forked("check", "--explain", *args, cwd=tmp_path)
        for args in (["ld604"], ["LD604", "--format", "json"], ["LD6"])
    )
    assert (text.code, text.err) == (0, "")
    assert text.out.startswith("LD604: Rule that can't match (warning)\n")
    assert '-"approvals": {"deny": ["writ_file"]}\n' in text.out
    assert data.json["severity"] == "warning"
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("error: there is no diagnostic 'LD6'")


def test_strict_turns_warnings_into_a_failure(project: Callable[..., Path]) -> None:
    root = project(
        idle=UNUSED,
        manifest="""\
        {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent", "idle"], "python_files": ["tools.py"]}
        """,
    )
    (root / "idle").rename(root / "idle.agent")
    (root / "project.json").write_text((root / "project.json").read_text().replace('"idle"', '"idle.agent"'))

    ended = run_many({"plain": (["check"], root, b""), "strict": (["check", "--strict"], root, b"")})

    assert (ended["plain"].code, ended["strict"].code) == (0, 3)
    assert "idle.agent:" in ended["plain"].out
    assert "warning[" in ended["plain"].out


def test_what_a_project_prints_while_linking_goes_to_stderr(project: Callable[..., Path]) -> None:
    root = project()
    (root / "tools.py").write_text("print('imported')\n" + (root / "tools.py").read_text())

    ended = run_forked("check", "--format", "json", cwd=root)

    assert ended.json == {"diagnostics": [], "errors": 0, "warnings": 0}
    assert "imported\n" in ended.err


def test_check_and_schema_import_no_provider(project: Callable[..., Path]) -> None:
    root = project(agent="---\nname: main\nmodel: openai:gpt-5\n---\nx")
    (root / "tools.py").unlink()
    script = (
        "import json, sys\n"
        "from llm_do.cli import app\n"
        "codes = [app.run(['check']), app.run(['schema', 'agent'])]\n"
        "print(json.dumps([codes, [n for n in sys.argv[1:] if n in sys.modules]]), file=sys.stderr)\n"
    )
    names = ["pydantic_ai", "openai", "httpx", "httpx2", "ssl", "asyncio", "rich", "llm_do.runtime.runtime"]

    ended = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=root, env=environment(), capture_output=True, text=True, timeout=60
    )

    assert json.loads(ended.stderr.splitlines()[-1]) == [[0, 0], []]


@pytest.mark.parametrize("kind", ["agent", "project"])
def test_schemas_are_json_schemas(kind: str) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(run_forked("schema", kind).json)


def test_init_writes_a_project_that_runs_and_never_overwrites(tmp_path: Path) -> None:
    made = run_forked("init", "demo", cwd=tmp_path)
    files = {path: path.read_bytes() for path in (tmp_path / "demo").rglob("*") if path.is_file()}
    again = run_forked("init", "demo", cwd=tmp_path)
    ended = run_many(
        {
            "check": (["check", "--strict", "demo"], tmp_path, b""),
            "run": (["run", "demo", "--model", "script:demo/tests/answers.yaml"], tmp_path, b""),
        }
    )

    assert (made.code, again.code) == (0, 2)
    assert set(made.out.splitlines()) == {str(path.relative_to(tmp_path)) for path in files}
    assert again.err.startswith("error: demo has project.json, ")
    assert {".gitignore", ".github/workflows/agents.yml", ".schema/agent.schema.json", "tests/project.test.yaml"} <= {
        path.relative_to(tmp_path / "demo").as_posix() for path in files
    }
    assert {path: path.read_bytes() for path in files} == files
    assert (ended["check"].code, ended["check"].out) == (0, "")
    assert (ended["run"].code, ended["run"].out) == (0, "17 times 23 is 391.\n")


def test_init_names_the_model_that_a_person_has(tmp_path: Path) -> None:
    config = tmp_path / "config" / "llm-do" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "mine"\n[aliases]\nmine = ["openai:gpt-5-mini", "test"]\n')
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    def model_of(folder: str, *options: str, **env: str) -> object:
        ended = run_forked("init", folder, *options, cwd=tmp_path, env=env)
        assert ended.code == 0, ended.err
        return json.loads((tmp_path / folder / "project.json").read_text()).get("model")

    wrong = run_forked("init", "wrong", "-m", "opnai:gpt-5", cwd=tmp_path)

    assert model_of("nothing") is None
    assert model_of("key", OPENAI_API_KEY="k") == f"openai:{DEFAULT_MODELS['openai']}"
    assert model_of("configured", **own, OPENAI_API_KEY="k") == ["openai:gpt-5-mini", "test"]
    assert model_of("named", "-m", "anthropic:claude-haiku-4-5", **own) == "anthropic:claude-haiku-4-5"
    assert wrong.err == "error: the model 'opnai:gpt-5' names an unknown provider. Did you mean `openai:gpt-5`?\n"
    assert not (tmp_path / "wrong").exists()


def test_init_adds_to_a_repository_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("mine\n")

    made = run_many({"root": (["init"], tmp_path, b""), "below": (["init", "below"], tmp_path, b"")})

    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert (tmp_path / ".github" / "workflows" / "agents.yml").is_file()
    assert made["below"].code == 0
    assert (tmp_path / "below" / ".gitignore").is_file()
    assert not (tmp_path / "below" / ".github").exists()


@pytest.mark.slow
def test_the_tests_of_a_new_project_pass(tmp_path: Path) -> None:
    run_forked("init", "demo", cwd=tmp_path)
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "demo",
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    assert tests.returncode == 0, tests.stdout.decode()


def test_init_leaves_existing_files_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "inside").write_text("mine")

    ended = run_many({"beside": (["init"], tmp_path, b""), "inside a file": (["init", "inside"], tmp_path, b"")})

    assert ended["beside"].code == 0
    assert (tmp_path / "README.md").read_text() == "mine"
    assert ended["inside a file"].code == 2
    assert ended["inside a file"].err.startswith("error: ")


def test_models_are_aligned_on_a_terminal_whatever_an_alias_is_called(project: Callable[..., Path]) -> None:
    root = project(manifest='{"version": 1, "entry": {"agent": "main"}, "models": {"速い": "test", "fast": "test"}}')
    lines = run_forked("models", cwd=root).out.splitlines()

    assert {text_width(line.partition("test, by")[0]) for line in lines if "test, by" in line} == {21}


def test_models_lists_available_models_and_why_others_are_not() -> None:
    some = run_forked("models", env={"OPENAI_API_KEY": "k"})
    everything = run_forked("models", "list", "--all")

    assert "\nopenai:NAME\n" in some.out
    assert "anthropic:NAME" not in some.out
    assert some.err.endswith("more can't be used; --all shows why\n")
    assert "ANTHROPIC_API_KEY not set" in everything.out
    assert everything.err == ""


def test_a_dry_run_shows_what_would_run_and_runs_nothing(project: Callable[..., Path]) -> None:
    root = project("- error: {status: 500}")
    calls = {
        "plain": ["hello", "--dry-run"],
        "model": ["hello", "--dry-run", "--model", "main=openai:gpt-5", "--output", "json"],
        "nonsense": ["hello", "--dry-run", "--model", "nonsense:x"],
        "entry": ["--dry-run", "--entry", "send", "--output", "json"],
        "unknown": ["--dry-run", "--entry", "sned"],
    }

    ended = run_many({name: (["run", *args], root, b"") for name, args in calls.items()})

    assert ended["plain"].out.splitlines() == [
        f"project: {root}",
        "entry: agent main",
        'input: {"input": "hello", "attachments": []}',
        f"agent main: model script:{root}/answers.yaml (agent)",
        "  tools: send, shout, fail, stop, sleep, block, spawn",
    ]
    assert ended["model"].json["agents"]["main"]["models"] == ["openai:gpt-5"]
    assert ended["model"].json["agents"]["main"]["origin"] == "override"
    assert ended["nonsense"].code == 7
    assert ended["entry"].json["entry"] == {"kind": "tool", "name": "send"}
    assert (ended["unknown"].code, "Did you mean `send`?" in ended["unknown"].err) == (2, True)


def test_an_invalid_model_name_is_refused_before_anything_runs(project: Callable[..., Path]) -> None:
    root = project("- tools: [{name: shout}]\n- text: done")
    calls = {
        "prefix": ["x", "--model", "opnai:gpt-5"],
        "bare": ["x", "--model", "main=gpt-5", "--output", "json"],
        "agent": ["x", "--model", "mian=openai:gpt-5", "--approve-all"],
        "dry": ["x", "-m", "mian=test", "--dry-run"],
        "rule": ["x", "-m", "test", "--deny", "mian:send"],
    }

    ended: dict[str, Ended] = run_many({name: (["run", *args], root, b"") for name, args in calls.items()})

    assert ended["prefix"].code == 7
    assert ended["prefix"].err == (
        "error: the model 'opnai:gpt-5' names an unknown provider. Did you mean `openai:gpt-5`?\n"
    )
    assert ended["bare"].json["errors"][0]["message"] == "the model 'gpt-5' names no provider"
    assert (ended["agent"].code, ended["agent"].out) == (2, "")
    assert ended["agent"].err == (
        "error: a model is named for 'mian', and the project has no such agent. Did you mean `main`?\n"
    )
    assert (ended["dry"].code, ended["dry"].err) == (2, ended["agent"].err)
    assert ended["rule"].code == 2
    assert ended["rule"].err == (
        "error: --deny mian:send names 'mian', and the project has no such agent. Did you mean `main`?\n"
    )


def test_options_reach_the_run(project: Callable[..., Path]) -> None:
    answers = "- tools: [{name: send, args: {to: ann}}, {name: shout}]\n- text: '{tool}'"
    root = project(answers)
    calls = {
        "allow": ["x", "--allow", "send(to=ann)", "--allow", "shout"],
        "deny": ["x", "--approve-all", "--deny", "s*"],
        "entry": ["--entry", "send", "--field", "to=bob"],
        "agent": ["x", "--agent", "main", "--model", "main=test", "--reject-all"],
        "verbose": ["x", "--approve-all", "-v"],
    }

    ended: dict[str, Ended] = run_many({name: (["run", *args], root, b"") for name, args in calls.items()})

    assert (ended["allow"].code, ended["allow"].out) == (0, "Grüße\n")
    assert "denied" in ended["deny"].out
    assert (ended["entry"].code, ended["entry"].out) == (0, "sent to bob\n")
    assert ended["agent"].code == 0
    lines = ended["verbose"].err.splitlines()
    assert [line for line in lines if line.startswith("main")] == [
        "main: called with x",
        'main > send(to="ann")',
        "main > shout()",
        "main < send: success: sent to ann",
        "main < shout: success: Grüße",
        "main: completed: Grüße",
    ]
    assert lines[-1].startswith("completed: 2 steps, 2 tool calls, ")


@each_row("args", [["run", "--entry", "notes", "hi"], ["run", "--entry", "notes", "hi", "--dry-run"]])
def test_a_toolset_cannot_be_run_and_is_not_proposed(tmp_path: Path, args: list[str]) -> None:
    manifest = {
        "version": 1,
        "entry": {"agent": "main"},
        "agent_files": ["*.agent"],
        "toolsets": {"notes": {"type": "filesystem", "root": "notes"}},
    }
    (tmp_path / "project.json").write_text(json.dumps(manifest))
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: test\ntoolsets: [notes]\n---\nx\n")
    ended = run_forked(*args, cwd=tmp_path)

    said = "the project has nothing named 'notes' to run: that is a toolset, for agents to list. Known names: main."
    assert (ended.code, ended.err) == (2, f"error: {said}\n")
