"""Model names: their providers, the environment variables that each needs, and the choice of an agent's model."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from llm_do._entry_points import find_published
from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.text.globs import matches_any
from llm_do.text.words import closest_match

__all__ = [
    "BUILT_IN",
    "DEFAULT_MODELS",
    "PROVIDERS",
    "RENAMED",
    "ModelOverride",
    "NameFault",
    "ProviderInfo",
    "anchor_path",
    "available_keys",
    "check_model_name",
    "default_model",
    "expand_user",
    "find_name_fault",
    "is_http_address",
    "local_server",
    "parse_override",
    "path_from_root",
    "split_name",
]

BUILT_IN = ("local", "script", "test")
"""Prefixes that llm-do itself defines."""

DEFAULT_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-terra",
    "google": "gemini-3.8-flash",
    "deepseek": "deepseek-v4-pro",
    "moonshotai": "kimi-k3",
    "cerebras": "gpt-oss-120b",
}
"""The model that is used of a provider whose key is set if nothing names one, the first provider first: each handles
tools well and is far from its provider's most expensive one."""

RENAMED = {"google-gla": "google", "google-vertex": "google-cloud", "grok": "xai"}
FAMILIES = {"gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic", "gemini": "google"}
OVERRIDE = re.compile(r"(?P<agent>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<model>.+)", re.DOTALL)


@frozen
class ProviderInfo:
    """The environment variables that one provider uses."""

    keys: tuple[str, ...] = ()
    """Variables for its key; one of them is enough."""

    base_url: str | None = None
    """The variable for its address."""

    needs: tuple[str, ...] = ()
    """Other required variables."""

    keyless: bool = False
    """Whether it can be used without a key."""


@frozen
class ModelOverride:
    """The caller's choice of models: one for each named agent, and one for all others."""

    everyone: str | tuple[str, ...] | None = None
    """The model of all agents that aren't named."""

    agents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models by agent name."""

    def of(self, agent: str) -> str | tuple[str, ...] | None:
        """Return the model for an agent, if there is one."""
        return self.agents.get(agent) or self.everyone or None


@frozen
class NameFault:
    """Why a model's name is invalid."""

    problem: str
    """A predicate for a sentence about the model."""

    hint: str
    """What to write instead."""

    may_register: bool = False
    """Whether the project's Python may still register a factory for it."""


