"""Read argument vectors by the grammar of their programs: what each word is, and whether it is known to be harmless."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from llm_do._startup.frozen import frozen
from llm_do.policy.commands.grammar import Grammar, find_grammar, known_programs
from llm_do.policy.commands.program_texts import JUDGES, is_product
from llm_do.policy.commands.unknown_programs import is_harmless_option

__all__ = ["Piece", "Reading", "is_url", "read_command"]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_TRANSPORT = re.compile(r"(?:ext|fd)::", re.IGNORECASE)
"""An address for which git runs a program."""
_NAME = re.compile(r"[\w:,-]+")
"""A name of something that is installed, which no path of a file looks like."""
_READING_METHODS = ("GET", "HEAD", "OPTIONS")
_URL = re.compile(r"(?:https?|ssh|git|ftp|wss?|git\+(?:https?|ssh)|oci|s3|gs)://\S+", re.IGNORECASE)


class Piece(NamedTuple):
    """A word of a command, or the part of it that is an option's value.

    Args:
        role: `option`, `text`, `path`, `any`, `ref`, `url`, `sent` (what changes something at a URL), `sub` (a
            subcommand), `script`, `launch`, `loose` (an option of an unknown program, with any value), or `unknown`:
            not known to be harmless.
        text: Its text.
        word: Its place in the argument vector.
    """

    role: str
    text: str
    word: int


@frozen
class Reading:
    """What the words of a command are.

    Args:
        pieces: Its words and their parts, in order.
        subcommand: The program and its subcommands, those of the program it launches if it launches one.
        reads: Whether the command only reads the paths it names and files below them.
        follows: Whether it follows links below these paths.
        open_launch: Whether the next operand would be a program to launch, or a script.
    """

    pieces: tuple[Piece, ...]
    subcommand: str
    reads: bool
    follows: bool
    open_launch: bool

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words that aren't known to be harmless."""
        return tuple(piece.text for piece in self.pieces if piece.role == "unknown")


def is_url(text: str) -> bool:
    """Whether a word is a URL of a kind that is no path.

    Example:
        >>> is_url("https://example.org/x"), is_url("file:///etc/passwd")
        (True, False)
    """
    return _URL.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def read_command(argv: tuple[str, ...]) -> Reading:
    """Read an argument vector.

    Example:
        >>> [(piece.role, piece.text) for piece in read_command(("grep", "-rn", "/api", "src")).pieces]
        [('option', '-rn'), ('text', '/api'), ('path', 'src')]
        >>> read_command(("python", "-m", "pytest", "-x", "--basetemp=src")).unknown
        ('--basetemp=src',)
    """
    reader = _Reader(list(enumerate(argv)))
    reader.read()
    return Reading(
        tuple(reader.pieces),
        reader.grammar.name,
        (reader.reads or _asks_version(argv))
        and "/" not in argv[0]
        and not any(piece.role in _ACTS for piece in reader.pieces),
        reader.follows,
        reader.open_launch,
    )


def _asks_version(argv: tuple[str, ...]) -> bool:
    return argv[1:] == ("--version",) and find_grammar(argv[0]) is not None


_ACTS = frozenset({"unknown", "launch", "script"})


