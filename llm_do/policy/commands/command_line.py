"""Parse command lines: commands of literal words, joined by `|`, `&&`, `||` and `;`.

Only what is known to mean the same to every shell is accepted. Every other construct is refused with its reason, so a
line that is accepted can be carried out without a shell. File patterns are recognised here and expanded by whoever
knows the folder.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.policy.values import CommandLine, Join

__all__ = ["CommandSyntaxError", "ParsedLine", "SimpleCommand", "Stream", "Word", "parse_line", "to_command_line"]

Stream = Literal["stdout", "stderr", "nowhere"]
"""Where a command writes: to the next command or the result, to the standard error, or to `/dev/null`."""

_MAX_BYTES = 16_384
_MAX_COMMANDS = 100

_COMMANDS = "run one command in each call, or join commands with `&&`, `;` or `|`"
_VARIABLES = "variables are not supported: write the value, or put the word in single quotes"
_SETTING = "setting variables is not supported: the environment is fixed"
_LINE_BREAKS = f"line breaks are not supported: {_COMMANDS}"
_LOOPS = f"loops are not supported: {_COMMANDS}"
_FILES = "redirections (`>`, `<`) are not supported, except to /dev/null and `2>&1`: both output streams are returned"
_KEYWORDS = {
    **dict.fromkeys(("if", "then", "elif", "else", "fi"), f"`if` is not supported: {_COMMANDS}"),
    **dict.fromkeys(("for", "while", "until", "do", "done", "select"), _LOOPS),
    **dict.fromkeys(("case", "esac"), f"`case` is not supported: {_COMMANDS}"),
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly", "unset"), _SETTING),
    **dict.fromkeys(("[", "[["), "`[` and `[[` are not supported: use `test`"),
    **dict.fromkeys(("{", "}"), f"`{{ ... }}` is not supported: {_COMMANDS}"),
    "function": f"functions are not supported: {_COMMANDS}",
    "coproc": "background jobs (`coproc`) are not supported: a command is waited for",
    "!": "`!` before a command is not supported: look at its exit code",
}
_OPERATORS: dict[str, str] = {
    "&": "background jobs (`&`) are not supported: a command is waited for",
    ";;": f"`;;` is not supported: {_COMMANDS}",
    ";&": f"`;&` is not supported: {_COMMANDS}",
    "|&": "`|&` is not supported: write `2>&1 |`",
}
_REDIRECTIONS: dict[str, str] = {
    "<<<": "here-strings (`<<<`) are not supported: commands get no input",
    "<<": "here-documents (`<<`) are not supported: commands get no input",
    "<(": "process substitution (`<(...)`) is not supported",
    ">(": "process substitution (`>(...)`) is not supported",
}
_DOLLARS = (
    ("$((", "arithmetic (`$((...))`) is not supported"),
    ("$[", "arithmetic (`$[...]`) is not supported"),
    ("$(", "command substitution (`$(...)`) is not supported: run that command first"),
    ("${", _VARIABLES),
    ("$'", "`$'...'` is not supported: write the characters themselves"),
)
_A_DOLLAR = "a `$` outside quotes is not supported: leave it out, or put it in single quotes"
_SUBSTITUTION = "command substitution (`` `...` ``) is not supported: run that command first"

_BLANKS = re.compile(r"[ \t]+")
_OPERATOR = re.compile(r"&&|\|\||\|&|\||;;|;&|;|&(?!>)")
_REDIRECTION = re.compile(r"(?:(?P<number>[0-9]+)|(?P<both>&))?(?P<how><<<|<<|<>|<&|<\(|<|>>|>\||>&|>\(|>)")
_PLAIN = re.compile(r"[^\s;&|<>()$`'\"\\\0\x85\u2028\u2029]+")
_DOUBLE = re.compile(r'"((?:[^"$`\\]|\\[^\n]|\$(?=["\s]))*)"')
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
_NAME_AFTER_DOLLAR = re.compile(r"\$[A-Za-z0-9_*@#?!-]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_HOME = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\+?=(?:.*:)?)?~")
"""A word that begins with a home folder, or sets a variable to one."""
_PATTERN = re.compile(r"[*?]|\[[^\]]*\]")


class CommandSyntaxError(ValueError):
    """A command line isn't supported; the message says why and what to do instead."""


@frozen
class Word:
    """A word of a command: its text, and the glob that it is if it contains an unquoted wildcard."""

    text: str
    pattern: str | None = None


@frozen
class SimpleCommand:
    """One command of a line: its words, how it is joined to the one before it, and where its output goes."""

    words: tuple[Word, ...]
    join: Join | None = None
    stdout: Stream = "stdout"
    stderr: Stream = "stderr"

    @property
    def argv(self) -> tuple[str, ...]:
        """The words without regard to file patterns."""
        return tuple(word.text for word in self.words)


