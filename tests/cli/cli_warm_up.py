"""What the process that forks makes before its first fork (`cli_batch`): all that a command would import or compile."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import pkgutil
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletion
from pydantic import BaseModel
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest

import llm_do
from llm_do import Project, Runtime
from llm_do._startup import compiled_texts, frozen
from llm_do.cli import app

LIBRARIES = (
    "anyio._backends._asyncio",
    "encodings.utf_8_sig",
    "multiprocessing.popen_fork",
    "pydantic_ai.models.function",
    "pydantic_ai.models.openai",
    "pydantic_ai.models.test",
    "typer._click.decorators",
)
"""What a run imports late of the libraries, apart from servers' clients and telemetry."""

TOOL = '''\
def add(a: int) -> int:
    """Add one to a number."""
    return a + 1


TOOLS = [add]
'''

LEFT_OUT = ("__main__", "dbos_engine", "llm_do.pytest_plugin", "llm_do.toolsets.mcp", "telemetry")
"""Modules of ours that need what no call here needs."""


def build_models(model: type[BaseModel]) -> None:
    """Build the schemas of our models, which the first validation by each would."""
    for each in model.__subclasses__():
        if each.__module__.startswith("llm_do.") and not each.__pydantic_complete__:
            each.model_rebuild(raise_errors=False)
        build_models(each)


def build_values() -> None:
    """Compile the `__init__` of each of our values, which the first of its class would."""
    for module in [module for name, module in sys.modules.items() if name.startswith("llm_do.")]:
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__init__.__qualname__ == "_init_later.<locals>.first":
                kind.__init__ = frozen._init_of(kind)  # type: ignore[misc]


def prepare_commands() -> None:
    """Make what reads the arguments of each command, and keep it."""
    app.get_command = cache(app.get_command)
    group: Any = app.get_command(app._root)
    for name in app.COMMANDS:
        group.get_command(None, name)


def gather_names() -> None:
    """Put the names of all modules side by side in memory: linking goes through them, and a fork copies their pages."""
    modules = {name[:1] + name[1:]: module for name, module in sys.modules.items()}
    sys.modules.clear()
    sys.modules.update(modules)


def gather_pages() -> None:
    """Have the kernel keep the memory in pages of 2 MB, where it can: a fork copies the table of pages."""
    if not sys.platform.startswith("linux"):
        return
    madvise, collapse, size = ctypes.CDLL(None).madvise, 25, 2 << 20  # MADV_COLLAPSE, of Linux 6.1; an error is ignored
    for addresses, access, *_, name in (
        f"{line} -".split()[:6] for line in Path("/proc/self/maps").read_text().splitlines()
    ):
        begin, end = (int(each, 16) for each in addresses.split("-"))
        begin, end = -(-begin // size) * size, end // size * size
        if access == "rw-p" and name in ("-", "[heap]") and begin < end:
            madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), collapse)


def warm_up() -> None:
    """Make what any command needs, and run an agent with a tool."""
    ours = [each.name for each in pkgutil.walk_packages(llm_do.__path__, "llm_do.")]
    for name in (*LIBRARIES, *(name for name in ours if not any(part in name for part in LEFT_OUT))):
        import_module(name)
    ChatCompletion.model_rebuild()
    build_values()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.agent").write_text("---\nname: main\nmodel: script:a.yaml\ntools: [add]\n---\nHelp.\n")
        Path(folder, "a.yaml").write_text("- tools: [{name: add, args: {a: 1}}]\n- text: done\n")
        Path(folder, "tools.py").write_text(TOOL)
        asyncio.run(Runtime(Project.load(folder), approvals="approve_all").run("hello"))
    ModelMessagesTypeAdapter.dump_python([ModelRequest.user_text_prompt("hello")])  # what a recorded run writes
    build_models(BaseModel)
    prepare_commands()
    gather_names()
    # Everything has been imported, so a fork needs none of the files of what others have compiled.
    compiled_texts.keep_compiled_texts = lambda *_: None
    atexit.unregister(compiled_texts.save_compiled_texts)
    gc.freeze()  # a collection in a fork would copy every page
    gather_pages()
