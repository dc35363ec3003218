"""`${NAME}` in a manifest: from `.env` and `--env-file`, under the environment, for what the manifest names alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from llm_do import LinkError, Project, RunResult, Runtime, UsageError
from llm_do.files.unreviewed import agree, record, unreviewed_files
from llm_do.runtime.tools.watched_projects import watch_of
from llm_do.threads import open_store
from llm_do.toolsets.mcp.listing import list_servers
from tests.cli.cli_processes import run_forked
from tests.support.runs import carry_out
from tests.support.web_server import Page, serve_pages
from tests.toolsets.mcp_support import command

SECRET = "kb-secret-0123456789"


def project_in(root: Path, answers: str, toolsets: dict[str, Any], **manifest: Any) -> Path:
    """A project with one agent that has all the toolsets."""
    root.mkdir(exist_ok=True)
    (root / "main.agent").write_text(
        f"---\nname: main\nmodel: script:answers.yaml\ntoolsets: [{', '.join(toolsets)}]\n---\nHelp.\n"
    )
    (root / "answers.yaml").write_text(answers)
    data = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "toolsets": toolsets, **manifest}
    (root / "project.json").write_text(json.dumps(data))
    return root


def server(**env: str) -> dict[str, Any]:
    return {"type": "mcp", "command": command(), "timeout": 60, "env": env}


def recorded(root: Path) -> bytes:
    """Everything that is kept of a project's runs."""
    return b"".join(path.read_bytes() for path in sorted((root / ".llm-do").rglob("*")) if path.is_file())


def ran(project: Project, **options: Any) -> RunResult:
    result = carry_out(Runtime(project, approvals="approve_all", record=True, **options))
    assert result.status == "completed", result.error
    return result


WHO_AND_PRINTENV = """
- tools: [{name: small_whoami}]
- tools: [{name: shell, args: {command: printenv}}]
- text: done
"""


def test_a_server_gets_what_the_manifest_names_and_commands_and_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KB_TOKEN", raising=False)
    toolsets = {"small": server(TOKEN="${KB_TOKEN}"), "term": {"type": "shell"}}
    root = project_in(tmp_path / "p", WHO_AND_PRINTENV, toolsets)
    (root / ".env").write_text(f"KB_TOKEN={SECRET}\nOTHER_SECRET=other-secret-0123\n")

    result = ran(Project.load(root))

    texts = [str(part.content) for each in result.messages for part in each.parts if part.part_kind == "tool-return"]
    assert texts[0].split()[1:3] == [SECRET, "none"], "the server has what `env` names, and nothing else of the file"
    assert "PATH=" in texts[1]
    assert not any(text in texts[1] for text in (SECRET, "other-secret-0123", "KB_TOKEN", "OTHER_SECRET"))
    kept = recorded(root)
    assert SECRET.encode() not in kept
    assert b"[redacted KB_TOKEN]" in kept


@pytest.mark.slow
def test_the_environment_wins_and_an_empty_variable_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project_in(
        tmp_path / "p",
        "- tools: [{name: small_whoami}]\n- text: done\n",
        {"small": server(TOKEN="${KB_TOKEN}-${KB_NONE:-no}")},
    )
    (root / ".env").write_text("KB_TOKEN=of-the-file\nKB_NONE=\n")
    project = Project.load(root)
    seen: list[str] = []
    for value in ("of-the-environment", ""):
        monkeypatch.setenv("KB_TOKEN", value)
        returned = [part for each in ran(project).messages for part in each.parts if part.part_kind == "tool-return"]
        seen.append(str(returned[0].content).split()[1])

    assert seen == ["of-the-environment-no", "of-the-file-no"]


def test_a_named_file_counts_for_links_runs_and_listings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SITE_LOGIN", raising=False)
    (tmp_path / "named").write_text(f"SITE_LOGIN={SECRET}\n")

    def echo(request: Any) -> Page:
        return Page(request.headers["x-login"].encode())

    with serve_pages({"/echo": echo}) as site:
        api = {
            "type": "http",
            "base_url": f"{site.url}/",
            "private": [f"127.0.0.1:{site.port}"],
            "headers": {"X-Login": "${SITE_LOGIN}"},
            "timeout": 120,
        }
        get = f"- tools: [{{name: http_get, args: {{url: '{site.url}/echo'}}}}]\n- text: done\n"
        root = project_in(tmp_path / "p", get, {"api": api, "small": server(TOKEN="${SITE_LOGIN}")})
        main = (root / "main.agent").read_text()
        (root / "main.agent").write_text(main.replace("[api, small]", "[{api: {prefix: ''}}]"))
        with pytest.raises(LinkError, match="SITE_LOGIN is not set"):
            Project.load(root)
        project = Project.load(root, env_file=str(tmp_path / "named"))
        result = ran(project)
        listed = asyncio.run(list_servers(project))

    assert site.requests[0].headers["x-login"] == SECRET
    assert "[redacted SITE_LOGIN]" in str(result.messages)
    assert SECRET not in str(result.messages)
    assert isinstance(listed["small"][0], list)
    with pytest.raises(UsageError, match="env file"):
        Project.load(root, env_file="missing")


