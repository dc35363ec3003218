"""Regular expressions of modules, compiled once for all processes.

`re.compile` parses a pattern in Python, and makes the expression of numbers that the parser has found. Here it gets the
numbers that an earlier process has found for the very same pattern and flags. Only what is compiled while a module is
imported is kept, by its body or what that calls: later, functions compile what comes from files and people. Functions
of llm-do never count, since they also compile secrets, to find them.
"""

from __future__ import annotations

import inspect
import marshal
import re
import sys
import warnings
from types import FrameType
from typing import Any

from llm_do._startup.kept_file import KeptFile

__all__ = ["CompiledPatterns"]

_library: Any = re
_IMPORT_SYSTEM = "importlib._bootstrap"
_compiler: Any = _library._compiler
_sre: Any = _compiler._sre
_TEXTS: tuple[type, ...] = (str, bytes)


class CompiledPatterns:
    """What patterns have been compiled to.

    Args:
        kept: Where that is kept.
    """

    def __init__(self, kept: KeptFile) -> None:
        self._kept = kept
        self._compile = _compiler.compile

    def use(self) -> None:
        """Let `re` compile patterns with this object, for the whole process."""
        _compiler.compile = self.compile

    def compile(self, pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        """Compile a pattern as `re` does."""
        if type(pattern) not in _TEXTS or flags & re.DEBUG:
            return self._compile(pattern, flags)
        key = _key(pattern, int(flags))
        data = self._kept.take(key)
        if data is not None:
            return _sre.compile(pattern, *marshal.loads(data))
        compiled = self._compile(pattern, flags)
        if self._kept.is_learning and _is_importing(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            self._kept.learn(key, lambda: _packed(compiled, pattern, int(flags)))
        return compiled


def _key(pattern: str | bytes, flags: int) -> bytes:
    text = pattern if isinstance(pattern, bytes) else pattern.encode("utf-8", "surrogatepass")
    return f"{type(pattern).__name__} {flags} ".encode() + text


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, by which or for which `re` was called."""
    while frame is not None:
        caller = frame.f_back
        is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
        if is_function and str(frame.f_globals.get("__name__")).startswith("llm_do."):
            return False
        if not is_function and caller is not None and caller.f_globals.get("__name__") == _IMPORT_SYSTEM:
            return True
        frame = caller
    return False


def _packed(compiled: re.Pattern[Any], pattern: str | bytes, flags: int) -> bytes | None:
    """The numbers of an expression; None if they don't make the same again, or if `re` warns about it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parsed = _library._parser.parse(pattern, flags)
            code = _compiler._code(parsed, flags)
        names: list[str | None] = [None] * parsed.state.groups
        for name, number in parsed.state.groupdict.items():
            names[number] = name
        made = (parsed.state.groups - 1, parsed.state.groupdict, tuple(names))
        # The parser's own kinds of numbers can't be marshalled.
        data = marshal.dumps((int(flags | parsed.state.flags), list(map(int, code)), *made))
        again = _sre.compile(pattern, *marshal.loads(data))
    except Exception:  # noqa: BLE001 (a pattern that warns, or a Python that compiles in another way)
        return None
    is_same = again == compiled and again.groups == compiled.groups and again.groupindex == compiled.groupindex
    return data if is_same else None
