"""Texts that the standard library compiles, and modules' patterns, are compiled once for all processes, to the same."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from llm_do._startup.compiled_texts import KNOWN, CompiledTexts
from llm_do._startup.kept_file import FEW, KeptFile

PROJECT = """
from llm_do._startup.compiled_texts import keep_compiled_texts, project_code
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

PATTERNS = """
import re, warnings
from llm_do._startup.compiled_texts import keep_compiled_texts, project_code
parsed = []
def seen(pattern, *rest):
    parsed.append(pattern)
    return parse_as_ever(pattern, *rest)
parse_as_ever, re._parser.parse = re._parser.parse, seen
texts = [rf"(?P<name_{number}>[a-zé-\uffff]+|\\d)(?i:x)?" for number in range(FEW)]
before = {text: re.compile(text, re.M) for text in texts}
binary = re.compile(b"text_or_bytes.+", re.S)
re.purge()
parsed.clear()
keep_compiled_texts()
for text, pattern in before.items():
    again = re.compile(text, re.M)
    assert again == pattern and again.groupindex == pattern.groupindex and again.groups == pattern.groups
    assert again.flags == pattern.flags and repr(again) == repr(pattern)
    assert again.fullmatch("éclairX").groupdict() == pattern.fullmatch("éclairX").groupdict()
class Body:
    again = re.compile(b"text_or_bytes.+", re.S)
def made(number):
    return re.compile(f"by_a_function_of_it_{number}")
made(len(before))
assert Body.again == binary != re.compile("text_or_bytes.+", re.S)
assert Body.again.fullmatch(b"text_or_bytes\\n") and not re.search("TEXT_OR_BYTES.", "text_or_bytes!")
assert re.search("TEXT_OR_BYTES.", "text_or_bytes!", re.I)
kept = len(parsed)
assert re.compile("debug_of_it", re.DEBUG).match("debug_of_it")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    re.compile("[[of_a_warning]")
assert len(caught) == 1, caught
ours = {"re": re, "__name__": "llm_do.runtime.record.redaction"}
exec("def secret(): return re.compile('of_a_secret')", ours)
ours["secret"]()
with project_code():
    re.compile("of_a_project")

def function(pattern):
    return re.compile(pattern)
"""
"""A module."""

IMPORTING = """
import sys
sys.path.append(PATH)
import patterns
print(patterns.kept)
patterns.function("of_a_function")
"""


def _imported(folder: Path) -> int:
    (folder / "patterns.py").write_text(PATTERNS.replace("FEW", str(FEW)))
    return _ran(folder, IMPORTING.replace("PATH", repr(str(folder))))