@pytest.mark.slow
def test_check_sees_the_files_as_a_run_does(tmp_path: Path) -> None:
    root = project_in(tmp_path / "p", "- text: done\n", {"small": server(TOKEN="${KB_TOKEN}")})
    (root / "tools.py").write_text("TOOLS = []\n")
    (root / "project.json").write_text(
        json.dumps({**json.loads((root / "project.json").read_text()), "python_files": ["tools.py"]})
    )
    unset = {"KB_TOKEN": None}
    (tmp_path / "named").write_text("KB_TOKEN=x\n")

    assert "LD702" in run_forked("check", cwd=root, env=unset).out
    named = run_forked("check", "--env-file", "../named", cwd=root, env=unset)
    assert (named.code, "LD702" in named.out) == (0, False), named.err
    assert run_forked("run", "hi", "--env-file", "../named", "--no-record", cwd=root, env=unset).out == "done\n"
    assert "env file" in run_forked("check", "--env-file", "missing", cwd=root, env=unset).err

    (root / ".env").write_text("KB_TOKEN=x\n")
    assert "LD702" not in run_forked("check", cwd=root, env=unset).out
    assert ".env" in run_forked("doctor", cwd=root, env=unset).out
    record(root, {".env": "shell: make"})  # a command has made it, and no one has agreed to it
    assert "LD702" in run_forked("check", cwd=root, env=unset).out
    with pytest.raises(LinkError, match="KB_TOKEN is not set"):
        Project.load(root)
    agree(root, [".env"])
    assert "LD702" not in run_forked("check", cwd=root, env=unset).out


def test_the_url_of_a_store_takes_its_password_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    url = "postgresql://app:${DB_PASSWORD}@127.0.0.1:1/runs"
    root = project_in(tmp_path / "p", "- text: done\n", {}, threads={"store": url})
    with pytest.raises(LinkError, match="DB_PASSWORD is not set"):
        Project.load(root)
    (root / ".env").write_text("DB_PASSWORD=a/b-of-the-file\n")

    store = open_store(Project.load(root))

    assert store is open_store(root, "postgresql://app:a%2Fb-of-the-file@127.0.0.1:1/runs")
    assert store is open_store(root, "postgresql://app:${DB_PASSWORD}@${DB_HOST:-127.0.0.1}:1/runs")
    with pytest.raises(UsageError, match=r"`\${my host}` in the store's URL is no reference"):
        open_store(root, "postgresql://app:${DB_PASSWORD}@${my host}/runs")
    project_in(tmp_path / "q", "- text: done\n", {}, threads={"store": "postgresql://${my host}/${DB_NAME:-runs}"})
    with pytest.raises(LinkError, match="no reference to an environment variable") as caught:
        Project.load(tmp_path / "q")
    assert [each.code for each in caught.value.diagnostics if each.severity == "error"] == ["LD711"]


def test_a_file_that_came_with_an_untrusted_folder_does_not_say_where_a_named_store_is(tmp_path: Path) -> None:
    root = project_in(tmp_path / "p", "- text: done\n", {})
    (root / ".env").write_text("RUNS_URL=postgresql://127.0.0.1:1/theirs?connect_timeout=5\n")
    env = {"RUNS_URL": None, "LLM_DO_TRUST": None, "XDG_STATE_HOME": str(tmp_path / "state")}

    ended = run_forked("runs", "list", "--store", "${RUNS_URL}", cwd=root, env=env)

    assert ended.code == 2
    assert "RUNS_URL, which the store's URL refers to, is not set" in ended.err.replace("\n", " ")


def test_a_program_that_the_file_names_is_code_that_commands_can_not_change_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERVER", raising=False)
    small = {"type": "mcp", "command": ["sh", "${SERVER}"]}
    root = project_in(tmp_path / "p", "- text: done\n", {"small": small})
    (root / ".env").write_text("SERVER=start.txt\n")
    (root / "start.txt").write_text("echo ours\n")
    watch = watch_of(Project.load(root))

    watch.begin()
    (root / "start.txt").write_text("echo theirs\n")
    watch.end("shell: make")

    assert list(unreviewed_files(root)) == ["start.txt"]
