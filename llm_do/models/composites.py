"""The components of a composite model, and the settings that keep them from retrying requests themselves."""

from __future__ import annotations

from pydantic_ai.exceptions import UnsupportedSettingWarning
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do._warnings import suppress_warning

__all__ = ["component_models", "disable_client_retries"]


def component_models(model: Model) -> list[Model]:
    """Return the models that send the requests, without wrappers and fallback lists."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        return [part for each in model.models for part in component_models(each)]
    return [model]


def disable_client_retries(model: Model, settings: ModelSettings | None) -> ModelSettings | None:
    """Return settings with which provider clients send each request once.

    Only the runtime retries, so that events and budgets count every request.
    """
    components = component_models(model)
    affected = [each for each in components if "max_retries" not in each.unsupported_settings]
    if not any(map(_may_retry, affected)) and not (affected and (settings or {}).get("max_retries")):
        return settings
    if len(affected) < len(components):
        # All models of a list get the same settings; a warning that one of them ignores a setting would be noise.
        suppress_warning("The `max_retries` setting is not supported", UnsupportedSettingWarning)
    return merge_model_settings(settings, ModelSettings(max_retries=0))


def _may_retry(model: Model) -> bool:
    if (model.settings or {}).get("max_retries"):
        return True
    provider = model.provider
    # Only some clients (OpenAI's, Anthropic's, Groq's) have this attribute.
    return provider is not None and getattr(provider.client, "max_retries", None) != 0
