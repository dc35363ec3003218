"""The packages that providers need and a plain installation doesn't have; none of them is imported here."""

from __future__ import annotations

import os
from collections.abc import Mapping

from llm_do._extras import Missing, extra_of, has_module, install_command, missing_extra
from llm_do.models.providers.model_names import split_name

__all__ = ["missing_for_model", "missing_import", "missing_package"]

_MODULES: Mapping[str, str] = {
    "bedrock": "boto3",
    "bedrock-mantle": "botocore",
    "cohere": "cohere",
    "gateway/bedrock": "boto3",
    "gateway/google": "google.genai",
    "gateway/google-cloud": "google.genai",
    "gateway/groq": "groq",
    "github": "httpx",
    "google": "google.genai",
    "google-cloud": "google.genai",
    "google-decisions": "google.genai",
    "groq": "groq",
    "huggingface": "huggingface_hub",
    "local": "xllamacpp",
    "mistral": "mistralai",
    "typesafe": "typesafe_sdk",
    "xai": "xai_sdk",
}
"""A module of the package that a provider's models need, by prefix."""

_PACKAGES: Mapping[str, str] = {
    "boto3": "pydantic-ai-slim[bedrock]",
    "botocore": "pydantic-ai-slim[bedrock-mantle]",
    "huggingface_hub": "pydantic-ai-slim[huggingface]",
    "httpx": "httpx",
    "mistralai": "pydantic-ai-slim[mistral]",
    "typesafe_sdk": "pydantic-ai-slim[typesafe]",
    "xai_sdk": "pydantic-ai-slim[xai]",
}
"""What installs a module that no extra of ours installs, unless it is PydanticAI's extra of that name."""


def missing_package(prefix: str) -> Missing | None:
    """Say what the models of a provider need and isn't installed; None if nothing is missing.

    Example:
        >>> missing_package("openai") is None
        True
    """
    module = _MODULES.get(prefix)
    return None if module is None or has_module(module) else _missing(prefix, module)


def missing_for_model(name: str) -> Missing | None:
    """Say what a model needs and isn't installed; None if nothing is missing, as for a local model on a server.

    Example:
        >>> missing_for_model("local:http://localhost:8080/v1#qwen") is None
        True
    """
    prefix, rest = split_name(name)
    if prefix == "local" and "://" in (rest or os.environ.get("LLM_DO_LOCAL_MODEL") or ""):
        return None
    return missing_package(prefix)


def missing_import(prefix: str, error: ImportError) -> Missing:
    """Say what an import needs that failed when a provider was first used."""
    return missing_package(prefix) or _missing(prefix, error.name or prefix)


def _missing(prefix: str, module: str) -> Missing:
    user = "the local model" if prefix == "local" else f"the provider {prefix!r}"
    extra = extra_of(module)
    if extra is not None:
        return missing_extra(extra, user)
    package = _PACKAGES.get(module, f"pydantic-ai-slim[{module}]")
    return Missing(f"{user} needs the package {module}, which isn't installed", install_command(package=package))
