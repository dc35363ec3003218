"""The models that one model is made of, and seeing to it that none of them sends a request twice by itself."""

from __future__ import annotations

from pydantic_ai.exceptions import UnsupportedSettingWarning
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do._warnings import suppress_warning

__all__ = ["component_models", "disable_client_retries"]


def component_models(model: Model) -> list[Model]:
    """The models that answer in the end: those that a list tries in order, without what is wrapped around them."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        return [part for each in model.models for part in component_models(each)]
    return [model]


def disable_client_retries(model: Model, settings: ModelSettings | None) -> ModelSettings | None:
    """The settings with which a provider's library sends a request once, even where its client would try again.

    Trying again is the runtime's business, so that events and budgets are true.
    """
    parts = component_models(model)
    members = [part for part in parts if "max_retries" not in part.unsupported_settings]
    if not any(map(_may_retry, members)) and not (members and (settings or {}).get("max_retries")):
        return settings
    if len(members) < len(parts):
        # The models of a list are all sent the same; a warning that one of them doesn't know a setting would be noise.
        suppress_warning("The `max_retries` setting is not supported", UnsupportedSettingWarning)
    return merge_model_settings(settings, ModelSettings(max_retries=0))


def _may_retry(model: Model) -> bool:
    if (model.settings or {}).get("max_retries"):
        return True
    provider = model.provider
    # Clients of OpenAI's, Anthropic's and Groq's kind say it, others don't.
    return provider is not None and getattr(provider.client, "max_retries", None) != 0
