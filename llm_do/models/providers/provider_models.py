"""One PydanticAI model from one provider's name. Which name, and what is shared between models, is `pool`'s business.

Provider SDKs are imported when the first model of theirs is built.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.models.providers.model_names import PROVIDERS, is_http_address

if TYPE_CHECKING:
    import httpx2

__all__ = ["NO_KEY", "Address", "ClientSource", "address_of", "is_elsewhere", "make_model", "make_provider"]

DEFAULT_URLS = {
    "openai": "https://api.openai.com/v1",
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "openai-decisions": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "google-decisions": "https://generativelanguage.googleapis.com",
    "ollama": "http://localhost:11434/v1",
}
OPENAI = ("openai", "openai-chat", "openai-responses", "openai-decisions")
LEGACY_HTTP = ("cohere", "github", "groq", "huggingface")
"""Providers whose SDK wants an HTTP client of another library, and so keeps its own."""

NO_KEY = "unused"
EXTRAS = {
    "bedrock-mantle": "bedrock",
    "google-cloud": "google",
}

ClientSource: TypeAlias = "Callable[[Address], httpx2.AsyncClient]"
AnyProvider: TypeAlias = Provider[Any]


@frozen
class Address:
    """Where a provider is, and with which key: what decides which models share a client.

    Args:
        provider: The name's prefix.
        base_url: The address; None is the provider's own.
        key: The key; None where the provider finds its credentials by itself.
    """

    provider: str
    base_url: str | None
    key: str | None

    def __repr__(self) -> str:
        return f"Address(provider={self.provider!r}, base_url={self.base_url!r})"


def address_of(provider: str, base_url: str | None, *, agent: str = "", file: str | None = None) -> Address:
    """Find a provider's address and key in the environment."""
    info = PROVIDERS[provider]
    own = bool(base_url)
    if not base_url and info.base_url:
        base_url = os.environ.get(info.base_url) or None
        if base_url is not None and not is_http_address(base_url):
            raise ModelUnavailableError(
                f"{info.base_url} is not an http address: {base_url!r}",
                hint="write it with its scheme, such as http://localhost:8000/v1",
                file=file,
            )
    variable = next((name for name in info.keys if os.environ.get(name)), None)
    key = os.environ[variable] if variable is not None else None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ModelUnavailableError(
            f"{variable} has a character in it that no key has, such as the end of a line",
            hint=f"set {variable} to the key alone",
            file=file,
        )
    missing = [] if own else [name for name in info.needs if not os.environ.get(name)]
    if info.keys and not key and not info.keyless and not base_url:
        missing.insert(0, info.keys[0])
    if missing:
        whose = f" for agent {agent!r}" if agent else ""
        raise ModelUnavailableError(
            f"{' and '.join(missing)} must be set to use the provider {provider!r}{whose}",
            hint=f"set {missing[0]}, or name another model; `llm-do models` lists what can be used",
            file=file,
        )
    return Address(provider, base_url or DEFAULT_URLS.get(provider), key or (NO_KEY if base_url else None))


def is_elsewhere(address: Address) -> bool:
    """Whether a real key goes to an address that is neither the provider's own nor on this machine."""
    if not address.base_url or address.key in (None, NO_KEY):
        return False
    host = urlsplit(address.base_url).hostname
    own = urlsplit(DEFAULT_URLS.get(address.provider, "")).hostname
    return host not in (own, "localhost", "127.0.0.1", "::1")


def make_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    """Build a provider; whether its SDK retries is set with each request (`llm_do.models.composites`)."""
    try:
        if address.provider in OPENAI or address.provider == "ollama":
            return _openai_provider(address, client_for)
        if address.provider == "anthropic":
            return _anthropic_provider(address, client_for)
        if address.provider in ("google", "google-decisions"):
            return _google_provider(address, client_for)
        return _other_provider(address, client_for)
    except ImportError as error:
        raise ModelUnavailableError(
            f"the provider {address.provider!r} needs a package that isn't installed",
            hint=f"pip install 'pydantic-ai-slim[{EXTRAS.get(address.provider, address.provider)}]'",
        ) from error
    except UserError as error:
        raise ModelUnavailableError(
            f"the provider {address.provider!r} can't be used: {error.message.partition(' To try Pydantic AI')[0]}",
            hint="set what it asks for, or name another model",
        ) from error
    except ModelUnavailableError:
        raise
    except Exception as error:  # a provider's own library looks for credentials, and says in its own way what it lacks
        message = " ".join(str(error).split()) or type(error).__name__
        raise ModelUnavailableError(
            f"the provider {address.provider!r} can't be used: {message}",
            hint="set up what it asks for, or name another model",
        ) from error


def make_model(provider: str, name: str, instance: AnyProvider) -> Model:
    """Build the model `provider:name` on a provider made before."""
    try:
        if provider in ("openai", "openai-responses"):
            from pydantic_ai.models.openai import OpenAIResponsesModel

            return OpenAIResponsesModel(name, provider=instance)
        if provider in ("openai-chat", "ollama"):
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.profiles.openai import OpenAIModelProfile

            # Without it a stream that is cut between two events passes for a complete answer.
            profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
            return OpenAIChatModel(name, provider=instance, profile=profile)
        return infer_model(f"{provider}:{name}", lambda _: instance)
    except ImportError as error:
        raise ModelUnavailableError(
            f"the provider {provider!r} needs a package that isn't installed",
            hint=f"pip install 'pydantic-ai-slim[{EXTRAS.get(provider, provider)}]'",
        ) from error
    except (UserError, ValueError) as error:
        raise ModelUnavailableError(f"the model '{provider}:{name}' can't be used: {error}") from error


def _openai_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    from llm_do.models.providers.openai_client import LeanOpenAI

    client = LeanOpenAI(
        base_url=address.base_url,
        api_key=address.key or NO_KEY,
        http_client=client_for(address),
        max_retries=0,
    )
    if address.provider == "ollama":
        from pydantic_ai.providers.ollama import OllamaProvider

        return OllamaProvider(openai_client=client)
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIProvider(openai_client=client)


def _anthropic_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    from anthropic import AsyncAnthropic
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicProvider(
        anthropic_client=AsyncAnthropic(
            base_url=address.base_url, api_key=address.key, http_client=client_for(address), max_retries=0
        )
    )


def _google_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleProvider(
        api_key=address.key,
        base_url=address.base_url,
        http_client=client_for(address),
        retry_options=HttpRetryOptions(attempts=1),
    )


def _other_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    if address.provider.startswith("gateway/"):
        return infer_provider(address.provider)
    provider_class = infer_provider_class(address.provider)
    accepted = inspect.signature(provider_class).parameters
    arguments: dict[str, Any] = {}
    if address.base_url is not None:
        name = next((name for name in ("base_url", "api_base") if name in accepted), None)
        if name is None:
            raise ModelUnavailableError(
                f"the provider {address.provider!r} has one address, so `base_url` can't be set",
                hint="use `openai-chat:NAME` for an OpenAI-compatible server",
            )
        arguments[name] = address.base_url
    if address.key is not None and "api_key" in accepted:
        arguments["api_key"] = address.key
    if "http_client" in accepted and address.provider not in LEGACY_HTTP:
        arguments["http_client"] = client_for(address)
    return provider_class(**arguments)
