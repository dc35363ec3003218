"""Values that stand for all others: one for each way in which a set of patterns can match.

Patterns see only whether an argument matches them. So of all paths, texts or hosts, it is enough to decide about one
for each combination of patterns that match: what holds for these calls holds for every call. The values are found by
following all patterns at once, character by character and segment by segment, the shortest first.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from llm_do.policy.pattern import ArgumentPattern
from llm_do.text.globs import Atom, Glob

__all__ = [
    "TooManyError",
    "host_texts",
    "parameter_texts",
    "representative_paths",
    "representative_texts",
    "segment_paths",
]

_MOST = 4_000
"""The most combinations to examine."""

_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-. "
_TEXT_CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \n"
_PARAMETER_CHARACTERS = string.ascii_letters + string.digits + "_-.=~"
_HOST_CHARACTERS = string.ascii_lowercase + string.digits + ".-:"

_State = TypeVar("_State")
_Places: TypeAlias = "frozenset[int]"


class TooManyError(Exception):
    """The patterns can be combined in too many ways to examine."""


def representative_texts(patterns: Iterable[ArgumentPattern]) -> tuple[str, ...]:
    """Return a text for each way in which the patterns can match one.

    Example:
        >>> from llm_do.policy.pattern import parse_pattern
        >>> found = [parse_pattern(text).named[0][1] for text in ("send(to=ann)", "send(to=a*)")]
        >>> texts = representative_texts(found)
        >>> "ann" in texts, any(text != "ann" and text.startswith("a") for text in texts)
        (True, True)
    """
    return _texts(tuple(dict.fromkeys(pattern.plain for pattern in patterns)), _TEXT_CHARACTERS, 1)


def host_texts(globs: tuple[Glob, ...]) -> tuple[str, ...]:
    """Return a text that may be a host for each way in which globs can match one."""
    return _texts(globs, _HOST_CHARACTERS, 3)


def parameter_texts(globs: tuple[Glob, ...]) -> tuple[str, ...]:
    """Return a text that may be a parameter of a query for each way in which globs can match one."""
    return _texts(globs, _PARAMETER_CHARACTERS, 1)


def representative_paths(patterns: Iterable[ArgumentPattern]) -> tuple[str, ...]:
    """Return a path for each way in which the patterns can match one.

    Raises:
        TooManyError: There are too many ways.

    Example:
        >>> from llm_do.policy.pattern import parse_pattern
        >>> found = [parse_pattern(text).primary for text in ("files.write(src/**)", "write_file(src/*.py)")]
        >>> {".", "src", "src/.py"} <= set(representative_paths(found))
        True
    """
    return segment_paths(tuple(dict.fromkeys(pattern.path.segments for pattern in patterns)))


@lru_cache(maxsize=256)
def _texts(globs: tuple[Glob, ...], characters: str, visits: int, *, names: bool = False) -> tuple[str, ...]:
    """Return a text for each reachable combination of places in the globs; with `names`, only names of files."""
    nowhere = tuple(each for glob in globs for each in (_closure(glob, frozenset({0})),) * 2)
    no_name = ("", ".", "..") if names else ()

    def steps(state: tuple[str, tuple[_Places, ...]]) -> Iterable[tuple[str, tuple[str, tuple[_Places, ...]]]]:
        before, every = state
        seen: set[tuple[_Places, ...]] = set()
        for char in _different_characters(globs, every, characters):
            after = tuple(
                _advance(globs[index // 2], places, char, fold=bool(index % 2)) for index, places in enumerate(every)
            )
            if (names and char == "/") or (after in seen and not (names and char == ".")):
                continue
            seen.add(after)
            # What isn't a name yet is a state of its own, so that something comes after it.
            text = before + char if names and before in no_name else before
            yield char, (text if text in no_name else "x" if names else "", after)

    texts = ("".join(chars) for chars in _explore(("", nowhere), steps, visits))
    return tuple(text for text in texts if text not in no_name)


@lru_cache(maxsize=256)
def segment_paths(patterns: tuple[tuple[Glob | None, ...], ...]) -> tuple[str, ...]:
    """Return a path for each reachable combination of places in the patterns' segments."""
    globs = tuple(dict.fromkeys(glob for segments in patterns for glob in segments if glob is not None))
    names = _texts(globs, _NAME_CHARACTERS, 1, names=True)
    matched = {name: tuple((glob.matches(name), glob.matches(name, fold=True)) for glob in globs) for name in names}
    different = [*{matches: name for name, matches in reversed(matched.items())}.values()][::-1]
    numbers = {glob: number for number, glob in enumerate(globs)}
    longest = max(map(len, patterns), default=0) + 1
    tracked = [(segments, mode) for segments in patterns for mode in (0, 1)]
    start = (0, tuple(_segment_closure(segments, {0}) for segments, _ in tracked))

    def steps(state: tuple[int, tuple[_Places, ...]]) -> Iterable[tuple[str, tuple[int, tuple[_Places, ...]]]]:
        length, places = state
        for name in different:
            row = matched[name]
            after = tuple(
                _segment_advance(segments, at, lambda glob, mode=mode, row=row: row[numbers[glob]][mode])
                for (segments, mode), at in zip(tracked, places, strict=True)
            )
            # Beyond the longest pattern, the number of segments makes no difference.
            yield name, (min(length + 1, longest), after)

    return tuple("/".join(parts) or "." for parts in _explore(start, steps, 1))


