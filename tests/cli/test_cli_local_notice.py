"""Notices about the local model: that it is used, and its quality, each shown once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llm_do.models.builtin import weights
from llm_do.models.builtin.local_model import NOTICE
from tests.cli.cli_processes import environment

TAKEN = "no model is named and no key is set: using the local model"

CHAT = """
import sys
from llm_do.models.builtin import local_model as local
from llm_do.models.builtin.engine import Generation

class Writer:
    def __init__(self, path):
        self.path = path
    async def generate(self, prompt, on_text=None):
        return Generation("Hello", prompt_tokens=1, completion_tokens=1, cached_tokens=0, truncated=False)

local.engine_for = Writer
local.check_runtime = lambda: None
import llm_do.runtime.request.model_choice
llm_do.runtime.request.model_choice.is_local_available = lambda: True
from llm_do.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def chat(root: Path, *options: str, messages: str = "one\ntwo\nthree\n") -> subprocess.CompletedProcess[str]:
    """Run a chat with a local model that always answers "Hello"."""
    file = root / weights.NAME
    file.write_bytes(b"GGUF")
    (root / "main.agent").write_text("---\nname: main\n---\nHelp.\n", encoding="utf-8")
    env = environment(LLM_DO_LOCAL_MODEL=str(file))
    return subprocess.run(
        [sys.executable, "-c", CHAT, "chat", "--no-record", *options],
        cwd=root,
        input=messages,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.slow
def test_each_notice_is_shown_once_in_a_chat_of_several_turns(tmp_path: Path) -> None:
    ended = chat(tmp_path)

    assert ended.stdout == "Hello\n" * 3
    assert ended.stderr.splitlines() == [TAKEN, NOTICE]


@pytest.mark.slow
def test_a_requested_model_is_not_announced_and_quiet_hides_every_notice(tmp_path: Path) -> None:
    asked = chat(tmp_path, "--model", "local")
    quiet = chat(tmp_path, "-q")

    assert asked.stderr.splitlines() == [NOTICE]
    assert (quiet.stdout, quiet.stderr) == ("Hello\n" * 3, "")
