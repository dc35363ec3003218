"""Names of models: their providers, what each needs from the environment, and which name an agent gets.

Everything here is a pure function of its arguments. Building a model from a name is `pool`'s business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.text.globs import matches_any

__all__ = [
    "BUILT_IN",
    "PROVIDERS",
    "RENAMED",
    "Choice",
    "ModelOverride",
    "NameFault",
    "Origin",
    "ProviderInfo",
    "anchor_path",
    "available_keys",
    "check_model_name",
    "choose_model",
    "expand_user",
    "find_name_fault",
    "is_http_address",
    "local_server",
    "parse_override",
    "split_name",
]

Origin = Literal["override", "agent", "environment", "manifest", "local"]
"""Where a model's name came from."""

BUILT_IN = ("local", "script", "test")
"""Prefixes that llm-do gives a meaning of its own."""

RENAMED = {"google-gla": "google", "google-vertex": "google-cloud", "grok": "xai"}
FAMILIES = {"gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic", "gemini": "google"}
GET_LOCAL = "`pip install 'llm-do[local]'` and `llm-do models pull`"
OVERRIDE = re.compile(r"(?P<agent>[A-Za-z_][A-Za-z0-9_.-]*)=(?P<model>.+)", re.DOTALL)


@frozen
class ProviderInfo:
    """What one provider needs from the environment.

    Args:
        keys: Variables that hold its key; any one of them will do.
        base_url: The variable that moves it to another address.
        needs: Other variables that must be set.
        keyless: Whether it can be used without a key.
    """

    keys: tuple[str, ...] = ()
    base_url: str | None = None
    needs: tuple[str, ...] = ()
    keyless: bool = False


@frozen
class ModelOverride:
    """What the caller asked for: a model for every agent, and models for some by name.

    Args:
        everyone: The model of every agent that isn't named.
        agents: Model by agent name.
    """

    everyone: str | tuple[str, ...] | None = None
    agents: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, agent: str) -> str | tuple[str, ...] | None:
        """The model asked for `agent`, if any."""
        return self.agents.get(agent) or self.everyone or None


@frozen
class Choice:
    """The models an agent uses, in the order they are tried, and who named them.

    Args:
        names: At least one name.
        origin: Where they were named.
    """

    names: tuple[str, ...]
    origin: Origin


@frozen
class NameFault:
    """What is wrong with a model's name.

    Args:
        problem: What a sentence about the model says of it.
        hint: What to write instead.
        may_come: A factory that is registered later may yet serve it.
    """

    problem: str
    hint: str
    may_come: bool = False


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
"""Every prefix of a chat model that PydanticAI has, and what it reads from the environment."""

LEFT_OUT = ("elevenlabs", "sentence-transformers", "voyageai")
"""Providers of PydanticAI that have no chat model."""


def split_name(name: str) -> tuple[str, str]:
    """Take a model's name apart.

    Example:
        >>> split_name("openai:gpt-5"), split_name("local"), split_name("gpt-5")
        (('openai', 'gpt-5'), ('local', ''), ('', 'gpt-5'))
    """
    if name in BUILT_IN:
        return name, ""
    prefix, colon, rest = name.partition(":")
    return (prefix, rest) if colon else ("", name)


def find_name_fault(name: str, registered: Collection[str] = ()) -> NameFault | None:
    """Find out why no model can have a name; None if one can.

    Example:
        >>> find_name_fault("gpt-5").problem, find_name_fault("gpt-5").hint
        ('names no provider', 'did you mean `openai:gpt-5`?')
    """
    prefix, rest = split_name(name)
    known = [*PROVIDERS, *BUILT_IN, *registered]
    if prefix not in known:
        if not prefix:
            return NameFault("names no provider", _provider_hint(rest))
        return NameFault("names an unknown provider", _spelling_hint(prefix, rest, known), may_come=True)
    if not rest and prefix not in ("local", "test"):
        return NameFault(f"lacks a name after {prefix!r}", f"write `{prefix}:NAME`")
    return NameFault("is unknown", "write `test`") if prefix == "test" and rest else None


def check_model_name(name: str, *, agent: str = "", file: str | None = None, registered: Collection[str] = ()) -> None:
    """Check that a name is one that a model could have."""
    fault = find_name_fault(name, registered)
    if fault is not None:
        whose = f" of agent {agent!r}" if agent else ""
        raise ModelUnavailableError(f"the model {name!r}{whose} {fault.problem}", hint=fault.hint, file=file)


