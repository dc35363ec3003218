"""Globs: reading them, and matching them against a text or a path in time linear in the text.

They come from models and from files in a project, so none may take exponential time. Rules have a syntax of their own,
with quotes, which `llm_do.policy.pattern` reads.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

__all__ = [
    "Atom",
    "Atoms",
    "Glob",
    "PathGlob",
    "character_class",
    "match_segments",
    "matches_any",
    "parse_glob",
    "path_parts",
    "split_atoms",
]


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": re.escape(string.punctuation),
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_SAMPLES = string.ascii_letters + string.digits + string.punctuation


class Atom(NamedTuple):
    """The smallest part of a glob.

    Args:
        kind: `char` is itself, `star` any text, `any` one character, `class` one of several, `void`
            nothing (what an empty pair of quotes leaves).
        text: The character, or the regular expression of a class.
        bare: False for a character that was quoted, so that it separates nothing.
    """

    kind: Literal["char", "star", "any", "class", "void"]
    text: str = ""
    bare: bool = True


Atoms = tuple[Atom, ...]


def split_atoms(atoms: Sequence[Atom], separators: str, *, quoted: bool = False) -> list[Atoms]:
    """The atoms between separating characters."""
    out: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.kind == "char" and atom.text in separators and (atom.bare or quoted):
            out.append([])
        else:
            out[-1].append(atom)
    return [tuple(part) for part in out]


def path_parts(path: str) -> list[str] | None:
    """The segments of a resolved path.

    Example:
        >>> path_parts("./notes//todo.md"), path_parts("."), path_parts("a/../b")
        (['notes', 'todo.md'], [], None)
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        return None
    return ["/", *parts] if path.startswith("/") else parts


@lru_cache(maxsize=2048)
def parse_glob(text: str) -> Glob:
    r"""Read a glob as shells write it: `*`, `?`, `[a-z]`, `[!a]`, `[[:digit:]]`; a backslash quotes.

    Example:
        >>> [parse_glob("*.[ch]").matches(name) for name in ("main.c", "main.py")]
        [True, False]
    """
    atoms: list[Atom] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            atoms.append(Atom("star"))
        elif char == "?":
            atoms.append(Atom("any"))
        elif char == "[" and (read := _bracket(text, at)) is not None:
            atom, at = read
            atoms.append(atom)
        elif char == "\\" and at < len(text):
            atoms.append(Atom("char", text[at], bare=False))
            at += 1
        else:
            atoms.append(Atom("char", char))
    return Glob(tuple(atoms))


def matches_any(text: str, globs: Iterable[str]) -> bool:
    """Whether one of several globs matches a text.

    Example:
        >>> matches_any("search_web", ["read_*", "search_*"])
        True
    """
    return any(parse_glob(glob).matches(text) for glob in globs)


def character_class(ranges: Iterable[tuple[str, str]], names: Iterable[str] = (), *, negated: bool = False) -> Atom:
    """One character of several: ranges, and POSIX classes by name.

    Example:
        >>> Glob((character_class([("a", "c")], ["digit"]),)).matches("7")
        True
    """
    members = [re.escape(low) + (f"-{re.escape(high)}" if low != high else "") for low, high in ranges if low <= high]
    members += [_CLASSES[name] for name in names]
    if not members:  # only ranges that run backwards
        return Atom("class", "." if negated else "(?!)")
    return Atom("class", f"[{'^' if negated else ''}{''.join(members)}]")


def _bracket(text: str, at: int) -> tuple[Atom, int] | None:
    """Read what follows a `[`; None when nothing closes it, so that it is an ordinary character."""
    negated = text[at : at + 1] in ("!", "^")
    start = at = at + negated
    ranges: list[tuple[str, str]] = []
    names: list[str] = []
    while at < len(text) and (text[at] != "]" or at == start):
        if text.startswith("[:", at) and (end := text.find(":]", at)) > 0 and text[at + 2 : end] in _CLASSES:
            names.append(text[at + 2 : end])
            at = end + 2
            continue
        at += text[at] == "\\" and at + 1 < len(text)
        low = high = text[at]
        if text[at + 1 : at + 2] == "-" and text[at + 2 : at + 3] not in ("", "]"):
            at += 2
            at += text[at] == "\\" and at + 1 < len(text)
            high = text[at]
        ranges.append((low, high))
        at += 1
    return (character_class(ranges, names, negated=negated), at + 1) if at < len(text) else None