class _Reader:
    """Reads the words of one command, and of the one that it launches."""

    def __init__(self, words: list[tuple[int, str]]) -> None:
        self.words = words
        self.pieces: list[Piece] = []
        self.reads = False
        self.follows = False
        self.open_launch = False
        self.grammar = Grammar("")
        self.known = False
        self.at_first_word = False
        self.operands = 0
        self.present: set[str] = set()

    def read(self) -> None:
        """Read a command whose program is the next word."""
        start, program = self._next()
        program = program.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        self._enter(program)
        while self.words:
            place, word = self.words.pop(0)
            self.at_first_word = place == start + 1
            if word == "--" and "words" not in self.grammar.attributes:
                self.pieces.append(Piece("option", word, place))
                if self._after_dashes():
                    return
            elif not self._is_option(word):
                if self._operand(place, word):
                    return
            elif not self.known:
                self._option_of_unknown(place, word)
            else:
                self._option(place, word)
        self._leave()

    def _enter(self, name: str) -> None:
        grammar = find_grammar(name)
        self.known = grammar is not None
        self.grammar = grammar or Grammar(name)
        self.operands, self.present = 0, set()
        if (first := self.grammar.groups.get("first")) and any(self._has(first, word) for _, word in self.words):
            self.operands = 1

    def _leave(self) -> None:
        """Note what holds for the command as a whole."""
        grammar = self.grammar
        if grammar.groups.get("nofollow", set()) & self.present:
            self.follows = False
        listed = bool(grammar.groups.get("lists", set()) & self.present)
        changes = bool(grammar.groups.get("changes", set()) & self.present)
        self.reads = "reads" in grammar.attributes or (
            "bare" in grammar.attributes and (listed or self.operands == 0) and not changes
        )
        if "listing" in grammar.attributes and not listed:
            self.pieces = [each._replace(role="unknown") if each.role == "text" else each for each in self.pieces]
        self.open_launch = grammar.dashed == "launch" or any(
            role.removesuffix("*") in ("launch", "script") for role in grammar.roles[self.operands :]
        )

    def _has(self, options: set[str], word: str) -> bool:
        if word.startswith("--"):
            return word.partition("=")[0] in options
        return word.startswith("-") and any(f"-{letter}" in options for letter in word[1:])

    def _is_option(self, word: str) -> bool:
        attributes = self.grammar.attributes
        if "words" in attributes or word in ("-", ""):
            return False
        if "expression" in attributes:
            return word.startswith("-") or word in ("(", ")", "!", ",")
        if "plus" in attributes and word.startswith("+"):
            return True
        return word.startswith("-") or ("bundled" in attributes and self.at_first_word)

    def _next(self) -> tuple[int, str]:
        return self.words.pop(0)

    def _after_dashes(self) -> bool:
        """Read the words after `--`; return whether that reads all of them."""
        dashed = self.grammar.dashed
        if dashed is None:
            while self.words:
                if self._operand(*self._next()):
                    return True
            self._leave()
            return True
        self._leave()
        if dashed == "launch" and self.words:
            self._launch()
        elif dashed:
            self._enter(dashed)
            self.open_launch = False
            return False
        else:
            self._enter("")
            return False
        return True

    def _launch(self) -> None:
        """Read the command that this one launches, whose program is the next word."""
        while self.grammar.name == "env" and self.words and _ASSIGNMENT.match(self.words[0][1]):
            place, word = self._next()
            self.pieces.append(Piece("unknown", word, place))
        if not self.words:
            self.open_launch = True
            return
        place, word = self.words[0]
        self.pieces.append(Piece("launch", word, place))
        self.follows = False
        self.read()

    def _operand(self, place: int, word: str) -> bool:
        """Read an operand; return whether it was a command that is launched, which is read to its end."""
        grammar = self.grammar
        if "sub" in grammar.attributes or grammar.roles == ("sub",):
            name = f"{grammar.name} {word}"
            if self.operands == 0 and (name in known_programs() or grammar.roles == ("sub",)):
                self.pieces.append(Piece("sub", word, place))
                self._enter(name)
                return False
        role = grammar.role(self.operands)
        self.operands += 1
        if role == "launch":
            self.words.insert(0, (place, word))
            self._launch()
            return True
        self._add(role, word, place)
        if role == "script":  # the words behind it are its own
            self.grammar, self.known = Grammar(word), False
        return False

    def _add(self, role: str, text: str, place: int) -> None:
        """Add an operand or a value in the role that it has, or as unknown if it isn't harmless in it."""
        judge = JUDGES.get(role)
        if role == "lines":  # lines of a file, as in `1,9:path` or `:function:path`
            role, text = "path", text.rpartition(":")[2]
        elif role == "local":  # `host:x` is an archive on another machine, which a program fetches
            role = "unknown" if ":" in text else "path"
        elif role == "refspec":  # `+x` forces, and `:x` deletes
            role = "unknown" if text.startswith(("+", ":")) else "any"
        elif role == "made":
            role = "path" if is_product(text) else "unknown"
        elif role == "name":
            role = "text" if _NAME.fullmatch(text) else "unknown"
        elif role == "method":
            role = "text" if text.upper() in _READING_METHODS else "sent"
        elif role == "body":
            role = "sent" if JUDGES["data"](text) else "unknown"
        elif judge is not None:
            role = "text" if judge(text) else "unknown"
        elif (
            role in ("none", "write")
            or (
                text.startswith("@")
                and (role in ("path", "any", "script") or "response" in self.grammar.attributes or not self.known)
            )
            or (role in ("any", "ref") and _TRANSPORT.match(text))
        ):
            role = "unknown"
        elif role in ("any", "ref") and is_url(text):
            role = "url"
        self.pieces.append(Piece(role, text, place))

    def _option_of_unknown(self, place: int, word: str) -> None:
        following = self.words[0][1] if self.words else ""
        harmless = is_harmless_option(word, following) and "=@" not in word
        self.pieces.append(Piece("loose" if harmless else "unknown", word, place))

    def _option(self, place: int, word: str) -> None:
        attributes = self.grammar.attributes
        if "plus" in attributes and word.startswith("+"):
            self.pieces.append(Piece("unknown", word, place))
        elif "bundled" in attributes and not word.startswith("-"):
            letters = {f"-{letter}" for letter in word}
            known = all(option in self.grammar.options for option in letters)
            self.present.update(letters)
            self.pieces.append(Piece("option" if known else "unknown", word, place))
        elif "digits" in attributes and word[1:].isascii() and word[1:].isdigit():
            self.pieces.append(Piece("option", word, place))
        elif word.startswith("--") or attributes & {"single", "expression"}:
            self._long(place, word)
        else:
            self._short(place, word)

    def _long(self, place: int, word: str) -> None:
        name, equals, value = word.partition("=")
        if "single" in self.grammar.attributes and name not in self.grammar.options:
            name = f"-{name.lstrip('-')}"
        kind = self.grammar.options.get(word, self.grammar.options.get(name))
        flags = kind in ("flags", "follow", "maybe")
        if kind is None or (equals and kind in ("flags", "follow") and word not in self.grammar.options):
            harmless_value = "single" in self.grammar.attributes and value in ("true", "false", "0", "1")
            if kind is None or not harmless_value:
                self.pieces.append(Piece("unknown", word, place))
                return
        self.present.add(name)
        if flags or equals:
            self.pieces.append(Piece("option", word, place))
            self.follows |= kind == "follow"
            if equals and not flags:
                self._value(kind, value, place)
            elif equals and kind == "maybe" and value.startswith(("@", "/", "~", "..")):
                self.pieces[-1] = Piece("unknown", word, place)
        else:
            self._separate_value(place, word, kind)

    def _short(self, place: int, word: str) -> None:
        for at, letter in enumerate(word[1:], start=2):
            kind = self.grammar.options.get(f"-{letter}")
            if kind is None:
                self.pieces.append(Piece("unknown", word, place))
                return
            self.present.add(f"-{letter}")
            if kind in ("flags", "follow"):
                self.follows |= kind == "follow"
                continue
            if kind != "maybe" and not word[at:]:
                self._separate_value(place, word, kind)
                return
            self.pieces.append(Piece("option", word, place))
            if kind != "maybe":
                self._value(kind, word[at:], place)
            return
        self.pieces.append(Piece("option", word, place))

    def _separate_value(self, place: int, word: str, kind: str | re.Pattern[str] | None) -> None:
        """Read the value of an option in the next word, which must not look like another option."""
        following = self.words[0][1] if self.words else None
        dashed = following is not None and following.startswith("-") and "expression" not in self.grammar.attributes
        if following is None or (dashed and following != "-" and not following[1:].isdecimal()):
            self.pieces.append(Piece("unknown", word, place))
            return
        self.pieces.append(Piece("option", word, place))
        next_place, value = self._next()
        self._value(kind, value, next_place)

    def _value(self, kind: str | re.Pattern[str] | None, value: str, place: int) -> None:
        if isinstance(kind, re.Pattern):
            self.pieces.append(Piece("text" if kind.fullmatch(value) else "unknown", value, place))
        elif kind == "launch":
            self.words.insert(0, (place, value))
            self._launch()
            self.words.clear()
        elif kind in ("pair", "pair-path"):
            self._add("text", value, place)
            if self.words:
                next_place, second = self._next()
                self._add("path" if kind == "pair-path" else "text", second, next_place)
        elif kind is not None:
            self._add(kind, value, place)