def _explore(
    start: _State, steps: Callable[[_State], Iterable[tuple[str, _State]]], visits: int
) -> list[tuple[str, ...]]:
    """Return the shortest ways to every state, breadth first; up to `visits` ways to each."""
    found: list[tuple[str, ...]] = [()]
    waiting: list[tuple[tuple[str, ...], _State]] = [((), start)]
    seen = {start: 1}
    for way, state in waiting:
        for symbol, after in steps(state):
            count = seen.get(after, 0)
            if count >= visits:
                continue
            seen[after] = count + 1
            if len(seen) > _MOST:
                raise TooManyError
            found.append((*way, symbol))
            waiting.append(((*way, symbol), after))
    return found


def _different_characters(globs: Sequence[Glob], state: tuple[_Places, ...], characters: str) -> list[str]:
    """Return characters between which the globs can tell at these places, one of each kind."""
    atoms = {
        globs[index // 2].atoms[at]
        for index, places in enumerate(state)
        for at in places
        if at < len(globs[index // 2].atoms)
    }
    written = sorted({atom.text for atom in atoms if atom.kind == "char"})
    named = dict.fromkeys([*written, *(each for char in written for each in _other_case(char))])
    classes = [atom for atom in atoms if atom.kind == "class"]
    kinds: dict[tuple[bool, ...], str] = {}
    for char in characters:
        if char not in named:
            kinds.setdefault(tuple(_takes(atom, char, fold=fold) for atom in classes for fold in (False, True)), char)
            if not classes:
                break
    return [*named, *kinds.values()]


def _other_case(char: str) -> tuple[str, ...]:
    """Return the same letter in the other case, unless that is several letters."""
    return tuple(each for each in (char.swapcase(),) if each != char and len(each) == 1)


@lru_cache(maxsize=16_384)
def _closure(glob: Glob, places: _Places) -> _Places:
    """Return the places in a glob that are reached without a character."""
    found, todo = set(places), list(places)
    while todo:
        at = todo.pop()
        if at < len(glob.atoms) and glob.atoms[at].kind in ("star", "void") and at + 1 not in found:
            found.add(at + 1)
            todo.append(at + 1)
    return frozenset(found)


@lru_cache(maxsize=65_536)
def _advance(glob: Glob, places: _Places, char: str, *, fold: bool) -> _Places:
    after: set[int] = set()
    for at in places:
        if at < len(glob.atoms):
            atom = glob.atoms[at]
            if atom.kind == "star":
                after.add(at)
            elif _takes(atom, char, fold=fold):
                after.add(at + 1)
    return _closure(glob, frozenset(after))


@lru_cache(maxsize=16_384)
def _takes(atom: Atom, char: str, *, fold: bool) -> bool:
    """Whether an atom that stands for one character stands for this one."""
    if atom.kind == "char":
        return atom.text == char or (fold and atom.text.casefold() == char.casefold())
    if atom.kind == "any":
        return True
    flags = re.DOTALL | (re.IGNORECASE if fold else 0)
    return atom.kind == "class" and re.fullmatch(atom.text, char, flags) is not None


def _segment_closure(segments: Sequence[Glob | None], places: set[int]) -> _Places:
    todo = list(places)
    while todo:
        at = todo.pop()
        if at < len(segments) and segments[at] is None and at + 1 not in places:
            places.add(at + 1)
            todo.append(at + 1)
    return frozenset(places)


def _segment_advance(segments: Sequence[Glob | None], places: _Places, takes: Callable[[Glob], bool]) -> _Places:
    after: set[int] = set()
    for at in places:
        if at == len(segments):
            after.add(at + 1)  # below what matches
        elif at > len(segments):
            after.add(at)
        else:
            segment = segments[at]
            if segment is None:
                after.add(at)
            elif takes(segment):
                after.add(at + 1)
    return _segment_closure(segments, after)