@dataclass(frozen=True)
class Glob:
    """A glob over one text, in which `*` stands for any text at all."""

    atoms: Atoms

    @cached_property
    def literal(self) -> str | None:
        """The only text that matches, or None when there is a wildcard."""
        if all(atom.kind in ("char", "void") for atom in self.atoms):
            return "".join(atom.text for atom in self.atoms)
        return None

    @cached_property
    def prefix(self) -> str:
        """The literal text before the first wildcard."""
        out: list[str] = []
        for atom in self.atoms:
            if atom.kind not in ("char", "void"):
                break
            out.append(atom.text)
        return "".join(out)

    @cached_property
    def sample(self) -> str:
        """A text that matches, `x` or the shortest where it has the choice."""
        out: list[str] = []
        for atom in self.atoms:
            if atom.kind == "class":
                out.append(next((char for char in _SAMPLES if re.fullmatch(atom.text, char)), "x"))
            else:
                out.append({"star": "", "any": "x"}.get(atom.kind, atom.text))
        return "".join(out) or "x"

    @cached_property
    def is_star(self) -> bool:
        """Whether it is nothing but `*`."""
        return bool(self.atoms) and all(atom.kind == "star" for atom in self.atoms)

    @cached_property
    def _pieces(self) -> tuple[str, ...] | None:
        """The texts between its stars, None if it has other wildcards."""
        if not all(atom.kind in ("char", "star", "void") for atom in self.atoms):
            return None
        return tuple("".join(atom.text for atom in part) for part in _between_stars(self.atoms))

    @cached_property
    def _folded_pieces(self) -> tuple[str, ...]:
        return tuple(piece.lower() for piece in self._pieces or ())

    @cached_property
    def _expression(self) -> str:
        # Between two stars the leftmost place is always as good as any later one: atomic groups say
        # so to the engine, which keeps a pattern with many stars from taking exponential time.
        pieces: list[str] = [""]
        for atom in self.atoms:
            if atom.kind == "star":
                pieces.append("")
            elif atom.kind in ("char", "void"):
                pieces[-1] += re.escape(atom.text)
            else:
                pieces[-1] += "." if atom.kind == "any" else atom.text
        if len(pieces) == 1:
            return pieces[0]
        middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
        return f"{pieces[0]}{middle}.*{pieces[-1]}"

    @cached_property
    def _exact(self) -> re.Pattern[str]:
        return re.compile(self._expression, re.DOTALL)

    @cached_property
    def _folded(self) -> re.Pattern[str]:
        return re.compile(self._expression, re.DOTALL | re.IGNORECASE)

    @cached_property
    def _lower(self) -> str:
        return (self.literal or "").lower()

    @cached_property
    def _is_ascii(self) -> bool:
        return all(atom.text.isascii() for atom in self.atoms)

    @cached_property
    def _one_spelling(self) -> Glob:
        """It with its characters in the spelling that `_one_spelling` gives a text."""
        atoms: list[Atom] = []
        for is_char, run in groupby(self.atoms, lambda atom: atom.kind == "char"):
            if is_char:
                atoms += [Atom("char", char) for char in _one_spelling("".join(atom.text for atom in run))]
            else:
                atoms += run
        return Glob(tuple(atoms))

    def matches(self, text: str, *, fold: bool = False) -> bool:
        """Whether the whole text matches."""
        literal = self.literal
        if literal is not None and (not fold or text == literal):
            return text == literal
        simple = self._is_ascii and text.isascii()
        if literal is not None and simple:
            return text.lower() == self._lower
        if self._matches(text, fold=fold):
            return True
        return fold and not simple and self._one_spelling._matches(_one_spelling(text), fold=True)

    def _matches(self, text: str, *, fold: bool) -> bool:
        literal = self.literal
        if literal is not None:
            return text == literal or (fold and text.lower() == self._lower)
        # Most globs are texts between stars: compiling an expression for each of thousands would take seconds.
        if self._pieces is not None and not fold:
            return _has_pieces(text, self._pieces)
        if self._pieces is not None and self._is_ascii and text.isascii():
            return _has_pieces(text.lower(), self._folded_pieces)
        if fold:
            return self._folded.fullmatch(text) is not None
        return self._exact.fullmatch(text) is not None


def _between_stars(atoms: Atoms) -> list[list[Atom]]:
    parts: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.kind == "star":
            parts.append([])
        else:
            parts[-1].append(atom)
    return parts


def _has_pieces(text: str, pieces: Sequence[str]) -> bool:
    """Whether a text begins and ends with the first and the last of several pieces, and has the others in between."""
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _one_spelling(text: str) -> str:
    """A text without regard to case, with letters and their marks as one character where Unicode has such a one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@dataclass(frozen=True)
class PathGlob:
    """A glob over a path's segments, in which `*` stays within a segment and `**` spans any number."""

    segments: tuple[Glob | None, ...]
    """None is `**`."""

    @classmethod
    def of(cls, atoms: Atoms) -> PathGlob:
        """The path glob that these atoms spell; one that ends in `/` means what is below that folder."""
        raw = split_atoms(atoms, "/", quoted=True)
        parts = [Glob(part) for part in raw]
        segments: list[Glob | None] = [
            None if glob.is_star and len(glob.atoms) > 1 else glob for glob in parts if glob.literal not in ("", ".")
        ]
        if len(raw) > 1 and parts[-1].literal == "" and segments and segments[-1] is not None:
            segments.append(None)
        if len(raw) > 1 and parts[0].literal == "":
            segments.insert(0, Glob((Atom("char", "/"),)))
        return cls(tuple(segments))

    def matches(self, parts: Sequence[str], *, restrictive: bool = False) -> bool:
        """Whether a path matches."""
        segments = self.segments
        if not restrictive and len(segments) > 1 and segments[-1] is None:
            segments = (*segments[:-1], Glob((Atom("star"),)), None)
        return match_segments(segments, parts, fold=restrictive, below=restrictive)


def match_segments(
    segments: Sequence[Glob | None], parts: Sequence[str], *, fold: bool = False, below: bool = False
) -> bool:
    """Whether a path's parts match, None being any number of them; with `below`, what is below a match does too.

    It backtracks to the last None only, which is exact for globs and bounded by the product of the two lengths.
    """
    if not segments:
        return not parts
    at = here = mark = 0
    back = -1
    while here < len(parts):
        glob = segments[at] if at < len(segments) else None
        if at == len(segments) and below:
            return True
        if at < len(segments) and glob is None:
            back, mark, at = at, here, at + 1
            if at == len(segments):
                return True
        elif glob is not None and glob.matches(parts[here], fold=fold):
            at, here = at + 1, here + 1
        elif back >= 0:
            mark += 1
            at, here = back + 1, mark
        else:
            return False
    return all(glob is None for glob in segments[at:])
