"""Properties of parsing and deciding about command lines, whatever the lines and rules are."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, strategies as st

from llm_do.policy.command_patterns import CommandGlob
from llm_do.policy.commands.command_line import CommandSyntaxError, ParsedLine, SimpleCommand, parse_line
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.grammar import find_grammar, known_programs
from llm_do.policy.decision import decide
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import CommandLine, Effect, ToolCallInfo

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
ARGV = st.lists(TEXT, max_size=3).map(lambda words: ("run", *words))
JOINS = st.sampled_from(["|", "&&", "||", ";"])
STREAMS = {
    "": ("stdout", "stderr"),
    "2>&1": ("stdout", "stdout"),
    "2>/dev/null": ("stdout", "nowhere"),
    ">/dev/null": ("nowhere", "stderr"),
    ">/dev/null 2>&1": ("nowhere", "nowhere"),
    "&> /dev/null": ("nowhere", "nowhere"),
    "2>&1 >/dev/null": ("nowhere", "stdout"),
    ">&2": ("stderr", "stderr"),
}


@given(st.lists(st.tuples(JOINS, ARGV, st.sampled_from(sorted(STREAMS))), min_size=1, max_size=5))
def test_a_quoted_line_is_read_as_it_was_written(parts: list[tuple[str, tuple[str, ...], str]]) -> None:
    text = " ".join(f"{join} {shlex.join(argv)} {streams}" for join, argv, streams in parts).partition(" ")[2]
    found = parse_line(text).commands
    assert [command.argv for command in found] == [argv for _, argv, _ in parts]
    assert [command.join for command in found[1:]] == [join for join, _, _ in parts[1:]]
    assert [(command.stdout, command.stderr) for command in found] == [STREAMS[streams] for _, _, streams in parts]


FRAGMENTS = [
    *(
        "a",
        "b",
        "fa",
        "fd",
        "'x y'",
        '"x y"',
        "x\\ y",
        "''",
        '"\\$"',
        "'*'",
        "*",
        "?",
        "[ab]",
        "a=b",
        "-x",
        "x#y",
        "=",
        "!",
    ),
    *(
        "{}",
        "{a,b}",
        "@{1}",
        "~",
        "$",
        "`",
        "$x",
        "(",
        ")",
        "{",
        "}",
        "#",
        "\n",
        "\\",
        "'",
        '"',
        "[",
        "]",
        "%",
        "^",
        "é",
    ),
    *(
        "|",
        "||",
        "&&",
        ";",
        "&",
        "|&",
        ">",
        "<",
        "2>&1",
        ">&2",
        "2>/dev/null",
        ">/dev/null",
        "&>/dev/null",
        "1>&2",
        "3>&1",
    ),
    *("> /dev/null", "</dev/null", ">>/dev/null", "2>x", "0</dev/null", "1>/dev/null2", "2 >/dev/null", "a2>/dev/null"),
]
WRITTEN = ["a 'x y' | b 2>&1 && fa >/dev/null 2>&1 || a; b", "a 2>&1 >/dev/null", "a ] { }", "a @{1}..b@{2} {a,{b}"]
LINES = st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from([" ", " ", ""])), max_size=9).map(
    lambda parts: "".join(fragment + gap for fragment, gap in parts)
)

# It prints the words of each command that bash runs, and where its streams go; a name that begins with `f` fails.
BASH = r"""
command_not_found_handle() {
    local out=stdout err=stdout
    [ /dev/fd/1 -ef /dev/null ] && out=nowhere
    [ /dev/fd/1 -ef ../err ] && out=stderr
    [ /dev/fd/2 -ef /dev/null ] && err=nowhere
    [ /dev/fd/2 -ef ../err ] && err=stderr
    printf '%s\x1f' "$out" "$err" "$@" $'\x1e' >&9
    case "$1" in f*) return 1;; esac
}
exec 9>&1 >out 2>err
mkdir empty
cd empty
PATH=/nowhere
while IFS= read -r -d '' line <&8; do
    (eval -- "$line") </dev/null
    printf '\x1d' >&9
done
"""


def by_bash(lines: Sequence[str]) -> list[Counter[tuple[str, ...]]]:
    """Return the commands that bash runs for each line, with the streams of each in front."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as given_lines:
        given_lines.write(b"".join(line.encode() + b"\0" for line in lines))
        given_lines.seek(0)
        command = ["bash", "--norc", "-c", f"exec 8<&0; cd {shlex.quote(folder)}; {BASH}"]
        done = subprocess.run(command, stdin=given_lines, stdout=subprocess.PIPE, check=True, timeout=60)
    results = done.stdout.decode().split("\x1d")[:-1]
    return [Counter(tuple(part.split("\x1f")[:-1]) for part in found.split("\x1e\x1f")[:-1]) for found in results]


def by_us(line: ParsedLine) -> Counter[tuple[str, ...]]:
    """Return the commands that would run for a line, if those whose name begins with `f` fail."""
    ran: Counter[tuple[str, ...]] = Counter()
    status, skipped = 0, False
    for command in line.commands:
        if command.join != "|":
            skipped = (command.join == "&&" and status != 0) or (command.join == "||" and status == 0)
        if not skipped:
            ran[(command.stdout, command.stderr, *command.argv)] += 1
            status = int(command.argv[0].startswith("f"))
    return ran


def any_line(random: Random) -> str:
    parts = [random.choice(FRAGMENTS) + random.choice([" ", " ", ""]) for _ in range(random.randint(1, 8))]
    return "".join(["a " if random.random() < 0.6 else "", *parts])