_OPENAI = ProviderInfo(("OPENAI_API_KEY",), "OPENAI_BASE_URL")
_GOOGLE = ProviderInfo(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL")
_AZURE = ProviderInfo(("AZURE_OPENAI_API_KEY",), None, ("AZURE_OPENAI_ENDPOINT",))
_GATEWAY = ProviderInfo(("PYDANTIC_AI_GATEWAY_API_KEY", "PAIG_API_KEY"))

PROVIDERS: Mapping[str, ProviderInfo] = {
    "alibaba": ProviderInfo(("ALIBABA_API_KEY", "DASHSCOPE_API_KEY")),
    "anthropic": ProviderInfo(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    "azure": _AZURE,
    "azure-responses": _AZURE,
    "bedrock": ProviderInfo(),
    "bedrock-mantle": ProviderInfo(),
    "cerebras": ProviderInfo(("CEREBRAS_API_KEY",)),
    "cohere": ProviderInfo(("CO_API_KEY",)),
    "crusoe": ProviderInfo(("CRUSOE_API_KEY",)),
    "deepseek": ProviderInfo(("DEEPSEEK_API_KEY",)),
    "fireworks": ProviderInfo(("FIREWORKS_API_KEY",)),
    "gateway/anthropic": _GATEWAY,
    "gateway/bedrock": _GATEWAY,
    "gateway/google": _GATEWAY,
    "gateway/google-cloud": _GATEWAY,
    "gateway/groq": _GATEWAY,
    "gateway/openai": _GATEWAY,
    "github": ProviderInfo(("GITHUB_API_KEY",)),
    "github-copilot": ProviderInfo(),
    "google": _GOOGLE,
    "google-cloud": ProviderInfo(),
    "google-decisions": _GOOGLE,
    "groq": ProviderInfo(("GROQ_API_KEY",)),
    "heroku": ProviderInfo(("HEROKU_INFERENCE_KEY",)),
    "huggingface": ProviderInfo(("HF_TOKEN",)),
    "litellm": ProviderInfo(keyless=True),
    "meta": ProviderInfo(("META_API_KEY",)),
    "mistral": ProviderInfo(("MISTRAL_API_KEY",)),
    "moonshotai": ProviderInfo(("MOONSHOTAI_API_KEY",)),
    "nebius": ProviderInfo(("NEBIUS_API_KEY",)),
    "ollama": ProviderInfo(("OLLAMA_API_KEY",), "OLLAMA_BASE_URL", keyless=True),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-chatgpt": ProviderInfo(),
    "openai-codex": ProviderInfo(),
    "openai-decisions": _OPENAI,
    "openai-responses": _OPENAI,
    "openrouter": ProviderInfo(("OPENROUTER_API_KEY",)),
    "ovhcloud": ProviderInfo(("OVHCLOUD_API_KEY",)),
    "sambanova": ProviderInfo(("SAMBANOVA_API_KEY",)),
    "snowflake": ProviderInfo(("SNOWFLAKE_TOKEN",), None, ("SNOWFLAKE_ACCOUNT",)),
    "system-one": ProviderInfo(("SYSTEM_ONE_API_KEY",)),
    "together": ProviderInfo(("TOGETHER_API_KEY",)),
    "typesafe": ProviderInfo(("TYPESAFE_API_KEY",)),
    "vercel": ProviderInfo(("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN")),
    "vllm": ProviderInfo(("VLLM_API_KEY",), "VLLM_BASE_URL", ("VLLM_BASE_URL",), keyless=True),
    "xai": ProviderInfo(("XAI_API_KEY",)),
    "zai": ProviderInfo(("ZAI_API_KEY",)),
}
"""Every prefix of PydanticAI's chat models, and the environment variables it reads."""

LEFT_OUT = ("elevenlabs", "sentence-transformers", "voyageai")
"""Providers of PydanticAI that have no chat models."""


def split_name(name: str) -> tuple[str, str]:
    """Split a model's name into its prefix and the rest.

    Example:
        >>> split_name("openai:gpt-5"), split_name("local"), split_name("gpt-5")
        (('openai', 'gpt-5'), ('local', ''), ('', 'gpt-5'))
    """
    if name in BUILT_IN:
        return name, ""
    prefix, colon, rest = name.partition(":")
    return (prefix, rest) if colon else ("", name)


def find_name_fault(name: str, registered: Collection[str] = (), aliases: Collection[str] = ()) -> NameFault | None:
    """Return why a model's name is invalid; None if it is valid. Names of `aliases` are suggested.

    A prefix that nothing else knows may be one that an installed package publishes; the package isn't imported.

    Example:
        >>> find_name_fault("gpt-5").problem, find_name_fault("gpt-5").hint
        ('names no provider', 'did you mean `openai:gpt-5`?')
    """
    prefix, rest = split_name(name)
    known = [*PROVIDERS, *BUILT_IN, *registered]
    if prefix not in known and not (prefix and find_published("models", prefix)):
        if not prefix:
            return NameFault("names no provider", _provider_hint(rest, aliases))
        return NameFault("names an unknown provider", _spelling_hint(prefix, rest, known), may_register=True)
    if not rest and prefix not in ("local", "test"):
        return NameFault(f"has no name after {prefix!r}", f"write `{prefix}:NAME`")
    return NameFault("is unknown", "write `test`") if prefix == "test" and rest else None


def check_model_name(
    name: str,
    *,
    agent: str = "",
    file: str | None = None,
    registered: Collection[str] = (),
    aliases: Collection[str] = (),
) -> None:
    """Raise if a model's name is invalid; names of `aliases` are suggested."""
    fault = find_name_fault(name, registered, aliases)
    if fault is not None:
        whose = f" of agent {agent!r}" if agent else ""
        raise ModelUnavailableError(f"the model {name!r}{whose} {fault.problem}", hint=fault.hint, file=file)


def _provider_hint(name: str, aliases: Collection[str]) -> str:
    if close := closest_match(name, aliases, spelling_only=True):
        return f"did you mean the alias `{close}`?"
    head, slash, tail = name.partition("/")
    if slash and head in PROVIDERS and tail:
        return f"did you mean `{head}:{tail}`?"
    for family, provider in FAMILIES.items():
        if name.startswith(family):
            return f"did you mean `{provider}:{name}`?"
    if close := get_close_matches(name, BUILT_IN, 1):
        return f"did you mean `{close[0]}`?"
    return "write `PROVIDER:NAME`, such as `openai:gpt-5`; `llm-do models` lists the providers"


def _spelling_hint(prefix: str, rest: str, known: Sequence[str]) -> str:
    close = [RENAMED[prefix]] if prefix in RENAMED else get_close_matches(prefix.lower(), known, 1)
    return f"did you mean `{close[0]}:{rest}`?" if close else "`llm-do models` lists the providers"


def available_keys(environ: Mapping[str, str]) -> list[str]:
    """List the variables in `environ` that hold a provider's key; an empty one counts as unset."""
    return sorted({key for info in PROVIDERS.values() for key in info.keys if environ.get(key)})


def default_model(environ: Mapping[str, str], compatible: Sequence[str] = ()) -> str | None:
    """Return the default model of the first provider whose key is set; one with an address of its own has no default.

    Example:
        >>> default_model({"OPENAI_API_KEY": "k"})
        'openai:gpt-6.1-terra'
    """
    for prefix, name in DEFAULT_MODELS.items():
        info = PROVIDERS[prefix]
        moved = info.base_url is not None and environ.get(info.base_url)
        if moved or not any(environ.get(key) for key in info.keys):
            continue
        if not compatible or matches_any(f"{prefix}:{name}", map(str.lower, compatible)):
            return f"{prefix}:{name}"
    return None


def parse_override(values: Sequence[str]) -> ModelOverride:
    """Parse the values of `--model`: `MODEL` for every agent, `NAME=MODEL` for one; the last value wins.

    Example:
        >>> parse_override(["test", "critic=openai:gpt-5"])
        ModelOverride(everyone='test', agents={'critic': 'openai:gpt-5'})
    """
    everyone: str | None = None
    agents: dict[str, str] = {}
    for value in values:
        if match := OVERRIDE.fullmatch(value):
            agents[match["agent"]] = match["model"]
        else:
            everyone = value or None
    return ModelOverride(everyone, agents)


def anchor_path(name: str, root: Path) -> str:
    """Resolve the path in a project's `script:PATH` or `local:PATH.gguf` against the project's folder.

    Example:
        >>> anchor_path("script:answers.yaml", Path("/projects/demo"))
        'script:/projects/demo/answers.yaml'
    """
    prefix, rest = split_name(name)
    if prefix not in ("script", "local") or not rest or "://" in rest:
        return name
    return f"{prefix}:{root / expand_user(rest)}"


def path_from_root(name: str, root: Path) -> str:
    """The same name with a path below the project's folder relative to it, as `anchor_path` resolves it.

    Example:
        >>> path_from_root("script:/projects/demo/answers.yaml", Path("/projects/demo"))
        'script:answers.yaml'
    """
    prefix, rest = split_name(name)
    path = Path(rest)
    if prefix not in ("script", "local") or not path.is_relative_to(root):
        return name
    return f"{prefix}:{path.relative_to(root)}"


def expand_user(path: str) -> Path:
    """Expand `~` in a path; an unknown user is left unchanged.

    Example:
        >>> expand_user("~nobody-of-this-name/a.yaml").name
        'a.yaml'
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 (pathlib's raises)


def is_http_address(text: str) -> bool:
    """Whether text is a valid HTTP address.

    Example:
        >>> [is_http_address(text) for text in ("http://localhost:8000/v1", "http://", "localhost:8000", "http://a:b")]
        [True, False, False, False]
    """
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def local_server(rest: str) -> tuple[str, str]:
    """Split `URL#NAME`, the rest of `local:URL#NAME`, into the server's address and the model's name.

    Example:
        >>> local_server("http://localhost:8080/v1#qwen")
        ('http://localhost:8080/v1', 'qwen')
    """
    url, _, name = rest.partition("#")
    return url, name or "default"