@frozen
class ParsedLine:
    """A command line: its commands in order."""

    commands: tuple[SimpleCommand, ...]

    @property
    def line(self) -> CommandLine:
        """The argument vectors, as rules see them."""
        return to_command_line(self.commands)

    @property
    def has_patterns(self) -> bool:
        """Whether any word is a file pattern."""
        return any(word.pattern is not None for command in self.commands for word in command.words)


def to_command_line(commands: tuple[SimpleCommand, ...]) -> CommandLine:
    """Return the argument vectors of commands, and the operators between them."""
    return CommandLine(
        (command.argv for command in commands), (command.join for command in commands[1:] if command.join)
    )


@lru_cache(maxsize=256)
def parse_line(text: str) -> ParsedLine:
    """Parse a command line; raise `CommandSyntaxError` for anything but joined commands of literal words.

    Example:
        >>> [command.argv for command in parse_line("cd src && grep -n 'a b' x 2>/dev/null | head").commands]
        [('cd', 'src'), ('grep', '-n', 'a b', 'x'), ('head',)]
        >>> parse_line("ls > x")
        Traceback (most recent call last):
        ...
        llm_do.policy.commands.command_line.CommandSyntaxError: redirections (`>`, `<`) are not supported, ...
    """
    return _Lexer(_checked(text)).line()


