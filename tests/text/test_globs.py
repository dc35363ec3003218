"""Globs match what shells say they match, however they are compared, and an index finds the same names."""

from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.linker.sources.name_index import NameIndex
from llm_do.text.globs import Atom, Glob, parse_glob

TEXTS = st.text("abA.é", max_size=8)
GLOBS = st.text("abA.é*?", max_size=6)


def matches_slowly(atoms: tuple[Atom, ...], text: str) -> bool:
    """Match by trying every length for every star."""
    if not atoms:
        return not text
    first, rest = atoms[0], atoms[1:]
    if first.kind == "star":
        return any(matches_slowly(rest, text[at:]) for at in range(len(text) + 1))
    return bool(text) and (first.kind == "any" or first.text == text[0]) and matches_slowly(rest, text[1:])


@given(GLOBS, TEXTS)
def test_a_glob_matches_what_it_says(glob: str, text: str) -> None:
    assert parse_glob(glob).matches(text) == matches_slowly(parse_glob(glob).atoms, text)


@given(GLOBS, TEXTS)
def test_without_regard_to_case_it_matches_as_in_lower_case(glob: str, text: str) -> None:
    assert parse_glob(glob).matches(text, fold=True) == matches_slowly(parse_glob(glob.lower()).atoms, text.lower())


@given(GLOBS, st.lists(TEXTS, max_size=6))
def test_an_index_finds_the_names_that_a_glob_matches(glob: str, names: list[str]) -> None:
    found: Glob = parse_glob(glob)
    assert list(NameIndex(names).find(found)) == [place for place, name in enumerate(names) if found.matches(name)]
