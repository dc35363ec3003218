"""Judge the options of programs without a grammar by their names and values: none may take a file or a program."""

from __future__ import annotations

import re

__all__ = ["is_harmless_option"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RISKY_WORDS = _words("""
    cache cmd command config conf data delete dir directory dump editor eval exec execute file filename fix folder home
    hook import include inplace input load loader log logfile module out outdir outfile output overwrite pager path
    plugin plugins preload preprocessor program rcfile report require root rulesdir save script shell source store
    target temp tmp trace write
""")
_RISKY_ENDS = ("cmd", "command", "dir", "exec", "executable", "file", "path", "plugin", "script", "tool", "wrapper")
_FLAGS = _words("""
    all ascii brief check checkout color colour count debug dry-run force help ignore-case info json json-output list
    long no-color no-colour pretty quiet recursive short silent stats strict summary verbose version watch yaml yes
""")
"""Options that never take a value, in any program."""
_LETTERS_WITH_FILES = frozenset("cCeEfFiIoOwWX")
_FLAG_LETTERS = frozenset("adhklnqvyzAVj0123456789")
_NAME = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)")
_FILE = re.compile(r"[^=]*/[^=]*|[^\s=]*[^\s=.0-9][^\s=.]*\.[A-Za-z][A-Za-z0-9]*|\.\w+")
"""A value that looks like a file: it has a slash or an extension."""


def is_harmless_option(word: str, following: str) -> bool:
    """Whether an option can't take a file or a program, as far as its name and its value say.

    `following` is the next word, which may be its value.

    Example:
        >>> [is_harmless_option(word, "") for word in ("--verbose", "-n", "--exec=x", "-ox", "--level=notes.txt")]
        [True, True, False, False, False]
        >>> is_harmless_option("--rules", "x.json"), is_harmless_option("--verbose", "x.json")
        (False, True)
    """
    found = _NAME.match(word)
    if found is None:  # a number, or nothing that any program would know
        return word[1:].isascii() and word[1:].isdigit()
    name, value = found[1].lower(), word[found.end() :]
    if word.startswith("--"):
        return _is_harmless_name(name) and _is_harmless_value(value, following, is_flag=name in _FLAGS)
    if len(name) >= 3 and name in _FLAGS:
        return _is_harmless_value(value, following, is_flag=name in _FLAGS)
    letters = set(word[1:].partition("=")[0])
    if letters & _LETTERS_WITH_FILES and (len(letters) <= 4 or word[1] in _LETTERS_WITH_FILES):
        return False
    if _FILE.fullmatch(word[2:]) or (len(name) >= 3 and not _is_harmless_name(name)):
        return False
    return _is_harmless_value(value, following, is_flag=letters <= _FLAG_LETTERS)


def _is_harmless_name(name: str) -> bool:
    parts = [name, *re.split(r"[-_]", name)]
    if name.endswith(_RISKY_ENDS):
        return False
    return not any(word.startswith(part) for part in parts if len(part) >= 3 for word in _RISKY_WORDS)


def _is_harmless_value(value: str, following: str, *, is_flag: bool) -> bool:
    if value and value[0] in "=:," and (_FILE.fullmatch(value[1:]) or value[1:].startswith("@")):
        return False
    return is_flag or value != "" or following.startswith("-") or _FILE.fullmatch(following) is None
