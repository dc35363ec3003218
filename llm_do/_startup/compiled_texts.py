"""Compiled texts of the standard library's making, kept from one process to the next beside this module's bytecode.

`dataclasses` writes a class's methods as text, and `typing` compiles each annotation that is text. Importing PydanticAI
and an SDK compiles five thousand such texts in each process, although no module has changed. Here the two get the
code object that `compile` has made of the very same text before. What they do with it is left to them. The regular
expressions of modules are kept in the same way (`compiled_patterns`).
"""

from __future__ import annotations

import atexit
import dataclasses
import importlib.util
import marshal
import sys
import typing
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from llm_do._startup import frozen, kept_file
from llm_do._startup.compiled_patterns import CompiledPatterns
from llm_do._startup.kept_file import KeptFile

__all__ = ["CompiledTexts", "forget_texts", "keep_compiled_texts", "kept_texts", "project_code", "save_compiled_texts"]

KNOWN = ((3, 11), (3, 12), (3, 13))
"""Versions of Python whose standard library compiles texts and patterns in the one way that is known here."""

Part = Literal["commands", "files", "models"]
"""What a process imports: its command line; what reads files; PydanticAI and a provider's SDK."""


class CompiledTexts:
    """The texts that have been compiled, each with its code.

    Args:
        kept: Where they are kept.

    Example:
        >>> texts = CompiledTexts(KeptFile(Path("/nowhere")))
        >>> texts.compile("1 + 1", "<string>", "eval") is texts.compile("1 + 1", "<string>", "eval")
        True
    """

    def __init__(self, kept: KeptFile) -> None:
        self._kept = kept
        self._annotations: dict[str, CodeType] = {}
        self._repeated: dict[str, bytes] = {}
        self._met: set[int] = set()

    def compile(self, text: Any, filename: str, mode: str) -> CodeType:
        """Compile an expression as the built-in function does."""
        if type(text) is not str or filename != "<string>" or mode != "eval":
            return compile(text, filename, mode, dont_inherit=True)
        # An annotation is compiled wherever it occurs, and evaluated once or twice.
        code = self._annotations.get(text)
        if code is None:
            code = self._annotations[text] = self._code(text, "eval")
        return code

    def exec(self, text: Any, variables: dict[str, Any], names: dict[str, Any]) -> None:
        """Execute a text as the built-in function does."""
        exec(self._methods(text) if type(text) is str else text, variables, names)  # noqa: S102

    def forget(self) -> None:
        """Hold in memory what is used from now on: annotations and methods are compiled while modules are imported."""
        self._annotations.clear()
        self._repeated.clear()
        self._met.clear()

    def _methods(self, text: str) -> CodeType:
        # The interpreter adapts code to the types it meets, so each class gets code of its own. Few texts are those of
        # several classes, so only a second use says which are worth holding in memory.
        data = self._repeated.get(text)
        if data is not None:
            return marshal.loads(data)
        code, known = self._code(text, "exec"), hash(text)
        if known in self._met:
            self._repeated[text] = marshal.dumps(code)
        self._met.add(known)
        return code

    def _code(self, text: str, mode: str) -> CodeType:
        key = _key(mode, text)
        data = self._kept.take(key)
        if data is not None:
            return marshal.loads(data)
        code = compile(text, "<string>", mode, dont_inherit=True)
        self._kept.learn(key, partial(marshal.dumps, code))
        return code


def _key(mode: str, text: str) -> bytes:
    return f"{mode} {text}".encode("utf-8", "surrogatepass")


_kept: KeptFile | None = None
_texts: CompiledTexts | None = None


def keep_compiled_texts(part: Part = "models") -> None:
    """Let this process use what others have compiled, and keep what it compiles itself for them when it ends.

    Each part has a file of its own, so that a short command doesn't read what only a long one needs. It does nothing
    with a Python whose standard library isn't known to compile in this way.

    Args:
        part: What is imported next; a later call turns to another part.
    """
    global _kept, _texts
    if sys.version_info[:2] not in KNOWN or not sys.implementation.cache_tag:
        return
    kind = f"texts{sys.flags.optimize}{part}"  # asserts and docstrings depend on the level of optimization
    file = Path(importlib.util.cache_from_source(kept_file.__file__, optimization=kind))
    if _kept is not None:
        _kept.turn_to(file)
        return
    _kept = KeptFile(file)
    _texts = texts = CompiledTexts(_kept)
    # These modules look such names up as they would any other global name, and find the built-in functions otherwise.
    typing.compile = texts.compile  # pyright: ignore[reportAttributeAccessIssue]
    for module in (dataclasses, frozen):
        module.exec = texts.exec  # pyright: ignore[reportAttributeAccessIssue]
    CompiledPatterns(_kept).use()
    atexit.register(save_compiled_texts)


def kept_texts() -> KeptFile | None:
    """Return where this process keeps what it compiles; None if it doesn't."""
    return _kept


def forget_texts() -> None:
    """Let go of what is held in memory for imports, once most modules are imported."""
    if _texts is not None:
        _texts.forget()


def save_compiled_texts() -> None:
    """Write down what this process has compiled, for the next one."""
    if _kept is not None:
        _kept.save()


@contextmanager
def project_code() -> Generator[None]:
    """Keep nothing of what is compiled in this block: it belongs to a project."""
    if _kept is None:
        yield
        return
    before, _kept.learns = _kept.learns, False
    try:
        yield
    finally:
        _kept.learns = before
