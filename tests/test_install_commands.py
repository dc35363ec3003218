"""The command that installs an extra fits the way in which llm-do itself was installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do._extras import install_command

METADATA = """\
Metadata-Version: 2.4
Name: llm-do
Version: 9.9
Requires-Dist: pydantic
Provides-Extra: mcp
Requires-Dist: fastmcp-slim<5,>=4.2.3; extra == 'mcp'
Requires-Dist: mcp<3,>=2.3; (python_version >= '3.11') and extra == 'mcp'
Provides-Extra: all
Requires-Dist: llm-do[mcp]; extra == 'all'
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install llm-do into an environment, as far as its metadata goes; returns the environment."""

    def make(origin: dict[str, Any] | None = None, installer: str = "pip", *, active: bool = True) -> Path:
        env = tmp_path / "env"
        info = env / "lib" / "llm_do-9.9.dist-info"
        for folder in (info, env / "bin", tmp_path / "elsewhere"):
            folder.mkdir(parents=True)
        (info / "METADATA").write_text(METADATA)
        (info / "INSTALLER").write_text(f"{installer}\n")
        if origin is not None:
            (info / "direct_url.json").write_text(json.dumps(origin))
        for program in ("python", "pip"):
            (env / "bin" / program).write_text("")
            (env / "bin" / program).chmod(0o755)
        monkeypatch.syspath_prepend(info.parent)
        monkeypatch.setattr(sys, "executable", str(env / "bin" / "python"))
        monkeypatch.setattr(sys, "prefix", str(env))
        monkeypatch.setenv("PATH", str(env / "bin") if active else str(tmp_path / "elsewhere"))
        monkeypatch.setenv("VIRTUAL_ENV", str(env) if active else "")
        monkeypatch.chdir(tmp_path / "elsewhere")
        return env

    return make


def test_an_installation_from_an_index_gets_the_extra_from_there(install: Install) -> None:
    install()

    assert install_command("mcp") == "pip install 'llm-do[mcp]'"
    assert install_command(package="pydantic-ai-slim[groq]") == "pip install 'pydantic-ai-slim[groq]'"


def test_another_environment_than_the_active_one_is_named(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    env = install(active=False)

    assert install_command("mcp") == f"{env}/bin/python -m pip install 'llm-do[mcp]'"
    monkeypatch.chdir(env.parent)
    assert install_command("mcp") == "env/bin/python -m pip install 'llm-do[mcp]'"


@pytest.mark.parametrize(("editable", "option"), [(True, "-e "), (False, "")])
def test_an_installation_from_a_folder_names_it(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool, option: str
) -> None:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    install({"url": folder.as_uri(), "dir_info": {"editable": editable}})

    assert install_command("mcp") == f"pip install {option}'{folder}[mcp]'"
    monkeypatch.chdir(folder)
    assert install_command("mcp") == f"pip install {option}'.[mcp]'"


def test_of_a_folder_that_is_gone_the_packages_of_the_extra_are_named(install: Install, tmp_path: Path) -> None:
    install({"url": (tmp_path / "gone").as_uri(), "dir_info": {}})

    assert install_command("mcp") == "pip install 'fastmcp-slim<5,>=4.2.3' 'mcp<3,>=2.3'"


def test_a_repository_and_a_file_are_named_with_the_extra(install: Install, tmp_path: Path) -> None:
    env = install({"url": "https://example.org/llm-do.git", "vcs_info": {"vcs": "git", "commit_id": "abc123"}})
    assert install_command("mcp") == "pip install 'llm-do[mcp] @ git+https://example.org/llm-do.git@abc123'"

    wheel = tmp_path / "llm_do-9.9-py3-none-any.whl"
    wheel.write_bytes(b"")
    origin = {"url": wheel.as_uri(), "archive_info": {}}
    (env / "lib" / "llm_do-9.9.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    assert install_command("mcp") == f"pip install 'llm-do[mcp] @ {wheel.as_uri()}'"


def test_what_uv_has_installed_is_extended_with_uv(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    env = install(installer="uv")

    assert install_command("mcp") == "uv pip install 'llm-do[mcp]'"
    monkeypatch.delenv("VIRTUAL_ENV")
    assert install_command("mcp") == f"uv pip install --python {env}/bin/python 'llm-do[mcp]'"


@pytest.mark.parametrize(
    ("file", "extra", "other"),
    [
        ("pipx_metadata.json", "pipx install --force", "pipx inject llm-do"),
        ("uv-receipt.toml", "uv tool install --force", "uv tool install llm-do --with"),
    ],
)
def test_an_environment_of_a_tool_is_made_anew_with_the_extras_that_it_has(
    install: Install, monkeypatch: pytest.MonkeyPatch, file: str, extra: str, other: str
) -> None:
    env = install()
    (env / file).write_text("")
    monkeypatch.setattr("llm_do._extras.has_module", lambda name: name == "psycopg")

    assert install_command("mcp") == f"{extra} 'llm-do[mcp,postgres]'"
    assert install_command(package="groq") == f"{other} groq"
