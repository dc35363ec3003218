"""Paths as text: split and validate a model's path, compare names, and format paths for messages.

Nothing here touches a disk.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from llm_do.files.refusals import FileRefusedError

__all__ = ["WINDOWS", "display_path", "fold_name", "outside_refusal", "split_path"]

WINDOWS = os.name == "nt"

_MAX_LENGTH = 4096
_MAX_PARTS = 256
_IGNORED_BY_MACOS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF],
)
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def split_path(path: str, roots: Sequence[str], *, windows: bool = WINDOWS) -> list[str]:
    """Split a path into names relative to the root; `..` stays, because only a walk knows where it leads.

    Example:
        >>> split_path("a//./b/../c", ["/srv"], windows=False)
        ['a', 'b', '..', 'c']
        >>> split_path("/srv/a", ["/srv"], windows=False)
        ['a']
    """
    _check_text(path)
    text = path.replace("\\", "/") if windows else path
    for root in roots:
        prefix = (root.replace("\\", "/") if windows else root).rstrip("/")
        head, tail = text[: len(prefix)], text[len(prefix) :]
        same = head.casefold() == prefix.casefold() if windows else head == prefix
        if same and (tail.startswith("/") or (not tail and prefix)):
            text = "./" + tail.lstrip("/")
            break
    if text.startswith("/") or (windows and text[1:2] == ":"):
        raise outside_refusal(path)
    if text.startswith("~"):
        raise FileRefusedError(
            display_path(path),
            "`~` does not stand for a home folder here",
            reason="outside",
            hint="Use a path below the root; write ./~name for a name that begins with ~.",
        )
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if len(parts) > _MAX_PARTS:
        raise FileRefusedError(display_path(path), "it has too many parts", reason="invalid")
    if windows and any(_is_reserved(part) for part in parts):
        raise FileRefusedError(display_path(path), "Windows reserves this name", reason="invalid")
    return parts


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Normalize a name, so that all names that some file system treats as equal become equal.

    This ignores case, Unicode composition, the characters that macOS ignores, and the trailing dots, trailing spaces,
    stream names and short names of Windows. In doubt, two names are equal.

    Example:
        >>> {fold_name(name) for name in (".GIT", ".git. ", "git~1", ".g\\u200cit::$INDEX_ALLOCATION")} == {".git"}
        True
    """
    name = unicodedata.normalize("NFKC", name).translate(_IGNORED_BY_MACOS)
    name = unicodedata.normalize("NFC", name.casefold()).split(":", 1)[0]
    name = name.rstrip(". ") or name
    return ".git" if name == "git~1" else name


def outside_refusal(path: str) -> FileRefusedError:
    """Create the error for a path that leaves its root."""
    return FileRefusedError(
        display_path(path), "it is outside the root folder", reason="outside", hint="Use a path below the root."
    )


def display_path(path: str, limit: int = 300) -> str:
    """Format a path for a message or a listing: on one line, without characters that could mislead a reader.

    Example:
        >>> display_path("a\\nb")
        'a\\\\nb'
    """
    text = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in path[:limit])
    return text + "..." if len(path) > limit else text


def _check_text(path: str) -> None:
    if not path:
        raise FileRefusedError("''", "the path is empty", reason="invalid", hint="The root itself is `.`.")
    if "\0" in path:
        raise FileRefusedError(display_path(path), "a path can't contain a NUL character", reason="invalid")
    if len(path) > _MAX_LENGTH:
        raise FileRefusedError(display_path(path, 60), f"it is longer than {_MAX_LENGTH} characters", reason="invalid")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise FileRefusedError(
            display_path(path), "it contains characters that a file name can't have", reason="invalid"
        ) from None


def _is_reserved(part: str) -> bool:
    stem = part.split(".", 1)[0].rstrip(" ").casefold()
    return part not in ("..",) and (":" in part or part != part.rstrip(". ") or stem in _DEVICES)
