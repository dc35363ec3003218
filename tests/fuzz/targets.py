"""The fuzz targets: parsers of what people and models write. Each takes arbitrary bytes and keeps an invariant.

A target is a function, called by `python -m tests.fuzz`, by the tests next to this file, or by another fuzzer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path

from llm_do.formats.agent_file import parse_agent, readable_name
from llm_do.formats.manifest import parse_manifest
from llm_do.formats.syntax.flow_expression import FlowSyntaxError, format_flow, names_in, parse_flow
from llm_do.formats.syntax.source import decode
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.values import ToolCallInfo
from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from tests.corpus.cases import cases
from tests.formats.test_parsers_never_raise import check
from tests.fuzz.mutation import Target

__all__ = ["TARGETS", "seeds"]

ROOT = Path(__file__).parents[2]

FLOWS = (
    "a",
    "a >> b",
    "a | b",
    "(a | b) >> c",
    "a >> (b | (c >> d)) >> e",
    "a >> b | c",
    "a >>",
    "(a",
    "a b",
    "a >> a",
)

PATTERNS = (
    *("send", "*", "writer:write_file(reports/**)", "shell(git log *)", "shell(git log * | head *)", "w*:*"),
    *("send(to=ann, n=1)", "send(to='a, b')", 'send(to="a\\"b")', "write_file([a-c]*.md)", "write_file(**/*.t?t)"),
    *("a::b(x=[!y])", "send(to=\\*)", "send(", "send()", "send(to=)", ":send", "shell(command=make test, cwd=docs)"),
)

COMMANDS = (
    *("ls -l docs", "git log --oneline | head -3", "grep -rn 'a b' .", 'echo "a\\"b" \'c\'', "find . -name '*.py'"),
    *(
        "a && b",
        "a; b",
        "a &",
        "a > b",
        "a $(b)",
        "a `b`",
        "a $b",
        "a ~/b",
        "a *.py",
        "A=1 b",
        "a # b",
        "a\nb",
        "a \\\nb",
    ),
    *("a {b,c}", "a <<b\nc\nb", "(a)", "! a", "a |& b", "a 'b", "if a; then b; fi", "a $'b'", "a | | b", ""),
)

CALLS = (
    ToolCallInfo("send", {"to": "ann", "n": 1}, agent="writer"),
    ToolCallInfo("send", {"to": ["a\nb", None, {"c": 1.5}], "é": "\x00"}, agent="w"),
    ToolCallInfo("write_file", {"path": "a/b.md"}, agent="writer", primary="path", resolved={"path": "a/b.md"}),
    ToolCallInfo("write_file", {"path": "../x"}, agent="writer", primary="path", resolved={"path": None}),
    *(
        ToolCallInfo(
            "shell", {"command": " | ".join(map(" ".join, argv))}, primary="command", resolved={"command": argv}
        )
        for argv in (
            (("git", "log", "-3"),),
            (("git", "log"), ("head", "-3")),
            (("env", "A=1", "/bin/git", "log", "--output=x"),),
        )
    ),
)


def agent_file(data: bytes) -> Hashable:
    """An `.agent` file: an agent, or findings at places that it has."""
    text = _text(data, "a.agent")
    if text is None:
        return None
    parsed = parse_agent(text, "a.agent")
    check(parsed, text)
    readable_name(parsed.node, text)
    return frozenset(item.code + item.message[:20] for item in parsed.diagnostics)


def manifest(data: bytes) -> Hashable:
    """A `project.json`: a manifest, or findings at places that it has."""
    text = _text(data, "project.json")
    if text is None:
        return None
    parsed = parse_manifest(text, "project.json")
    check(parsed, text)
    return frozenset(item.code + item.message[:20] for item in parsed.diagnostics)


def flow(data: bytes) -> Hashable:
    """A flow expression: a tree that reads the same once written again, or a fault inside the text."""
    text = data.decode(errors="replace")
    try:
        tree = parse_flow(text)
    except FlowSyntaxError as fault:
        return _fault(fault, fault.start, fault.end, text)
    for name in names_in(tree):
        assert text[name.start :].startswith(name.name)
    assert format_flow(parse_flow(format_flow(tree))) == format_flow(tree)
    return min(format_flow(tree).count(">>"), 5), min(format_flow(tree).count("|"), 5)


def pattern(data: bytes) -> Hashable:
    """An approval pattern: it can deny whatever it can allow, or its fault is inside the text."""
    text = data.decode(errors="replace")
    try:
        parsed = parse_pattern(text)
    except PatternError as fault:
        return _fault(fault, fault.column - 1, fault.column, text)
    found = [(matches(parsed, call), matches(parsed, call, restrictive=True)) for call in CALLS]
    assert all(denied for allowed, denied in found if allowed), found
    return tuple(found)


def command(data: bytes) -> Hashable:
    """A command line: its words survive quoting and parsing, or it has a reason for rejection."""
    text = data.decode(errors="replace")
    try:
        pipeline = parse_command(text)
    except CommandRefusedError as refused:
        return _kind(refused)
    assert pipeline
    assert all(pipeline)
    assert parse_command(" | ".join(" ".join(map(_quoted, argv)) for argv in pipeline)) == pipeline
    return tuple(min(len(argv), 4) for argv in pipeline[:4])


TARGETS: Mapping[str, Target] = {
    "agent-file": agent_file,
    "manifest": manifest,
    "flow": flow,
    "pattern": pattern,
    "command": command,
}


def seeds(name: str) -> Sequence[bytes]:
    """The seeds of mutation.

    Args:
        name: The target.
    """
    return [text.encode() for text in _SEEDS[name]()]


def _text(data: bytes, file: str) -> str | None:
    read = decode(data, file)
    assert (read.text is None) == bool(read.diagnostics)
    return read.text


def _fault(fault: ValueError, start: int, end: int, text: str) -> str:
    assert 0 <= start <= len(text)
    assert start < end
    return _kind(fault)


def _kind(error: Exception) -> str:
    """Return an error's message without its quotations."""
    return re.sub(r"`.*`|'.*'|\d+", "", str(error), flags=re.DOTALL)[:40]


def _quoted(word: str) -> str:
    """A word as one that a shell takes literally, whatever is in it."""
    return "'" + word.replace("'", "'\\''") + "'"


def _files(ending: str) -> Iterator[str]:
    """Files of that kind among the examples, and the wrong ones of the corpus."""
    for path in sorted((ROOT / "examples").glob(f"*/*{ending}")) + sorted(
        (ROOT / "docs/reference").glob(f"*/*{ending}")
    ):
        yield path.read_text(encoding="utf-8")
    for case in cases():
        yield from (file.text for name, file in case.files.items() if name.endswith(ending) and file.kind is None)


def _rules() -> Iterator[str]:
    yield from PATTERNS
    for text in _files("project.json"):
        try:
            manifest = json.loads(text)
        except ValueError:
            continue
        rules = manifest.get("approvals", {}) if isinstance(manifest, dict) else {}
        for effect in ("deny", "ask", "allow"):
            given = rules.get(effect) if isinstance(rules, dict) else None
            yield from (rule for rule in given or () if isinstance(rule, str))


_SEEDS: Mapping[str, Callable[[], Iterator[str]]] = {
    "agent-file": lambda: _files(".agent"),
    "manifest": lambda: _files("project.json"),
    "flow": lambda: iter(FLOWS),
    "pattern": _rules,
    "command": lambda: iter(COMMANDS),
}
