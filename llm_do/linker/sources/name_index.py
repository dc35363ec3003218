"""`NameIndex`: finds which of many names a glob matches, without comparing it with each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from llm_do.text.globs import Glob

__all__ = ["NameIndex"]


class NameIndex:
    """Names in which globs are looked up: only those that have all the characters of a glob are compared with it.

    Args:
        names: The names, in the order in which they are found.

    Example:
        >>> from llm_do.text.globs import parse_glob
        >>> index = NameIndex(["read_file", "write_file", "shell"])
        >>> [list(index.find(parse_glob(text))) for text in ("*_file", "shell", "*{x}*")]
        [[0, 1], [2], []]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            self._places.setdefault(name, []).append(place)

    @cached_property
    def _having(self) -> Mapping[str, int]:
        """For each character, a number whose bytes say which names have it."""
        characters: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(len(self._names)))
        for place, name in enumerate(self._names):
            for character in set(name):
                characters[character][place] = 1
        return {character: int.from_bytes(places, "little") for character, places in characters.items()}

    def find(self, glob: Glob) -> Sequence[int]:
        """Return the places of the names that a glob matches."""
        if glob.literal is not None:
            return self._places.get(glob.literal, ())
        if glob.is_star:
            return range(len(self._names))
        return [place for place in self._candidates(glob) if glob.matches(self._names[place])]

    def _candidates(self, glob: Glob) -> Sequence[int]:
        """The places of the names that have all the characters of a glob."""
        characters = {atom.text for atom in glob.atoms if atom.kind == "char"}
        if not characters:
            return range(len(self._names))
        having = [self._having.get(character, 0) for character in characters]
        common = having[0]
        for each in having:
            common &= each
        if not common:
            return ()
        flags = common.to_bytes(len(self._names), "little")
        places: list[int] = []
        place = flags.find(1)
        while place >= 0:
            places.append(place)
            place = flags.find(1, place + 1)
        return places
