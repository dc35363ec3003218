"""Compiled texts of the standard library's making, kept from one process to the next beside this module's bytecode.

`dataclasses` writes a class's methods as text, and `typing` compiles each annotation that is text. Importing PydanticAI
and an SDK compiles five thousand such texts in each process, although no module has changed. Here the two get the
code object that `compile` has made of the very same text before. What they do with it is left to them.
"""

from __future__ import annotations

import atexit
import dataclasses
import importlib.util
import marshal
import os
import sys
import typing
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType
from typing import Any, cast

__all__ = ["CompiledTexts", "keep_compiled_texts", "keeps_texts", "project_code", "save_compiled_texts"]

KNOWN = ((3, 11), (3, 12), (3, 13))
"""Versions of Python whose `dataclasses` and `typing` compile texts in the one way that is known here."""

FEW = 50
"""New texts that aren't worth writing a file for."""

MOST = 20_000
"""Texts in a file; beyond, the file is begun again."""


class CompiledTexts:
    """The texts that have been compiled, each with its code.

    Args:
        file: Where they are kept; one that can't be read or written is ignored.

    Example:
        >>> texts = CompiledTexts(Path("/nowhere"))
        >>> texts.compile("1 + 1", "<string>", "eval") is texts.compile("1 + 1", "<string>", "eval")
        True
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _read(file)
        self._new: _Codes = {"eval": {}, "exec": {}}
        self.learns = True
        """Whether new texts are kept."""

    def compile(self, text: Any, filename: str, mode: str) -> CodeType:
        """Compile an expression as the built-in function does."""
        if type(text) is not str or filename != "<string>" or mode != "eval":
            return compile(text, filename, mode, dont_inherit=True)
        # An annotation is compiled wherever it occurs, and evaluated once or twice.
        return self._known["eval"].get(text) or self._compiled(text, "eval")

    def exec(self, text: Any, variables: dict[str, Any], names: dict[str, Any]) -> None:
        """Execute a text as the built-in function does."""
        if type(text) is str:
            # The interpreter adapts code to the types it meets, so each class gets code of its own.
            known = self._known["exec"]
            code = known.get(text) or self._compiled(text, "exec")
            known[text] = None
            text = code
        exec(text, variables, names)  # noqa: S102

    def _compiled(self, text: str, mode: str) -> CodeType:
        code = compile(text, "<string>", mode, dont_inherit=True)
        known = self._known[mode]
        if self.learns and text not in known:
            self._new[mode][text] = code
        known[text] = code
        return code

    def save(self) -> None:
        """Write the file if there is enough that isn't in it, in one step: other processes may do the same."""
        if sys.dont_write_bytecode or sum(map(len, self._new.values())) < FEW:
            return
        kept = _read(self._file)
        for mode, codes in self._new.items():
            kept[mode].update(codes)
        if sum(map(len, kept.values())) > MOST:
            kept = self._new
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError, ValueError):
            self._file.parent.mkdir(exist_ok=True)
            partial.write_bytes(marshal.dumps((_INTERPRETER, kept)))
            partial.replace(self._file)
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        self._new = {"eval": {}, "exec": {}}


_Codes = dict[str, dict[str, CodeType | None]]

_INTERPRETER = (importlib.util.MAGIC_NUMBER, sys.version)

_texts: CompiledTexts | None = None


def _read(file: Path) -> _Codes:
    # Bytecode is trusted as it is in the files beside this one. Only what a file of this kind has is taken out of it.
    with suppress(OSError, ValueError, EOFError, TypeError):
        interpreter, codes = cast("tuple[object, _Codes]", marshal.loads(file.read_bytes()))
        if interpreter == _INTERPRETER:
            return codes
    return {"eval": {}, "exec": {}}


def keep_compiled_texts() -> None:
    """Let this process use what others have compiled, and keep what it compiles itself for them when it ends.

    It does nothing with a Python whose standard library isn't known to compile texts in this way.
    """
    global _texts
    if _texts is not None or sys.version_info[:2] not in KNOWN or not sys.implementation.cache_tag:
        return
    kind = f"texts{sys.flags.optimize}"  # asserts and docstrings depend on it
    _texts = CompiledTexts(Path(importlib.util.cache_from_source(__file__, optimization=kind)))
    # Both modules look these names up as they would any other global name, and find the built-in functions otherwise.
    typing.compile = _texts.compile  # pyright: ignore[reportAttributeAccessIssue]
    dataclasses.exec = _texts.exec  # pyright: ignore[reportAttributeAccessIssue]
    atexit.register(save_compiled_texts)


def keeps_texts() -> bool:
    """Whether this process keeps what it compiles."""
    return _texts is not None


def save_compiled_texts() -> None:
    """Write down what this process has compiled, for the next one."""
    if _texts is not None:
        _texts.save()


@contextmanager
def project_code() -> Generator[None]:
    """Keep nothing of what is compiled in this block: it belongs to a project."""
    if _texts is None:
        yield
        return
    before, _texts.learns = _texts.learns, False
    try:
        yield
    finally:
        _texts.learns = before