def _checked(text: str) -> str:
    text = text.strip(" \t\n")
    if not text:
        raise CommandSyntaxError("the command is empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise CommandSyntaxError("the command contains characters that can't be encoded") from None
    if "\0" in text:
        raise CommandSyntaxError("the command contains a NUL character")
    if size > _MAX_BYTES or len(_OPERATOR.findall(text)) > _MAX_COMMANDS:
        raise CommandSyntaxError(f"the command is longer than {_MAX_BYTES:,} bytes or {_MAX_COMMANDS} commands")
    return text


class _Lexer:
    """A parser of one line; `at` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.words: list[Word] = []
        self.streams: dict[str, Stream] = {"1": "stdout", "2": "stderr"}
        self.redirected = False
        self.join: Join | None = None
        self.commands: list[SimpleCommand] = []

    def line(self) -> ParsedLine:
        """Parse the whole line."""
        while self.at < len(self.text):
            if found := _BLANKS.match(self.text, self.at):
                self.at = found.end()
            elif found := _OPERATOR.match(self.text, self.at):
                self._operator(found[0])
            elif found := _REDIRECTION.match(self.text, self.at):
                self._redirection(found)
            else:
                self._word()
        if self.words or self.join != ";" or self.redirected:
            self._end_command()
        return ParsedLine(tuple(self.commands))

    def _operator(self, text: str) -> None:
        if text in _OPERATORS:
            raise CommandSyntaxError(_OPERATORS[text])
        self._end_command()
        self.at += len(text)
        self.join = text  # pyright: ignore[reportAttributeAccessIssue]

    def _end_command(self) -> None:
        if not self.words:
            raise CommandSyntaxError("the command can't be read: there is no command before or after an operator")
        if not self.words[0].text:
            raise CommandSyntaxError("the command has no program")
        streams = self.streams["1"], self.streams["2"]
        self.commands.append(SimpleCommand(tuple(self.words), self.join, *streams))
        self.words, self.redirected = [], False
        self.streams = {"1": "stdout", "2": "stderr"}

    def _redirection(self, found: re.Match[str]) -> None:
        how, number = found["how"], found["number"]
        if how in _REDIRECTIONS:
            raise CommandSyntaxError(_REDIRECTIONS[how])
        self.at, self.redirected = found.end(), True
        if how in (">&", "<&"):
            self._duplicate(how, number, both=bool(found["both"]))
            return
        if blanks := _BLANKS.match(self.text, self.at):
            self.at = blanks.end()
        if self.at == len(self.text) or self._read_word().text != "/dev/null" or number not in (None, "0", "1", "2"):
            raise CommandSyntaxError(_FILES)
        if how == "<" and number in (None, "0") and not found["both"]:
            return  # commands get no input anyway
        if how not in (">", ">>", ">|") or number == "0":
            raise CommandSyntaxError(_FILES)
        if found["both"]:
            number = "1"
            self.streams["2"] = "nowhere"
        self.streams[number or "1"] = "nowhere"

    def _duplicate(self, how: str, number: str | None, *, both: bool) -> None:
        """Read the rest of `2>&1`, which sends one stream where the other goes at that moment."""
        end = re.compile(r"([12])(?=[\s;&|<>]|$)").match(self.text, self.at)
        if how != ">&" or both or number not in (None, "1", "2") or end is None:
            raise CommandSyntaxError(_FILES)
        self.at = end.end()
        self.streams[number or "1"] = self.streams[end[1]]

    def _word(self) -> None:
        start = self.at
        if self.text[start] == "#":
            raise CommandSyntaxError("comments are not supported: leave it out, or quote the `#`")
        if self.text[start] in "()":
            what = (
                "functions" if len(self.words) == 1 and self.text[start - 1 : start].strip() else "subshells (`(...)`)"
            )
            raise CommandSyntaxError(f"{what} are not supported: {_COMMANDS}")
        word = self._read_word()
        raw = self.text[start : self.at]
        if not self.words:
            if reason := _KEYWORDS.get(raw):
                raise CommandSyntaxError(reason)
            if _ASSIGNMENT.match(raw):
                raise CommandSyntaxError(_SETTING)
            if word.pattern is not None or "[" in raw:
                raise CommandSyntaxError("a program's name can't be a file pattern: write the name")
        if _HOME.match(raw):
            raise CommandSyntaxError("`~` does not stand for a home folder here: write the path")
        self.words.append(word)

    def _read_word(self) -> Word:
        """Read one word; every part of it is a text, and whether it is bare: outside quotes."""
        parts: list[tuple[str, bool]] = []
        start = self.at
        while self.at < len(self.text) and (part := self._part()) is not None:
            parts.append(part)
        if self.at == start:
            raise self._refusal()
        bare = "".join(text if is_bare else "x" * bool(text) for text, is_bare in parts)
        if "{" in bare and _expands_braces(bare):
            raise CommandSyntaxError("brace expansion is not supported: write each name, or quote the braces")
        text = "".join(text for text, _ in parts)
        if not _PATTERN.search(bare):
            return Word(text)
        return Word(
            text, "".join(text if is_bare else re.sub(r"([\\*?[\]!-])", r"\\\1", text) for text, is_bare in parts)
        )

    def _part(self) -> tuple[str, bool] | None:
        """Read a part of a word; return None where the word ends."""
        char = self.text[self.at]
        if found := _PLAIN.match(self.text, self.at):
            self.at = found.end()
            return found[0], True
        if char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise self._unclosed()
            text, self.at = self.text[self.at + 1 : end], end + 1
            return text, False
        if char == '"':
            return self._double(), False
        if char == "\\":
            text = self.text[self.at + 1 : self.at + 2]
            if text in ("", "\n", "\r"):
                raise CommandSyntaxError(_LINE_BREAKS) if text else self._unclosed()
            self.at += 2
            return text, False
        if char in " \t;&|<>()":
            if char == "(" and self.text[self.at - 1 : self.at].strip():
                raise self._refusal()
            return None
        raise self._refusal()

    def _double(self) -> str:
        found = _DOUBLE.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return _ESCAPED_IN_QUOTES.sub(r"\1", found[1])
        inner = re.compile(r'"(?:[^"$`\\]|\\[^\n]|\$(?=["\s]))*').match(self.text, self.at)
        self.at = inner.end() if inner else len(self.text)
        raise self._unclosed() if self.at >= len(self.text) else self._refusal()

    def _unclosed(self) -> CommandSyntaxError:
        return CommandSyntaxError("the command can't be read: a quote or a bracket may be missing")

    def _refusal(self) -> CommandSyntaxError:
        """Return the error for a character that isn't part of a literal word."""
        rest = self.text[self.at :]
        char = rest[:1]
        if char == "$":
            known = next((reason for start, reason in _DOLLARS if rest.startswith(start)), None)
            return CommandSyntaxError(known or (_VARIABLES if _NAME_AFTER_DOLLAR.match(rest) else _A_DOLLAR))
        if char == "`":
            return CommandSyntaxError(_SUBSTITUTION)
        if char == "(":
            what = "functions" if rest.startswith("()") else "extended patterns (`+(...)`)"
            return CommandSyntaxError(f"{what} are not supported: quote a parenthesis, or write each name")
        if char == "\\" or char.isspace() or char in "\x85\u2028\u2029":
            return CommandSyntaxError(_LINE_BREAKS)
        return self._unclosed()


def _expands_braces(bare: str) -> bool:
    """Whether a shell might expand braces in a word: a pair of them contains a comma or `..`."""
    opened: list[bool] = []
    for at, char in enumerate(bare):
        if char == "{":
            opened.append(False)
        elif char == "}" and opened and opened.pop():
            return True
        elif opened and (char == "," or bare.startswith("..", at)):
            opened[-1] = True
    return False
