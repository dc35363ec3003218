"""`ModelPool`: PydanticAI models by name, each built on first use and shared by all agents of a runtime.

PydanticAI is imported only when the first model is built.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from llm_do.errors import ModelUnavailableError
from llm_do.models.providers.env_files import with_variables
from llm_do.models.providers.factories import factory_for, registered_prefixes
from llm_do.models.providers.model_names import (
    BUILT_IN,
    check_model_name,
    expand_user,
    is_http_address,
    local_server,
    split_name,
)

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from llm_do.models.providers.provider_models import Address

__all__ = ["CONNECTION_SETTINGS", "ModelPool", "resolve_model"]

CONNECTION_SETTINGS = frozenset({"base_url"})
"""Keys of `model_settings` that configure the connection; `ModelPool.get` reads them, the provider never sees them."""

LONG_TIMEOUT = {"google": 1200.0, "google-decisions": 1200.0}


@dataclass(eq=False)
class _Shelf:
    """The models, providers and HTTP clients of one event loop."""

    models: dict[Hashable, Model] = field(default_factory=dict[Hashable, "Model"])
    names: dict[int, str] = field(default_factory=dict[int, str])
    providers: dict[Address, Provider[Any]] = field(default_factory=dict["Address", "Provider[Any]"])
    clients: dict[tuple[str, str | None], httpx2.AsyncClient] = field(
        default_factory=dict[tuple[str, "str | None"], "httpx2.AsyncClient"]
    )


class ModelPool:
    """A cache of models by name, base URL and event loop, with one HTTP client per provider, base URL and key.

    `notice` is called with each sentence that a person should read, such as that a model of a list was left out. `keys`
    are those of files, for providers whose key the environment doesn't have. `moved` is a folder and another one, whose
    files are read instead of those of the first where it has them.

    Example:
        >>> ModelPool().get("test").model_name
        'test'
    """

    def __init__(
        self,
        notice: Callable[[str], None] = lambda _: None,
        keys: Mapping[str, str] | None = None,
        moved: tuple[Path, Path] | None = None,
    ) -> None:
        self._notice = notice
        self._moved = moved
        self._keys = keys or {}
        self._noticed: set[str] = set()
        self._lock = threading.RLock()
        self._shelves: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shelf] = WeakKeyDictionary()
        self._outside = _Shelf()

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment, with the keys from files."""
        return with_variables(os.environ, self._keys) if self._keys else os.environ

    def get(
        self,
        name: str | Sequence[str],
        *,
        agent: str = "",
        file: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Model:
        """Return the model of this name for the running event loop.

        Several names give a model that tries them in order, each when the request to the one before has failed.
        Models that can't be used are left out, with a notice.
        """
        names = [name] if isinstance(name, str) else list(name)
        base_url = _base_url(settings, agent, file)
        for each in names:
            check_model_name(each, agent=agent, file=file, registered=registered_prefixes())
        with self._lock:
            shelf = self._shelf()
            try:
                if len(names) == 1:
                    return self._single(shelf, names[0], agent, file, base_url)
                return self._fallback(shelf, names, agent, file, base_url)
            except ModelUnavailableError as error:
                error.file = error.file or file
                error.agent_path = error.agent_path or agent or None
                raise

    def name_of(self, model: Model) -> str:
        """Return the name that a provider's model was requested by, or the own name of any other model, for errors."""
        with self._lock:
            return self._shelf().names.get(id(model), model.model_name)

    def adopt(self, model: Model, name: str) -> None:
        """Remember what a model that stands for another was requested by, as for one that `get` returns."""
        if name.partition(":")[0] not in BUILT_IN:
            with self._lock:
                shelf = self._shelf()
                shelf.models["stand-in", id(model)] = model
                shelf.names[id(model)] = name

    async def aclose(self) -> None:
        """Close the HTTP clients of the running event loop; its models can't be used afterwards."""
        with self._lock:
            shelf = self._shelves.pop(asyncio.get_running_loop(), None)
        for client in shelf.clients.values() if shelf else ():
            await client.aclose()

    def _shelf(self) -> _Shelf:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._outside
        if loop not in self._shelves:
            # The clients of a closed loop can no longer be used or closed.
            for other in [other for other in self._shelves if other.is_closed()]:
                del self._shelves[other]
            self._shelves[loop] = _Shelf()
        return self._shelves[loop]

    def _fallback(self, shelf: _Shelf, names: list[str], agent: str, file: str | None, base_url: str | None) -> Model:
        from llm_do.models.composites import ModelList

        models: list[Model] = []
        failures: list[ModelUnavailableError] = []
        for name in names:
            try:
                models.append(self._single(shelf, name, agent, file, base_url))
            except ModelUnavailableError as error:
                failures.append(error)
        if not models:
            raise ModelUnavailableError(
                f"none of the models {', '.join(names)} can be used: {'; '.join(error.message for error in failures)}",
                hint=failures[0].hint if failures else "name at least one model",
            )
        for error in failures:
            self._notice_once(f"left out a model: {error.message}")
        if len(models) == 1:
            return models[0]
        key = ("fallback", *map(id, models))
        if key not in shelf.models:
            shelf.models[key] = ModelList(*models)
        return shelf.models[key]

    def _single(self, shelf: _Shelf, name: str, agent: str, file: str | None, base_url: str | None) -> Model:
        prefix, rest = split_name(name)
        factory = factory_for(prefix)
        key = (name, base_url, agent if prefix == "script" else None, factory)
        if key not in shelf.models:
            if factory is not None:
                shelf.models[key] = _from_factory(name, factory, rest)
            elif prefix in ("test", "script", "local"):
                shelf.models[key] = self._built_in(shelf, prefix, rest, agent)
            else:
                shelf.models[key] = self._from_provider(shelf, prefix, rest, agent, file, base_url)
            if prefix not in BUILT_IN:
                shelf.names[id(shelf.models[key])] = name
        return shelf.models[key]

    def _built_in(self, shelf: _Shelf, prefix: str, rest: str, agent: str) -> Model:
        if prefix == "test":
            from pydantic_ai.models.test import TestModel

            return TestModel()
        if prefix == "script":
            from llm_do.models.builtin.script_file import load_script
            from llm_do.models.builtin.script_model import ScriptModel

            return ScriptModel(load_script(self._file(expand_user(rest))), agent)
        if prefix == "local" and not rest and "://" in (configured := os.environ.get("LLM_DO_LOCAL_MODEL", "")):
            rest = configured
        if "://" in rest:
            from llm_do.models.providers.provider_models import NO_KEY, Address

            url, name = local_server(rest)
            if not is_http_address(url):
                raise ModelUnavailableError(
                    f"the server of the model 'local:{rest}' has no HTTP address",
                    hint="write the complete address, such as `local:http://localhost:8000/v1#NAME`",
                )
            return self._provider_model(shelf, Address("openai-chat", url, NO_KEY), name)
        from llm_do.models.builtin.local_model import LocalModel

        return LocalModel(rest or None, notice=self._notice_once)

    def _file(self, path: Path) -> Path:
        if self._moved is None or not path.is_relative_to(self._moved[0]):
            return path
        there = self._moved[1] / path.relative_to(self._moved[0])
        return there if there.is_file() else path

    def _from_provider(
        self, shelf: _Shelf, prefix: str, name: str, agent: str, file: str | None, base_url: str | None
    ) -> Model:
        from llm_do.models.providers.provider_models import address_of, sends_key_elsewhere

        address = address_of(prefix, base_url, keys=self._keys, agent=agent, file=file)
        if base_url and sends_key_elsewhere(address):
            self._notice_once(
                f"the key of the provider {prefix!r} is sent to {base_url}, set in {file or 'model_settings'}"
            )
        return self._provider_model(shelf, address, name)

    def _provider_model(self, shelf: _Shelf, address: Address, name: str) -> Model:
        from llm_do.models.providers.provider_models import make_model, make_provider

        if address not in shelf.providers:
            shelf.providers[address] = make_provider(address, lambda address: self._client(shelf, address))
        return make_model(address.provider, name, shelf.providers[address])

    def _client(self, shelf: _Shelf, address: Address) -> httpx2.AsyncClient:
        from llm_do.models.connections.http_clients import REQUEST_TIMEOUT, http_client
        from llm_do.models.providers.provider_models import LEGACY_HTTP

        # Prefixes that differ only in their protocol (`openai`, `openai-chat`) share connections.
        legacy = address.provider in LEGACY_HTTP
        place = address.base_url or address.provider
        key = (f"{address.provider} {place}" if legacy else place, address.key)
        if key not in shelf.clients:
            url, timeout = address.base_url or "https:", LONG_TIMEOUT.get(address.provider, REQUEST_TIMEOUT)
            if legacy:
                from llm_do.models.connections.legacy_client import legacy_client

                # Its SDK expects this type, whatever ours says.
                shelf.clients[key] = cast("httpx2.AsyncClient", legacy_client(url, timeout=timeout))
            else:
                shelf.clients[key] = http_client(url, timeout=timeout)
        return shelf.clients[key]

    def _notice_once(self, sentence: str) -> None:
        if sentence not in self._noticed:
            self._noticed.add(sentence)
            self._notice(sentence)


def _base_url(settings: Mapping[str, object] | None, agent: str, file: str | None) -> str | None:
    value = (settings or {}).get("base_url")
    if value is None or value == "":
        return None
    if not isinstance(value, str) or "${" in value or not is_http_address(value):
        has_variables = isinstance(value, str) and "${" in value
        raise ModelUnavailableError(
            f"the base_url of agent {agent!r} is not an HTTP address: {value!r}",
            hint="write the address out: variables aren't filled in here, since it decides where a key is sent"
            if has_variables
            else "include the scheme, such as http://localhost:8000/v1",
            file=file,
            agent_path=agent or None,
        )
    return value


def _from_factory(name: str, factory: Callable[[str], Model], rest: str) -> Model:
    from pydantic_ai.models import Model

    try:
        model = cast("object", factory(rest))
    except Exception as error:
        raise ModelUnavailableError(
            f"the factory of the model {name!r} raised {type(error).__name__}: {error}",
            hint="correct the factory that `register_model_factory` was given",
        ) from error
    if not isinstance(model, Model):
        raise ModelUnavailableError(
            f"the factory of the model {name!r} returned {type(model).__name__}, not a PydanticAI model",
            hint="return a PydanticAI model, or its name",
        )
    return cast("Model", model)


_default_pool = ModelPool()


def resolve_model(name: str | Model) -> Model:
    """Return the model of this name from a pool shared by the process; a model object is returned unchanged.

    Args:
        name: A model's name, such as `openai:gpt-5`.

    Raises:
        ModelUnavailableError: The name is invalid, or the model can't be used here.

    Example:
        >>> resolve_model("test").model_name
        'test'
    """
    return _default_pool.get(name) if isinstance(name, str) else name
