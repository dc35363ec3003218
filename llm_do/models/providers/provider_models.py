"""Create PydanticAI's providers and models; a provider's SDK is imported with its first model."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.models.provider_packages import missing_import
from llm_do.models.providers.env_files import with_variables
from llm_do.models.providers.model_names import PROVIDERS, is_http_address

if TYPE_CHECKING:
    import httpx2

__all__ = ["NO_KEY", "Address", "ClientSource", "address_of", "make_model", "make_provider", "sends_key_elsewhere"]

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
LEGACY_HTTP = ("cohere", "groq")
"""Providers whose SDK takes a client of another HTTP library."""

OWN_HTTP = ("github", "huggingface")
"""Providers that keep a client of their own: one whose service has ended, and one whose SDK takes none."""

OWN_READING = ("github-copilot", "openrouter", "snowflake", "zai")
"""Providers of OpenAI's protocol with additions of their own, whose answers PydanticAI reads in its own way."""

NO_KEY = "unused"
_IN_FILE = " in the environment or in the project's .env"

ClientSource: TypeAlias = "Callable[[Address], httpx2.AsyncClient]"
AnyProvider: TypeAlias = Provider[Any]


@frozen
class Address:
    """A provider's address and key; models with the same address share a client."""

    provider: str
    """The prefix of the model's name."""

    base_url: str | None
    """The URL; None uses the provider's own."""

    key: str | None
    """The key; None if the provider finds its credentials itself."""

    def __repr__(self) -> str:
        return f"Address(provider={self.provider!r}, base_url={self.base_url!r})"


def address_of(
    provider: str,
    base_url: str | None,
    *,
    keys: Mapping[str, str] | None = None,
    agent: str = "",
    file: str | None = None,
) -> Address:
    """Find a provider's address in the environment, and its key there or among `keys` of a file."""
    info = PROVIDERS[provider]
    own = bool(base_url)
    if not base_url and info.base_url:
        base_url = os.environ.get(info.base_url) or None
        if base_url is not None and not is_http_address(base_url):
            raise ModelUnavailableError(
                f"{info.base_url} is not an HTTP address: {base_url!r}",
                hint="include the scheme, such as http://localhost:8000/v1",
                file=file,
            )
    known = with_variables(os.environ, keys or {})
    variable = next((name for name in info.keys if known.get(name)), None)
    key = known[variable] if variable is not None else None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ModelUnavailableError(
            f"{variable} contains a character that a key can't have, such as a line break",
            hint=f"set {variable} to only the key",
            file=file,
        )
    unset = [] if own else [name for name in info.needs if not os.environ.get(name)]
    if info.keys and not key and not info.keyless and not base_url:
        unset.insert(0, info.keys[0])
    if unset:
        whose = f" for agent {agent!r}" if agent else ""
        raise ModelUnavailableError(
            f"{' and '.join(unset)} must be set to use the provider {provider!r}{whose}",
            hint=f"set {unset[0]}{_IN_FILE if unset[0] in info.keys else ''}, or use another model; "
            "`llm-do models` lists the available ones",
            file=file,
        )
    return Address(provider, base_url or DEFAULT_URLS.get(provider), key or (NO_KEY if base_url else None))


def sends_key_elsewhere(address: Address) -> bool:
    """Whether a real key is sent to an address that is neither the provider's own nor local."""
    if not address.base_url or address.key in (None, NO_KEY):
        return False
    host = urlsplit(address.base_url).hostname
    own = urlsplit(DEFAULT_URLS.get(address.provider, "")).hostname
    return host not in (own, "localhost", "127.0.0.1", "::1")


