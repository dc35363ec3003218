"""Texts that the standard library compiles are compiled once for all processes, and are the same code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llm_do._startup.compiled_texts import FEW, KNOWN, CompiledTexts

PROJECT = """
from llm_do._startup.compiled_texts import keep_compiled_texts, keeps_texts, project_code
keep_compiled_texts()
keep_compiled_texts()
import builtins, dataclasses, typing
from dataclasses import dataclass, field, make_dataclass
compiled = []
def seen(text, *rest, **options):
    compiled.append(text)
    return compile_as_ever(text, *rest, **options)
compile_as_ever, builtins.compile = compile, seen
made = [make_dataclass(f"Made{number}", [(f"field_{number}", int, number)]) for number in range(FEW)]
assert [repr(each()) for each in made] == [f"Made{number}(field_{number}={number})" for number in range(FEW)]
assert made[1](2) == made[1](2) != made[1](3)
with project_code():
    secret = make_dataclass("Secret", [("field_of_a_project", typing.ForwardRef("list['of_a_project']"), 1)])
print(sum("field_" in text for text in compiled if isinstance(text, str) and "project" not in text))
"""


def _ran(cache: Path) -> int:
    code = PROJECT.replace("FEW", str(FEW))
    command = [sys.executable, "-X", f"pycache_prefix={cache}", "-c", code]
    environment = {"PATH": "", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.version_info[:2] not in KNOWN, reason="this Python compiles its texts in another way")
def test_a_second_process_compiles_nothing_again_and_a_broken_file_is_written_anew(tmp_path: Path) -> None:
    assert _ran(tmp_path) >= FEW
    (file,) = tmp_path.rglob("compiled_texts.*.opt-texts*.pyc")
    good = file.read_bytes()
    assert _ran(tmp_path) == 0
    assert b"field_7" in good
    assert b"of_a_project" not in good
    for broken in (b"", good[: len(good) // 2], b"N"):
        file.write_bytes(broken)
        assert _ran(tmp_path) >= FEW
        assert len(file.read_bytes()) > FEW * 10
    assert [each for each in tmp_path.rglob("*opt-texts*") if each != file] == []


def test_code_is_what_the_text_says(tmp_path: Path) -> None:
    texts = CompiledTexts(tmp_path / "folder" / "texts")
    names: dict[str, int] = {}
    for number in range(FEW):
        texts.exec(f"x{number} = {number}", {}, names)
        assert eval(texts.compile(f"{number} + 1", "<string>", "eval")) == number + 1  # noqa: S307
    assert names == {f"x{number}": number for number in range(FEW)}
    with pytest.raises(SyntaxError):
        texts.compile("a b", "<string>", "eval")
    with pytest.raises(SyntaxError):
        texts.exec("a b", {}, {})
    texts.save()
    again = CompiledTexts(tmp_path / "folder" / "texts")
    assert eval(again.compile("1 + 1", "<string>", "eval")) == 2  # noqa: S307
    again.exec(compile("x1 = 5", "<string>", "exec"), {}, names)
    assert names["x1"] == 5
    again.exec("x1 = 1", {}, names)
    again.exec("x1 = 1", {}, names)
    assert names["x1"] == 1


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    texts = CompiledTexts(tmp_path / "file" / "texts")
    for number in range(FEW):
        texts.compile(f"{number}", "<string>", "eval")
    texts.save()
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