def _provider_hint(name: str) -> str:
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
    """The variables in `environ` that hold a provider's key; an empty one counts as unset."""
    return sorted({key for info in PROVIDERS.values() for key in info.keys if environ.get(key)})


def parse_override(values: Sequence[str]) -> ModelOverride:
    """Read the values of `--model`: `MODEL` for every agent, `NAME=MODEL` for one; a later value wins.

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
    """Make the path in `script:PATH` or `local:PATH.gguf` that stands in a project's file relative to the project.

    Example:
        >>> anchor_path("script:answers.yaml", Path("/projects/demo"))
        'script:/projects/demo/answers.yaml'
    """
    prefix, rest = split_name(name)
    if prefix not in ("script", "local") or not rest or "://" in rest:
        return name
    return f"{prefix}:{root / expand_user(rest)}"


def expand_user(path: str) -> Path:
    """A path with `~` written out; a user that doesn't exist stays as they are written.

    Example:
        >>> expand_user("~nobody-of-this-name/a.yaml").name
        'a.yaml'
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 (pathlib's raises)


def is_http_address(text: str) -> bool:
    """Whether a server could be there.

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
    """Take `URL#NAME`, the rest of `local:URL#NAME`, apart: a server of one's own and its model.

    Example:
        >>> local_server("http://localhost:8080/v1#qwen")
        ('http://localhost:8080/v1', 'qwen')
    """
    url, _, name = rest.partition("#")
    return url, name or "default"


def choose_model(
    agent: str,
    declared: str | Sequence[str] | None = None,
    *,
    environ: Mapping[str, str],
    override: ModelOverride | None = None,
    manifest: str | Sequence[str] | None = None,
    compatible: Sequence[str] = (),
    local_at_hand: Callable[[], bool] = lambda: False,
    file: str | None = None,
    root: Path | None = None,
) -> Choice:
    """Decide which model an agent uses.

    The first that names one wins: the caller's override, the agent, `LLM_DO_MODEL`, the manifest; then `local` where
    it is at hand and the environment holds no provider's key.

    Example:
        >>> choose_model("main", environ={"LLM_DO_MODEL": "openai:gpt-5"}, manifest="test")
        Choice(names=('openai:gpt-5',), origin='environment')
    """
    named: tuple[tuple[Origin, str | Sequence[str] | None], ...] = (
        ("override", (override or ModelOverride()).of(agent)),
        ("agent", declared),
        ("environment", environ.get("LLM_DO_MODEL")),
        ("manifest", manifest),
    )
    chosen = next((Choice(_listed(value), origin) for origin, value in named if value), None)
    if chosen is None:
        if available_keys(environ) or not local_at_hand():
            raise _unnamed(agent, environ, file, at_hand=local_at_hand)
        chosen = Choice(("local",), "local")
    for name in chosen.names:
        _check_compatible(agent, name, compatible, file)
    if root is not None and chosen.origin in ("agent", "manifest"):
        return Choice(tuple(anchor_path(name, root) for name in chosen.names), chosen.origin)
    return chosen


def _listed(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _check_compatible(agent: str, name: str, globs: Sequence[str], file: str | None) -> None:
    if globs and not matches_any(name.lower(), map(str.lower, globs)):
        raise ModelUnavailableError(
            f"agent {agent!r} is not compatible with the model {name!r}, only with {', '.join(globs)}",
            hint=f"name another with `--model {agent}=MODEL`, or change `compatible_models`",
            file=file,
        )


def _unnamed(
    agent: str, environ: Mapping[str, str], file: str | None, *, at_hand: Callable[[], bool]
) -> ModelUnavailableError:
    keys = available_keys(environ)
    local = "`--model local` runs the local model" if at_hand() else f"{GET_LOCAL} give you the model `local`"
    found = f" ({', '.join(keys)} is set, so its provider's models can be used)" if keys else ""
    return ModelUnavailableError(
        f"agent {agent!r} has no model",
        hint=f"name one with `--model PROVIDER:NAME`, in `model` of the agent's file or the manifest, or in "
        f"LLM_DO_MODEL{found}; {local}",
        file=file,
    )