def _ran(cache: Path, code: str = PROJECT) -> int:
    command = [sys.executable, "-bb", "-X", f"pycache_prefix={cache}", "-c", code.replace("FEW", str(FEW))]
    environment = {"PATH": "", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


@pytest.mark.skipif(sys.version_info[:2] not in KNOWN, reason="this Python compiles its texts in another way")
def test_a_second_process_compiles_nothing_again_and_a_broken_file_is_written_anew(tmp_path: Path) -> None:
    assert _ran(tmp_path) >= FEW
    (file,) = tmp_path.rglob("kept_file.*.opt-texts*.pyc")
    good = file.read_bytes()
    assert _ran(tmp_path) == 0
    assert b"field_7" in good
    assert b"of_a_project" not in good
    file.write_bytes(good.replace(b"field_7", b"field_X"))  # as if other texts had the same hashes
    assert 0 < _ran(tmp_path) < FEW
    for broken in (b"", good[: len(good) // 2], b"N"):
        file.write_bytes(broken)
        assert _ran(tmp_path) >= FEW
        assert len(file.read_bytes()) > FEW * 10
    assert [each for each in tmp_path.rglob("*opt-texts*") if each != file] == []


@pytest.mark.skipif(sys.version_info[:2] not in KNOWN, reason="this Python compiles its patterns in another way")
def test_a_modules_patterns_are_parsed_once_and_no_others_are_kept(tmp_path: Path) -> None:
    assert _imported(tmp_path) >= FEW
    (file,) = tmp_path.rglob("kept_file.*.opt-texts*.pyc")
    assert _imported(tmp_path) == 0
    assert b"name_7" in file.read_bytes()
    assert b"by_a_function_of_it" in file.read_bytes()
    others = (b"of_a_function", b"of_a_secret", b"of_a_project", b"of_a_warning", b"debug")
    assert all(text not in file.read_bytes() for text in others)


def test_code_is_what_the_text_says(tmp_path: Path) -> None:
    kept = KeptFile(tmp_path / "folder" / "texts")
    texts = CompiledTexts(kept)
    names: dict[str, int] = {}
    for number in range(FEW):
        texts.exec(f"x{number} = {number}", {}, names)
        assert eval(texts.compile(f"{number} + 1", "<string>", "eval")) == number + 1  # noqa: S307
    assert names == {f"x{number}": number for number in range(FEW)}
    with pytest.raises(SyntaxError):
        texts.compile("a b", "<string>", "eval")
    with pytest.raises(SyntaxError):
        texts.exec("a b", {}, {})
    kept.save()
    again = CompiledTexts(KeptFile(tmp_path / "folder" / "texts"))
    assert eval(again.compile("1 + 1", "<string>", "eval")) == 2  # noqa: S307
    again.exec(compile("x1 = 5", "<string>", "exec"), {}, names)
    assert names["x1"] == 5
    for number in (1, 1, 2, 1, 1):
        again.exec(f"x1 = {number}", {}, names)
        assert names["x1"] == number
    again.forget()
    assert eval(again.compile("1 + 1", "<string>", "eval")) == 2  # noqa: S307


def test_each_part_has_a_file_and_what_an_earlier_part_has_is_not_kept_twice(tmp_path: Path) -> None:
    for _ in range(2):
        kept = KeptFile(tmp_path / "short")
        texts = CompiledTexts(kept)
        for number in range(FEW):
            texts.compile(f"'short' + '{number}'", "<string>", "eval")
        kept.turn_to(tmp_path / "long")
        for number in range(FEW):
            texts.compile(f"'short' + '{number}'", "<string>", "eval")
            texts.compile(f"'long' + '{number}'", "<string>", "eval")
        kept.turn_to(tmp_path / "short")
        kept.save()
    short, long = ((tmp_path / name).read_bytes() for name in ("short", "long"))
    assert b"'short'" in short
    assert b"'long'" not in short
    assert b"'long'" in long
    assert b"'short'" not in long
    assert KeptFile(tmp_path / "long").take(b"eval 'long' + '7'") is not None


def test_code_that_closes_all_files_only_makes_texts_be_compiled_again(tmp_path: Path) -> None:
    kept = KeptFile(tmp_path / "texts")
    texts = CompiledTexts(kept)
    for number in range(3 * FEW):
        texts.compile(f"'{number}' * 1000", "<string>", "eval")
    kept.save()
    before = {*Path("/dev/fd").iterdir()}
    again = CompiledTexts(KeptFile(tmp_path / "texts"))
    for opened in {*Path("/dev/fd").iterdir()} - before:
        with suppress(OSError):
            os.close(int(opened.name))
    for number in range(3 * FEW):
        assert eval(again.compile(f"'{number}' * 1000", "<string>", "eval")) == str(number) * 1000  # noqa: S307


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptFile(tmp_path / "file" / "texts")
    texts = CompiledTexts(kept)
    for number in range(FEW):
        texts.compile(f"{number}", "<string>", "eval")
    kept.save()
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_nothing_is_prepared_for_a_file_that_will_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack() -> bytes:
        raise AssertionError

    kept = KeptFile(tmp_path / "texts")
    assert kept.is_learning
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    unwritten = KeptFile(tmp_path / "texts")
    monkeypatch.undo()
    for without in (unwritten, KeptFile(tmp_path / "missing" / "folder" / "texts")):
        assert not without.is_learning
        for number in range(FEW):
            without.learn(b"%d" % number, pack)
        without.save()
    assert list(tmp_path.iterdir()) == []
