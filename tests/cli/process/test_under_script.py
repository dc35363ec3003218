"""The command under `script`, which people use to record terminal sessions."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.cli_processes import LLM_DO, environment, write_project


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("script") is None, reason="the machine has no `script`")
def test_a_session_recorded_with_script_keeps_the_exit_code_and_shows_the_result(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", answers="- text: All is well.\n")
    record = tmp_path / "typescript"
    command = shlex.join([*LLM_DO, "run", str(project), "How is it?"])

    done = subprocess.run(
        ["script", "-qec", command, str(record)],
        env=environment(TERM="xterm"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert "All is well." in record.read_text(encoding="utf-8")
