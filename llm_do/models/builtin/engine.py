"""Text generation in this process, with one loaded model per file.

A model has one slot: requests from all event loops wait in one queue.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from llm_do._extras import has_extra, missing_extra
from llm_do._startup.frozen import frozen
from llm_do.concurrency.temporary_folders import temporary_folder
from llm_do.errors import ModelError, ModelUnavailableError
from llm_do.models.builtin.grammar import JsonSchema, decoder_schema

__all__ = ["Engine", "Generation", "Prompt", "check_runtime", "engine_for"]

SMALL = 400_000_000
"""Up to this file size in bytes, one thread generates as fast as several."""

SMALL_CONTEXT = 4096
LARGE_CONTEXT = 8192
LONGEST_SOCKET = 90

log = logging.getLogger(__name__)


@frozen
class Prompt:
    """One request to the model."""

    messages: Sequence[tuple[str, str]]
    """The role and text of each message, in order."""

    max_tokens: int
    schema: JsonSchema | None = None
    """The schema that the answer must match; None allows free text."""

    options: Mapping[str, Any] | None = None
    """Sampling options: temperature, top_p, seed, stop."""


@frozen
class Generation:
    """The answer to a prompt."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Tokens of the prompt that the previous prompt shared."""

    truncated: bool
    """Whether the answer reached `max_tokens`."""


def check_runtime() -> None:
    """Raise unless the package that runs the model is installed; nothing is imported."""
    if not has_extra("local"):
        missing = missing_extra("local", "the local model")
        raise ModelUnavailableError(missing.message, hint=missing.hint)


_engines: dict[Path, Engine] = {}
_engines_lock = threading.Lock()


def engine_for(path: Path) -> Engine:
    """Return the engine of a GGUF file, one per process; it loads the file on its first request."""
    with _engines_lock:
        return _engines.setdefault(path.resolve(), Engine(path.resolve()))


class Engine:
    """A GGUF file, loaded once, that answers one prompt at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm-do-local")
        self._server: Any = None
        self._waiting = 0

    async def generate(self, prompt: Prompt, on_text: Callable[[str], None] | None = None) -> Generation:
        """Answer a prompt; cancelling the call stops the generation."""
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def deliver(text: str) -> None:
            if on_text is not None and not stop.is_set():
                loop.call_soon_threadsafe(on_text, text)

        if self._waiting:
            log.debug("the local model is busy: %d requests are ahead of this one", self._waiting)
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._worker.submit(self._generate, prompt, stop, deliver))
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            self._waiting -= 1

    def _generate(self, prompt: Prompt, stop: threading.Event, deliver: Callable[[str], None]) -> Generation:
        if stop.is_set():
            raise ModelError("the request was cancelled")
        if self._server is None:
            self._server = _load(self.path)
        pieces: list[str] = []
        last: dict[str, Any] = {}

        def on_chunk(chunk: dict[str, Any]) -> bool:
            for choice in chunk.get("choices", ()):
                if text := choice["delta"].get("content"):
                    pieces.append(text)
                    deliver(text)
                last["finish"] = choice.get("finish_reason") or last.get("finish")
            last.update({key: chunk[key] for key in ("error", "usage") if key in chunk})
            return stop.is_set()

        self._server.handle_chat_completions(_body(prompt), on_chunk)
        if error := last.get("error"):
            raise _failure(error)
        usage = last.get("usage", {})
        return Generation(
            text="".join(pieces),
            prompt_tokens=usage.get("prompt_tokens", 0),
            completion_tokens=usage.get("completion_tokens", 0),
            cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
            truncated=last.get("finish") == "length",
        )


def _body(prompt: Prompt) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in prompt.messages],
        "max_tokens": prompt.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        **(prompt.options or {}),
    }
    if prompt.schema is not None:
        body["grammar"] = _xllamacpp().json_schema_to_grammar(decoder_schema(prompt.schema))
    else:
        body["repeat_penalty"] = 1.05
    return body


def _failure(error: dict[str, Any]) -> ModelError:
    if "n_prompt_tokens" in error:
        return ModelError(
            f"the prompt is {error['n_prompt_tokens']} tokens long; the local model's limit is {error['n_ctx']}",
            hint="shorten the instructions, the input or the history, or use another model",
        )
    return ModelError(
        f"the local model failed: {error.get('message', error)}",
        hint="run it again; if it fails again, `llm-do models pull` downloads its weights again",
    )


def _xllamacpp() -> Any:
    # Otherwise its threads spin while they wait, which costs more than the computation itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    check_runtime()
    try:
        return import_module("xllamacpp")
    except ImportError as error:
        if "libgomp" in str(error):
            raise ModelUnavailableError(
                "the local model needs the system library libgomp.so.1",
                hint="install the package libgomp1 (Debian, Ubuntu) or libgomp (Fedora, Alpine)",
            ) from error
        hint = missing_extra("local", "the local model").hint
        raise ModelUnavailableError(f"the package xllamacpp can't be loaded: {error}", hint=hint) from error


def _load(path: Path) -> Any:
    if not os.path.isfile(path):
        raise ModelUnavailableError(f"there is no file {path}", hint="name an existing GGUF file: `local:PATH.gguf`")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelUnavailableError(f"{path} is not a GGUF file", hint="name a GGUF file: `local:PATH.gguf`")
    library = _xllamacpp()
    small = path.stat().st_size <= SMALL
    cores = os.cpu_count() or 1
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx = SMALL_CONTEXT if small else LARGE_CONTEXT
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = -1
    params.ui = False
    params.cpuparams.n_threads = 1 if small else cores
    params.cpuparams_batch.n_threads = cores
    # The library also serves HTTP, which must not be reachable.
    params.api_keys = [secrets.token_hex(16)]
    with temporary_folder() as folder:
        socket = folder / "m.sock"
        if sys.platform != "win32" and len(str(socket)) < LONGEST_SOCKET:
            params.hostnames = [str(socket)]
        try:
            return library.Server(params)
        except Exception as error:
            raise ModelUnavailableError(
                f"the model {path.name} can't be loaded: {' '.join(str(error).split())}",
                hint="name another GGUF file: `local:PATH.gguf`",
            ) from error
