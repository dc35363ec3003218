"""Artifacts hold no secrets, wherever the pieces in which they are written are cut."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.runtime.record.redaction import RedactedFile, Redactor
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

SECRET = "sk-live-0123456789abcdef"
KEY = "-----BEGIN KEY-----\nabcdefghij\nklmnopqrst\n-----END KEY-----"


class Kept(io.BytesIO):
    """A file whose content can be read after it was closed."""

    content = b""

    def close(self) -> None:
        if not self.closed:
            self.content = self.getvalue()
        super().close()


def written(data: bytes, size: int, **environ: str) -> bytes:
    kept = Kept()
    with RedactedFile(kept, Redactor(environ)) as file:
        for start in range(0, len(data), size):
            file.write(data[start : start + size])
    return kept.content


@given(st.integers(0, 200_000), st.integers(500, 90_000), st.sampled_from([b"x", b"ab\n", "é日".encode()]))
def test_a_secret_is_removed_wherever_it_stands(before: int, size: int, filler: bytes) -> None:
    data = (filler * (before // len(filler) + 1)) + SECRET.encode() + filler * 30_000 + KEY.encode() + filler * 30_000
    found = written(data, size, ACME_API_KEY=SECRET, SIGNING_KEY=KEY)

    expected = data.replace(SECRET.encode(), b"[redacted ACME_API_KEY]").replace(
        KEY.encode(), b"[redacted SIGNING_KEY]"
    )
    assert found == expected


def test_a_header_is_removed_wherever_it_stands() -> None:
    token = b"a" * 5_000 + b"." + b"b" * 4_000
    for before in range(0, 140_000, 7_000):
        data = b"x" * before + b' "Authorization": "Bearer ' + token + b'", ' + b"x " * 60_000
        assert written(data, 8_192) == data.replace(b"Bearer " + token, b"[redacted]")


def test_a_header_without_an_end_is_removed_in_one_piece() -> None:
    data = b"x " * 60_000 + b"Authorization: Bearer " + b"A" * 5_000_000
    assert written(data, 8192) == b"x " * 60_000 + b"Authorization: [redacted]"


def test_bytes_that_are_no_text_are_kept() -> None:
    data = bytes(range(256)) * 1000
    assert written(data, 777, ACME_API_KEY=SECRET) == data


def test_a_tools_long_result_is_kept_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)

    def dump() -> str:
        """Print everything."""
        return f"{'x' * 50_000} key={SECRET} {'y' * 50_000}"

    spec = agent("main", script([call("dump")], "fin"), tools=[dump])
    carry_out(runtime_of([spec], root=tmp_path, max_result_bytes=2000))

    [artifact] = (tmp_path / ".llm-do" / "artifacts").glob("*.txt")
    text = artifact.read_text()
    assert "key=[redacted ACME_API_KEY] " in text
    assert SECRET not in text
    assert len(text) > 100_000


def test_a_commands_long_output_is_kept_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)
    lines = "line\n" * 40_000
    (tmp_path / "long.txt").write_text(f"{lines}{SECRET}\n{lines}")
    toolset: Any = "shell_readonly"
    spec = agent("main", script([call("shell", command="cat long.txt")], "fin"), toolsets=[toolset])
    carry_out(runtime_of([spec], root=tmp_path, max_result_bytes=2000))

    [artifact] = (tmp_path / ".llm-do" / "artifacts").glob("*.txt")
    assert SECRET not in artifact.read_text()
    assert "[redacted ACME_API_KEY]" in artifact.read_text()
