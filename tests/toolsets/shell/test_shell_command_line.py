"""A command line is literal words and pipes; anything else is refused by name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from tests.support.tables import each_row

WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), min_size=1)


@each_row(
    "text, words",
    [
        ("ls", [("ls",)]),
        ("  ls -la src\n", [("ls", "-la", "src")]),
        ("ls 'a b' \"c d\" e\\ f x'y'\"z\"", [("ls", "a b", "c d", "e f", "xyz")]),
        ("grep -E 'a|b' x | wc -l", [("grep", "-E", "a|b", "x"), ("wc", "-l")]),
        ("find . -name '*.py'", [("find", ".", "-name", "*.py")]),
        ("ls \\*", [("ls", "*")]),
        ("git diff HEAD@{1}", [("git", "diff", "HEAD@{1}")]),
        ("git show HEAD^{commit} HEAD~2", [("git", "show", "HEAD^{commit}", "HEAD~2")]),
        ('echo "a\\"b" "c\\d" "\\$x" "a$"', [("echo", 'a"b', "c\\d", "$x", "a$")]),
        ("echo '' \"\"", [("echo", "", "")]),
        ("sort -t, -k2 a", [("sort", "-t,", "-k2", "a")]),
        ("head -3 é.txt", [("head", "-3", "é.txt")]),
        ("git commit -m 'one\n\ntwo'", [("git", "commit", "-m", "one\n\ntwo")]),
        ("ls ] { }", [("ls", "]", "{", "}")]),
        ("git diff HEAD@{1}..main@{2} {a} {}", [("git", "diff", "HEAD@{1}..main@{2}", "{a}", "{}")]),
        ("echo a#b a=b !x %y ^z @ : =x", [("echo", "a#b", "a=b", "!x", "%y", "^z", "@", ":", "=x")]),
    ],
)
def test_literal_words_and_pipes_are_read_as_a_shell_would(text: str, words: list[tuple[str, ...]]) -> None:
    assert parse_command(text) == tuple(words)


@each_row(
    "text, why",
    [
        ("ls & rm x", "background"),
        ("ls &", "background"),
        ("ls |& rm", "`|&`"),
        ("ls\nrm x", "line breaks"),
        ("ls\\\n-l", "line breaks"),
        ("ls\rrm", "line breaks"),
        ("ls\x0brm", "line breaks"),
        ("echo $(rm x)", "substitution"),
        ("echo `rm x`", "substitution"),
        ('echo "$(rm x)"', "substitution"),
        ('echo "`rm x`"', "substitution"),
        ("ls <(rm x)", "process substitution"),
        ("echo $((1+1))", "arithmetic"),
        ("ls $HOME", "variables"),
        ("ls ${HOME}", "variables"),
        ('ls "$HOME"', "variables"),
        ("ls $'x'", "$'...'"),
        ('ls $"x"', "`$`"),
        ("ls ;; rm x", "`;;`"),
        ("; ls", "there is no command"),
        ("ls ; ; rm x", "there is no command"),
        ("ls && && rm x", "there is no command"),
        ("ls &&", "there is no command"),
        ("ls; > /dev/null", "there is no command"),
        ("ls 2> x", "redirections"),
        ("ls 3> /dev/null", "redirections"),
        ("ls > /dev/nullx", "redirections"),
        ("ls > '/dev/null'/x", "redirections"),
        ("ls 2>&3", "redirections"),
        ("ls 2>&1x", "redirections"),
        ("ls >&-", "redirections"),
        ("ls >& /dev/null", "redirections"),
        ("ls <> /dev/null", "redirections"),
        ("ls &>> x", "redirections"),
        ("ls +(a|b)", "extended patterns"),
        ("*.sh x", "file pattern"),
        ("ls > x", "redirections"),
        ("ls >> x", "redirections"),
        ("cat < x", "redirections"),
        ("ls &> x", "redirections"),
        ("cat << E\nx\nE", "here-documents"),
        ("cat <<< x", "here-strings"),
        ("A=1 ls", "variables"),
        ("A=1", "variables"),
        ("export A=1", "variables"),
        ("(ls)", "subshells"),
        ("{ ls; }", "`{ ... }`"),
        ("f() { ls; }", "functions"),
        ("! ls", "`!`"),
        ("if ls; then rm x; fi", "`if`"),
        ("for i in a; do rm x; done", "loops"),
        ("while ls; do rm x; done", "loops"),
        ("case x in x) rm x;; esac", "`case`"),
        ("[ -f x ]", "`[`"),
        ("[[ -f x ]]", "`[`"),
        ("ls # comment", "comments"),
        ("ls {a,b}", "brace"),
        ("ls {1..3}", "brace"),
        ("ls {a,'b'}", "brace"),
        ("ls ~", "`~`"),
        ("ls ~root/x", "`~`"),
        ("make DIR=~/x", "`~`"),
        ("ls 'x", "quote"),
        ("ls \\", "quote"),
        ("ls |", "read"),
        ("| ls", "read"),
        ("", "empty"),
        (" \n ", "empty"),
        ("''", "no program"),
        ("ls \0", "NUL"),
        ("ls \udc80", "encoded"),
        ("ls " + "a" * 20_000, "longer"),
        ("ls" + "|ls" * 500, "longer"),
    ],
)
def test_every_other_shell_feature_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(CommandRefusedError, match=r".") as caught:
        parse_command(text)
    assert why in caught.value.message


@each_row("text", ["{\U0010ffff", "@=\U000e0041={\U0010ffff\u3000-)", "$\U0010ffff", "<<\U0010ffff", "a{\U0001f600"])
def test_no_character_breaks_the_parser(text: str) -> None:
    for end in ("", "}", ",b}", "\n", "..3}"):
        with suppress(CommandRefusedError):
            assert parse_command(text + end)


def test_words_may_contain_any_script() -> None:
    assert parse_command("grep 漢字 'é ü' \U0001f600.txt") == (("grep", "漢字", "é ü", "\U0001f600.txt"),)


@given(WORDS)
def test_quoted_words_round_trip(words: list[str]) -> None:
    words = ["run", *words]
    assert parse_command(shlex.join(words)) == (tuple(words),)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_quoted_pipelines_round_trip(stages: list[list[str]]) -> None:
    text = " | ".join(shlex.join(["run", *words]) for words in stages)
    assert parse_command(text) == tuple(("run", *words) for words in stages)


SEPARATORS = ("|", ";", "||", "&&")  # or such a word in quotes


def flattened(words: Iterable[str]) -> list[str]:
    """The words with one spelling of what separates commands, none at the end."""
    separated = ["|" if word in SEPARATORS else word for word in words]
    while separated[-1:] == ["|"]:
        separated.pop()
    return separated


@given(st.text(st.sampled_from("ab -=/.'\"\\|;&<>$`(){}[]*?~!#\n\t\r é"), max_size=30))
def test_an_accepted_command_line_means_the_same_to_a_shell(text: str) -> None:
    try:
        pipeline = parse_command(text)
    except CommandRefusedError:
        return
    # An independent parser agrees on the words, apart from escapes that it reads differently.
    if "\\" not in text and "#" not in text:
        lexer = shlex.shlex(text.strip(), posix=True, punctuation_chars="|;&")
        lexer.whitespace_split = True
        lexer.commenters = ""
        assert flattened(word for argv in pipeline for word in (*argv, "|")) == flattened(lexer)