@pytest.mark.sample(1)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")
@pytest.mark.parametrize("seed", range(3))
def test_a_line_that_is_accepted_means_the_same_to_bash(seed: int) -> None:
    """Hypothesis would take minutes to shrink a batch, and one process for each line takes as long."""
    random = Random(seed)
    accepted: dict[str, ParsedLine] = {}
    for line in (*WRITTEN, *(any_line(random) for _ in range(2500))):
        with suppress(CommandSyntaxError):
            parsed = parse_line(line)
            # bash looks for a program with a slash itself, and `%` is a job.
            if not any("/" in command.argv[0] or command.argv[0].startswith("%") for command in parsed.commands):
                accepted[line] = parsed
    assert len(accepted) > 200
    for (line, parsed), ran in zip(accepted.items(), by_bash(list(accepted)), strict=True):
        assert by_us(parsed) == ran, line


UNSUPPORTED = [
    "$(a)",
    "`a`",
    "${a}",
    "$a",
    "<(a)",
    ">x",
    "<x",
    "2>x",
    "&",
    "\nb",
    "(a)",
    "{a,b}",
    "<<E",
    "$((1))",
    "~",
    "#a",
]


@given(LINES, st.sampled_from(UNSUPPORTED), st.sampled_from(["a ", "a && a ", "a 'b' | a "]))
def test_a_line_with_an_unsupported_form_is_never_carried_out(line: str, form: str, start: str) -> None:
    for text in (f"{start}{form}", f"{start}{form} {line}", f"{start}{form} && {line}"):
        with pytest.raises(CommandSyntaxError):
            parse_line(text)


WORDS = st.sampled_from(
    [
        *(
            "git",
            "log",
            "push",
            "-3",
            "--output=x",
            "pytest",
            "-x",
            "python",
            "-m",
            "uv",
            "run",
            "rm",
            "-rf",
            "a/b",
            "../x",
        ),
        *(
            "/etc",
            "@x",
            "--",
            "sed",
            "1d",
            "w x",
            "make",
            "X=1",
            "CC=x",
            "env",
            "curl",
            "https://a.org/b",
            "-o",
            "tar",
            "tf",
        ),
        *("find", ".", "-exec", ";", "sh", "-c", "rm x", "kubectl", "exec", "+x", ".env", "tool", "--file=x", "é", ""),
    ]
)
COMMANDS = st.tuples(st.sampled_from(["git", "pytest", "python", "uv", "rm", "sed", "make", "env", "tool", "sh"]))
VECTORS = st.builds(lambda first, rest: (*first, *rest), COMMANDS, st.lists(WORDS, max_size=5))
EFFECTS: st.SearchStrategy[Effect] = st.sampled_from(["allow", "ask", "deny"])
PATTERNS = st.lists(
    WORDS.filter(lambda word: word and " " not in word and word not in (";",)), min_size=1, max_size=3
).map(lambda words: f"shell(command={' '.join(words)} *)")
RANK = {"allow": 0, "ask": 1, "deny": 2}


def effect(line: CommandLine, policy: Policy) -> int:
    call = ToolCallInfo("shell", {"command": ""}, primary="command", resolved={"command": line})
    return RANK[decide(call, policy).effect]


@given(st.lists(st.tuples(EFFECTS, PATTERNS), max_size=6), st.lists(VECTORS, min_size=1, max_size=4), st.data())
def test_a_line_is_never_allowed_more_than_its_strictest_command(
    rules: list[tuple[Effect, str]], vectors: list[tuple[str, ...]], data: st.DataObject
) -> None:
    policy = Policy(None, tuple(Rule(kind, parse_pattern(text), text) for kind, text in rules))
    joins = data.draw(st.lists(JOINS, min_size=len(vectors) - 1, max_size=len(vectors) - 1))
    line = CommandLine(vectors, joins)  # type: ignore[arg-type]
    assert effect(line, policy) >= max(effect(CommandLine([vector]), policy) for vector in vectors)


@given(VECTORS, PATTERNS)
def test_no_wildcard_covers_a_word_that_is_not_known_to_be_harmless(argv: tuple[str, ...], text: str) -> None:
    glob: CommandGlob = parse_pattern(text).named[0][1].command
    if glob.allows((argv,)):
        fixed = len(glob.commands[0].words) - 1
        assert not [piece for piece in read_command(argv).pieces if piece.role == "unknown" and piece.word >= fixed]


@given(st.lists(st.one_of(WORDS, TEXT, st.sampled_from(sorted(known_programs()))), min_size=1, max_size=8).map(tuple))
def test_every_word_of_a_command_has_a_role(argv: tuple[str, ...]) -> None:
    places = {piece.word for piece in read_command(argv).pieces}
    assert places == set(range(1, len(argv)))


@given(st.sampled_from(sorted(name for name in known_programs() if not name.startswith("@"))), st.data())
def test_every_listed_option_is_harmless_in_its_program(name: str, data: st.DataObject) -> None:
    grammar = find_grammar(name)
    assert grammar is not None
    flags = sorted(option for option, kind in grammar.options.items() if kind == "flags" and option.startswith("-"))
    if flags and "bundled" not in grammar.attributes:
        option = data.draw(st.sampled_from(flags))
        assert option not in read_command((*name.split(), option)).unknown


def test_a_command_knows_how_it_is_joined() -> None:
    line = parse_line("a && b | c; d")
    assert [command.join for command in line.commands] == [None, "&&", "|", ";"]
    assert isinstance(line.commands[0], SimpleCommand)
    assert CommandLine.joins_of(line.line) == ("&&", "|", ";")
    assert CommandLine.joins_of((("a",), ("b",))) == ("|",)
