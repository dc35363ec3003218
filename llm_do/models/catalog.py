"""What could be used here and now, for `llm-do models`; nothing is imported, built or asked over a network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from llm_do._startup.frozen import frozen
from llm_do.models.builtin import weights
from llm_do.models.providers.factories import registered_prefixes
from llm_do.models.providers.model_names import PROVIDERS, ProviderInfo

__all__ = ["ModelInfo", "available_models", "is_local_available"]

PACKAGES = {
    "bedrock": "boto3",
    "bedrock-mantle": "boto3",
    "cohere": "cohere",
    "gateway/bedrock": "boto3",
    "gateway/groq": "groq",
    "groq": "groq",
    "huggingface": "huggingface_hub",
    "mistral": "mistralai",
    "xai": "xai_sdk",
}
"""Packages beyond those that come with llm-do."""

ELSEWHERE = {
    "bedrock": "AWS credentials",
    "bedrock-mantle": "AWS credentials",
    "github-copilot": "a GitHub Copilot login",
    "google-cloud": "Google Cloud credentials",
    "openai-chatgpt": "a ChatGPT login",
    "openai-codex": "a ChatGPT login",
}
"""What providers without a key of their own look for, which the environment alone doesn't show."""


@frozen
class ModelInfo:
    """One kind of model, and whether it can be used.

    Args:
        name: How it is named, such as `openai:NAME` or `local`.
        usable: Whether what it needs is at hand.
        note: What is missing; a remark where it is usable; may be empty.
    """

    name: str
    usable: bool
    note: str = ""


def is_local_available() -> bool:
    """Whether `local` could be used now: its weights are here, or a server is named, and what runs it is installed."""
    return _local(os.environ).usable


def available_models(environ: Mapping[str, str] | None = None) -> list[ModelInfo]:
    """List the kinds of models, and why not where one can't be used.

    Example:
        >>> [info.usable for info in available_models({"OPENAI_API_KEY": "k"}) if info.name == "openai:NAME"]
        [True]
    """
    environ = os.environ if environ is None else environ
    providers = [_provider(prefix, info, environ) for prefix, info in PROVIDERS.items()]
    return [
        _local(environ),
        ModelInfo("local:PATH.gguf", *_runtime()),
        ModelInfo("local:URL#NAME", usable=True),
        ModelInfo("script:PATH", usable=True),
        ModelInfo("test", usable=True),
        *(ModelInfo(f"{prefix}:NAME", usable=True) for prefix in registered_prefixes()),
        *providers,
    ]


def _runtime() -> tuple[bool, str]:
    installed = find_spec("xllamacpp") is not None
    return installed, "" if installed else "run `pip install 'llm-do[local]'`"


def _local(environ: Mapping[str, str]) -> ModelInfo:
    chosen = environ.get("LLM_DO_LOCAL_MODEL") or ""
    if "://" in chosen:
        return ModelInfo("local", usable=True, note=f"LLM_DO_LOCAL_MODEL names {chosen}")
    installed, missing = _runtime()
    reasons = [] if installed else [missing]
    if weights.find_weights() is None:
        reasons.append(f"LLM_DO_LOCAL_MODEL names no file: {chosen}" if chosen else "run `llm-do models pull`")
    return ModelInfo("local", not reasons, "; ".join(reasons))


def _provider(prefix: str, info: ProviderInfo, environ: Mapping[str, str]) -> ModelInfo:
    name = f"{prefix}:NAME"
    package = PACKAGES.get(prefix)
    if package and find_spec(package) is None:
        return ModelInfo(name, usable=False, note=f"the package {package} isn't installed")
    moved = bool(info.base_url and environ.get(info.base_url))
    missing = [each for each in info.needs if not environ.get(each)]
    if info.keys and not info.keyless and not moved and not any(environ.get(key) for key in info.keys):
        missing.insert(0, " or ".join(info.keys))
    if missing:
        return ModelInfo(name, usable=False, note=f"{', '.join(missing)} not set")
    return ModelInfo(name, usable=True, note=f"with {ELSEWHERE[prefix]}" if prefix in ELSEWHERE else "")
