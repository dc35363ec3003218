"""Text as a report's file may hold it, and what a failure says."""

from __future__ import annotations

import re
from pathlib import Path

from llm_do.testing.cases.results import Failure
from llm_do.text.sanitizer import escape_controls

__all__ = ["describe_failure", "first_line", "place", "shorten", "writable"]

_KEPT = re.compile("([\n\t])")


def writable(text: str, *, lines: bool = True) -> str:
    r"""A text in which all that XML can't hold and a reader can't see is escaped as in Python.

    Args:
        text: Any text.
        lines: Whether line breaks and tabs stay.

    Example:
        >>> writable("\x1b[31mred\x00"), writable("a\nb"), writable("a\nb", lines=False)
        ('\\x1b[31mred\\x00', 'a\nb', 'a\\nb')
    """
    if not text.isascii():  # two halves of a character that stand together are that character
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if not lines:
        return escape_controls(text)
    return "".join(part if part in ("\n", "\t") else escape_controls(part) for part in _KEPT.split(text))


def shorten(text: str, most: int) -> str:
    """The beginning of a text that is longer than `most` characters, saying how much is left out.

    Example:
        >>> shorten("abcdef", 4)
        'abcd… (2 more characters)'
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def first_line(failures: tuple[Failure, ...]) -> str:
    """What the first of a case's failures says, and how many others there are."""
    if not failures:
        return ""
    more = len(failures) - 1
    return writable(failures[0].what, lines=False) + (f" (and {more} more)" if more else "")


def place(file: Path, line: int | None, folder: Path) -> str:
    """Where something is, as seen from the folder that `folder`, the project's, is relative to."""
    name = writable((folder / file).as_posix(), lines=False)
    return name if line is None else f"{name}:{line}"


def describe_failure(failure: Failure, folder: Path) -> str:
    """A failure as lines of text.

    Args:
        failure: The failure.
        folder: The project's folder.

    Example:
        >>> print(describe_failure(Failure(Path("a.test.yaml"), 3, "the output differs", "yes", "no"), Path("demo")))
        demo/a.test.yaml:3: the output differs
          expected: yes
          got:      no
    """
    where = f"{place(failure.file, failure.line, folder)}: " if failure.file is not None else ""
    lines = [where + writable(failure.what, lines=False)]
    if failure.expected is not None:
        lines.append(f"  expected: {writable(failure.expected, lines=False)}")
    if failure.got is not None:
        lines.append(f"  got:      {writable(failure.got, lines=False)}")
    if failure.block is not None:
        lines += [f"  {line}".rstrip() for line in writable(failure.block).split("\n")]
    if failure.hint is not None:
        lines.append(f"  {writable(failure.hint, lines=False)}")
    return "\n".join(lines)
