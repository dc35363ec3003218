"""The receipts example over many receipts: killed in the middle, it goes through each of them once all the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_processes import LLM_DO, REPOSITORY, environment

COUNT = 150

ANSWER = '- output: {merchant: Shop, date: "03.11.2026", total: "EUR 19,30"}\n  delay: 0.05\n'


@pytest.mark.slow
def test_a_kill_in_the_middle_of_many_receipts_leaves_no_trace(tmp_path: Path) -> None:
    root = tmp_path / "receipts"
    shutil.copytree(REPOSITORY / "examples" / "receipts", root)
    (root / "answers.yaml").write_text(ANSWER)
    made = subprocess.run([sys.executable, str(root / "many.py"), str(COUNT)], capture_output=True, check=True)
    inputs = made.stdout.decode()
    assert len({json.loads(line)["input"] for line in inputs.splitlines()}) == COUNT
    (tmp_path / "many.jsonl").write_text(inputs, encoding="utf-8")
    options = ["-m", "script:receipts/answers.yaml", "--concurrency", "4"]
    command = [*LLM_DO, "map", "receipts", "extractor", "many.jsonl", *options]

    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=environment()) as killed:
        assert killed.stdout is not None
        before = [killed.stdout.readline() for _ in range(COUNT // 3)]
        killed.kill()
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment(), timeout=60, check=False)

    assert ended.returncode == 0, ended.stderr.decode()
    lines = ended.stdout.splitlines(keepends=True)
    assert lines[: len(before)] == before
    assert [json.loads(line)["line"] for line in lines] == list(range(1, COUNT + 1))
    assert f"{COUNT} inputs in" in ended.stderr.decode()
