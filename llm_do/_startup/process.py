"""Settings of a whole process, for the command line: the garbage collector, pydantic's plugins, and a quick end."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import typing
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

__all__ = [
    "defer_adapters",
    "disable_plugins",
    "exit_process",
    "hasten_commands",
    "hasten_imports",
    "hasten_reading",
    "import_httpx",
    "pause_collector",
    "paused_collector",
    "resume_collector",
]


def pause_collector() -> None:
    """Keep the garbage collector off while modules are imported: they stay, so walking them frees nothing."""
    gc.disable()


def resume_collector() -> None:
    """Turn the collector on again; it needn't walk what is there now, since that stays until the end."""
    from llm_do._startup.compiled_texts import forget_texts

    forget_texts()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@contextmanager
def paused_collector() -> Generator[None]:
    """Keep the collector off in a block that makes many objects and drops few, such as linking."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def hasten_commands() -> None:
    """Do what makes importing the command line quick, once the standard streams are open."""
    from llm_do._startup.compiled_texts import keep_compiled_texts

    keep_compiled_texts("commands")


def hasten_imports() -> None:
    """Do what makes importing PydanticAI and an SDK quick, before a command does."""
    from llm_do._startup.compiled_texts import keep_compiled_texts
    from llm_do._startup.deferred_packages import defer_packages
    from llm_do._startup.kept_prices import keep_prices
    from llm_do._startup.stand_ins import defer_docstring_parser

    keep_compiled_texts("models")
    _import_hashlib()
    import_httpx()
    defer_packages()
    defer_adapters()
    defer_docstring_parser()
    keep_prices()


def _import_hashlib() -> None:
    """Import `hashlib` without its log: where memory ends meanwhile, that is a traceback for each missing algorithm."""
    import logging
    from importlib import import_module

    logging.disable()
    try:
        import_module("hashlib")
    finally:
        logging.disable(logging.NOTSET)


def hasten_reading() -> None:
    """Do what makes importing pydantic quick, in a command that only reads files."""
    from llm_do._startup.compiled_texts import keep_compiled_texts
    from llm_do._startup.stand_ins import import_plugin_search

    disable_plugins()
    keep_compiled_texts("files")
    import_plugin_search()


def import_httpx() -> None:
    """Import httpx without its own command line, which would import click, rich and pygments.

    httpx works without these where they aren't installed; a module that is None counts as one that isn't.
    """
    name = "httpx._main"
    if "httpx" in sys.modules:
        return
    sys.modules[name] = None  # pyright: ignore[reportArgumentType]
    try:
        import httpx  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError:
        return
    finally:
        del sys.modules[name]


def defer_adapters() -> None:
    """Have the type adapters of PydanticAI's modules built at their first use, as pydantic's `defer_build` does.

    A run uses few of them. Only what the body of a module makes is deferred, since that is of PydanticAI's own types.
    What its functions make may be of a project's types, whose mistakes must be found at once.
    """
    from pydantic import TypeAdapter

    stated: object = vars(TypeAdapter).get("_defer_build")
    if not isinstance(stated, property) or stated.fget is None or stated.fget.__module__ == __name__:
        return
    read: Callable[[TypeAdapter[Any]], bool] = stated.fget
    own = (stated.fget.__code__.co_filename, typing.__file__)

    def is_deferred(adapter: TypeAdapter[Any]) -> bool:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame.f_code.co_filename in own and frame.f_back is not None:
            frame = frame.f_back
        name = str(frame.f_globals.get("__name__"))
        return (frame.f_code.co_name == "<module>" and name.startswith("pydantic_ai.")) or read(adapter)

    # There is no public way to state it for adapters that another package makes.
    TypeAdapter._defer_build = property(is_deferred)  # pyright: ignore


def disable_plugins() -> None:
    """Keep pydantic from searching every installed package for plugins, in a command that only reads files."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def exit_process(code: int) -> NoReturn:
    """End the process without tearing the interpreter down.

    What libraries and the project's code registered with `atexit` still runs, and streams are flushed. Threads that
    hang are left behind.
    """
    with suppress(BaseException):
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] - there is no public way to run them early
    for name in ("stdout", "stderr"):
        with suppress(Exception):  # a project's code may have put anything there
            getattr(sys, name).flush()
    os._exit(code)
