"""Characters in an agent file that a model reads and a person doesn't see, which may hide instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_do.diagnostics.codes.files import hidden_characters
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import Source

__all__ = ["find_hidden_characters"]

_MOST = 10
"""Places reported for one file."""

# Kept as text: most files are ASCII, and compiling would cost every start.
_KINDS = {
    "control": "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]+",
    "line break": "[\x85\u2028\u2029]+",
    "direction": "[\u202a-\u202e\u2066-\u2069]+",
    "mark": "[\u200e\u200f\u061c]+",
    "zero width": "[\u200b\u2060-\u2064\ufeff\u00ad\u180e\u034f]+",
    "joiner": "(?:(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f]))",
    "tag": "(?<!\U0001f3f4)[\U000e0000-\U000e007f]+",
    "variation": "(?:[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|(?<=[!-\x22$-)+-/:-\x7f\\s])[\ufe00-\ufe0f])",
}
_WORDS = {
    "control": "control character",
    "line break": "line break that only some readers see",
    "direction": "character that changes the direction of the text",
    "mark": "direction mark",
    "zero width": "zero-width character",
    "joiner": "zero-width joiner",
    "tag": "tag character",
    "variation": "variation selector",
}
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f"


def find_hidden_characters(source: Source) -> Iterator[Diagnostic]:
    """Warn about the first of a file's hidden characters, each run of them once.

    What languages need is left alone: joiners between letters that aren't ASCII or emoji, direction marks beside
    letters that are written from right to left, and the tags of a flag.
    """
    text = source.text
    if text.isascii() and text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable():
        return
    # A flag may contain tags; blanks in its place keep every offset.
    text = re.sub(_FLAG, lambda found: " " * len(found[0]), text)
    both = re.search(_RIGHT_TO_LEFT, text) is not None
    kinds = [(name, part) for name, part in _KINDS.items() if not (both and name == "mark")]
    pattern = re.compile("|".join(f"({part})" for _, part in kinds))
    for number, found in enumerate(pattern.finditer(text, 1 if text.startswith("\ufeff") else 0)):
        if number == _MOST:
            return
        name = kinds[(found.lastindex or 1) - 1][0]
        yield hidden_characters(_WORDS[name], found[0]).at(source.place(found.start(), found.end()))