def make_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    """Create a provider; `llm_do.models.composites` keeps its SDK from retrying."""
    try:
        if address.provider in OPENAI or address.provider == "ollama":
            return _openai_provider(address, client_for)
        if address.provider == "anthropic":
            return _anthropic_provider(address, client_for)
        if address.provider in ("google", "google-decisions"):
            return _google_provider(address, client_for)
        return _other_provider(address, client_for)
    except ImportError as error:
        missing = missing_import(address.provider, error)
        raise ModelUnavailableError(missing.message, hint=missing.hint) from error
    except UserError as error:
        raise ModelUnavailableError(
            f"the provider {address.provider!r} can't be used: {error.message.partition(' To try Pydantic AI')[0]}",
            hint="configure the provider, or use another model",
        ) from error
    except ModelUnavailableError:
        raise
    except Exception as error:  # a provider's library raises its own errors for missing credentials
        message = " ".join(str(error).split()) or type(error).__name__
        raise ModelUnavailableError(
            f"the provider {address.provider!r} can't be used: {message}",
            hint="configure the provider, or use another model",
        ) from error


def make_model(provider: str, name: str, instance: AnyProvider) -> Model:
    """Create the model `provider:name` with an existing provider."""
    try:
        if provider in ("openai", "openai-responses"):
            from pydantic_ai.models.openai import OpenAIResponsesModel

            return OpenAIResponsesModel(name, provider=instance)
        if provider in ("openai-chat", "ollama"):
            from pydantic_ai.profiles.openai import OpenAIModelProfile

            from llm_do.models.providers.chat.model import ChatModel

            # Without this, a stream that breaks between two events looks like a complete answer.
            profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
            return ChatModel(name, provider=instance, profile=profile)
        inferred = infer_model(f"{provider}:{name}", lambda _: instance)
        known = sys.modules.get("pydantic_ai.models.openai")  # imported if it is one of them; heavy for all others
        if known is not None and type(inferred) is known.OpenAIChatModel:
            from llm_do.models.providers.chat.model import ChatModel

            return ChatModel(name, provider=instance)
        return inferred
    except ImportError as error:
        missing = missing_import(provider, error)
        raise ModelUnavailableError(missing.message, hint=missing.hint) from error
    except (UserError, ValueError) as error:
        raise ModelUnavailableError(
            f"the model '{provider}:{name}' can't be used: {error}",
            hint="name another model, or configure the provider",
        ) from error


def _openai_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    from llm_do.models.providers.chat.client import LeanOpenAI

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
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from llm_do.models.providers.anthropic_client import CheckedAnthropic

    return AnthropicProvider(
        anthropic_client=CheckedAnthropic(
            base_url=address.base_url, api_key=address.key, http_client=client_for(address), max_retries=0
        )
    )


def _google_provider(address: Address, client_for: ClientSource) -> AnyProvider:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.providers.google import GoogleProvider

    from llm_do.models.providers.google_client import check_answers

    return GoogleProvider(
        api_key=address.key,
        base_url=address.base_url,
        http_client=check_answers(client_for(address)),
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
                f"the provider {address.provider!r} has a fixed address, so `base_url` can't be set",
                hint="use `openai-chat:NAME` for an OpenAI-compatible server",
            )
        arguments[name] = address.base_url
    if address.key is not None and "api_key" in accepted:
        arguments["api_key"] = address.key
    if "http_client" in accepted and address.provider not in OWN_HTTP:
        arguments["http_client"] = client_for(address)
    provider = provider_class(**arguments)
    if "openai_client" not in accepted or "http_client" not in arguments or address.key is None:
        return provider
    if address.provider in OWN_READING:
        return provider
    return _with_lean_client(provider, arguments["http_client"])


def _with_lean_client(provider: AnyProvider, http_client: httpx2.AsyncClient) -> AnyProvider:
    """Return the provider with a client that mends the answers of its servers; they speak OpenAI's protocol."""
    from openai import AsyncOpenAI

    from llm_do.models.providers.chat.client import lean_copy

    kind: Any = type(provider)
    if type(provider.client) is not AsyncOpenAI:
        return provider
    return kind(openai_client=lean_copy(provider.client, http_client))
