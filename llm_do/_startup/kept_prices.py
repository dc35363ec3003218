"""Prices of models, of which a process reads those of the providers that it asks about.

`genai_prices` defines the prices of all providers in one module, and PydanticAI imports it with the first model. Here
what the module defines is kept by provider, and read when more is asked of a provider than which one it is.
"""

from __future__ import annotations

import datetime
import marshal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from llm_do._startup.compiled_texts import kept_texts

if TYPE_CHECKING:
    from genai_prices.types import Provider

    from llm_do._startup.kept_file import KeptFile

__all__ = ["keep_prices"]

PRICES = "genai_prices.data"
"""The module concerned."""

_IDENTITY = ("id", "name", "api_pattern", "model_match", "provider_match")
"""What tells providers from one another: all that is asked of most."""


def keep_prices() -> None:
    """Read the prices of a provider when something is asked of it, from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PRICES or (kept := kept_texts()) is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(kept, spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, kept: KeptFile, name: str, path: str) -> None:
        super().__init__(name, path)
        self._kept = kept

    def exec_module(self, module: ModuleType) -> None:
        try:
            stat = Path(self.path).stat()
        except OSError:
            super().exec_module(module)
            return
        prices = _KeptPrices(self._kept, f"prices {_IDENTITY} {self.path} {stat.st_mtime_ns} {stat.st_size}")
        whole = cache(self._whole)
        providers = prices.providers(lambda id: next(each for each in whole().providers if each.id == id))
        if providers is not None:
            vars(module).update(providers=providers, __getattr__=partial(_other_value, whole))
            return
        super().exec_module(module)
        if self._kept.is_learning:
            with suppress(Exception):  # another version may define something else
                prices.learn(module.providers)

    def _whole(self) -> ModuleType:
        module = ModuleType(self.name)
        module.__package__ = self.name.rpartition(".")[0]
        super().exec_module(module)
        return module


def _other_value(whole: Callable[[], ModuleType], name: str) -> Any:
    """Whatever else the module defines comes from its own text."""
    if name == "__path__":  # which the import system asks for
        raise AttributeError(name)
    return getattr(whole(), name)


class _KeptPrices:
    """The prices that a file of `genai_prices` defines.

    Args:
        kept: Where they are kept.
        key: What they are kept under, which says which file it is, and which state of it.
    """

    def __init__(self, kept: KeptFile, key: str) -> None:
        self._kept = kept
        self._key = key

    def providers(self, fallback: Callable[[str], Provider]) -> list[Provider] | None:
        """The providers, each to be read when it is needed; None if they aren't kept.

        Args:
            fallback: Finds a provider that can't be read any more.
        """
        identities = self._take("")
        if identities is None:
            return None
        unread = _unread_provider()

        def read(id: str) -> Provider:
            found: Provider | None = self._take(id)
            return fallback(id) if found is None else found

        return [unread(dict(zip(_IDENTITY, identity, strict=True)), read) for identity in identities]

    def learn(self, providers: Sequence[Provider]) -> None:
        """Keep providers for other processes."""
        self._learn("", [tuple(getattr(each, name) for name in _IDENTITY) for each in providers])
        for each in providers:
            self._learn(each.id, each)

    def _take(self, name: str) -> Any:
        data = self._kept.take(self._entry(name))
        with suppress(Exception):  # the types are another version's
            return None if data is None else _evaluated(marshal.loads(data))

    def _learn(self, name: str, value: object) -> None:
        text = repr(value)

        def pack() -> bytes | None:
            try:
                code = compile(text, "<prices>", "eval", dont_inherit=True)
                is_same = _evaluated(code) == value  # which a project's code may have changed
            except Exception:  # noqa: BLE001 (other versions may have values that aren't written as they are shown)
                return None
            return marshal.dumps(code) if is_same else None

        self._kept.learn(self._entry(name), pack)

    def _entry(self, name: str) -> bytes:
        return f"{self._key} {name}".encode("utf-8", "surrogatepass")


def _evaluated(code: CodeType) -> Any:
    from genai_prices import types

    return eval(code, {**vars(types), "Decimal": Decimal, "datetime": datetime})  # noqa: S307 (written by `_learn`)


def _unread_provider() -> Callable[[dict[str, Any], Callable[[str], Provider]], Provider]:
    from genai_prices.types import Provider

    class Unread(Provider):
        """A provider until something is asked of it that doesn't identify it; then it is one like all others."""

        def __init__(self, identity: dict[str, Any], read: Callable[[str], Provider]) -> None:
            object.__getattribute__(self, "__dict__").update(identity, _read=read)

        def __getattribute__(self, name: str) -> Any:
            own: dict[str, Any] = object.__getattribute__(self, "__dict__")
            if name in _IDENTITY:
                return own[name]
            return getattr(_read(self, own), name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(_read(self, object.__getattribute__(self, "__dict__")), name, value)

    def _read(provider: Provider, own: dict[str, Any]) -> Provider:
        read: Callable[[str], Provider] | None = own.get("_read")
        if read is not None:
            own.update(vars(read(own["id"])))
            object.__setattr__(provider, "__class__", Provider)  # at the end: another thread may read it, too
            own.pop("_read", None)
        return provider

    return Unread
