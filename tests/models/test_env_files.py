"""Keys in `.env` files: which are read, how, and where they don't get."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do import ModelUnavailableError, Project, Runtime, UsageError
from llm_do.models.pool import ModelPool
from llm_do.models.providers.env_files import keys_of, read_variables, with_variables
from llm_do.models.providers.provider_models import address_of
from llm_do.runtime.record.project_variables import file_variables
from llm_do.runtime.record.redaction import redactor

FILE = """\ufeff
# keys
export OPENAI_API_KEY=sk-plain # mine
ANTHROPIC_API_KEY = 'sk # quoted'
XAI_API_KEY="sk-\\"double\\""
GROQ_API_KEY=
OPENAI_BASE_URL=http://evil.example/v1
LLM_DO_MODEL=openai:gpt-5
PATH=/evil
not a line
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "XAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "main.agent").write_text("---\nname: main\n---\nHelp.\n")
    (tmp_path / ".env").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_lines_are_read_as_shells_and_other_tools_read_them_and_models_take_keys_alone(project: Path) -> None:
    found = read_variables(project)

    assert found["LLM_DO_MODEL"] == "openai:gpt-5"
    assert keys_of(found) == {
        "OPENAI_API_KEY": "sk-plain",
        "ANTHROPIC_API_KEY": "sk # quoted",
        "XAI_API_KEY": 'sk-"double"',
    }


def test_a_named_file_comes_before_the_projects_and_the_environment_before_both(project: Path) -> None:
    (project / "other").write_text("OPENAI_API_KEY=other\r\n")

    keys = read_variables(project, str(project / "other"))

    assert (keys["OPENAI_API_KEY"], keys["ANTHROPIC_API_KEY"]) == ("other", "sk # quoted")
    assert with_variables({"OPENAI_API_KEY": "own", "XAI_API_KEY": ""}, keys)["OPENAI_API_KEY"] == "own"
    assert with_variables({"XAI_API_KEY": ""}, keys)["XAI_API_KEY"] == 'sk-"double"'


def test_a_named_file_has_to_be_readable_and_the_projects_need_not_be(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    assert read_variables(tmp_path) == {}
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read_variables(tmp_path, str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_variables(tmp_path, str(tmp_path / "binary"))


def test_a_run_uses_the_key_and_nothing_else_sees_it(project: Path) -> None:
    runtime = Runtime(Project.load(project))

    assert runtime.pool.get("openai:gpt-5").base_url.startswith("https://api.openai.com")  # type: ignore[attr-defined]
    assert (runtime.pool.environment.get("OPENAI_BASE_URL"), runtime.pool.environment["PATH"]) == (
        None,
        os.environ["PATH"],
    )
    assert address_of("openai", None, keys=keys_of(read_variables(project))).key == "sk-plain"
    assert "OPENAI_API_KEY" not in os.environ
    assert redactor()('"sk-plain"') == '"[redacted OPENAI_API_KEY]"'


def test_a_runtime_reads_another_file_when_told(project: Path) -> None:
    (project / ".env").unlink()
    (project / "keys").write_text("OPENAI_API_KEY=sk-other-key")

    runtime = Runtime(Project.load(project), env_file=str(project / "keys"))

    assert runtime.pool.environment["OPENAI_API_KEY"] == "sk-other-key"
    with pytest.raises(UsageError, match="env file"):
        Runtime(Project.load(project), env_file="missing")


def test_secrets_of_several_projects_are_redacted_although_their_variables_have_one_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(f"DB_PASSWORD=secret-of-{name}\nREGION=secret-of-none\n")
        file_variables(tmp_path / name)

    hidden = redactor()('"secret-of-one secret-of-two secret-of-none"')

    assert hidden == '"[redacted DB_PASSWORD] [redacted DB_PASSWORD] secret-of-none"'


def test_the_address_of_a_model_has_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", "gateway.example")
    with pytest.raises(ModelUnavailableError) as caught:
        ModelPool().get("openai-chat:m", settings={"base_url": "https://${GATEWAY}/v1"})
    assert "variables aren't filled in here" in str(caught.value.hint)
