"""Models made of others: their components, lists of models, and whether a model can stream."""

from __future__ import annotations

from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UnsupportedSettingWarning
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do._warnings import suppress_warning
from llm_do.errors import ModelError

__all__ = ["ModelList", "can_stream", "component_models", "disable_client_retries"]


class ModelList(FallbackModel):
    """Models that are tried in order.

    By itself a `FallbackModel` can't try the next model once a stream has begun. So the runtime asks `choices`, the
    same models one by one, each of which fails by itself.
    """

    def __init__(self, *models: Model) -> None:
        super().__init__(*models, fallback_on=(ModelAPIError, ModelError, UnexpectedModelBehavior))
        self.choices = tuple(FallbackModel(model, fallback_on=_never) for model in models)


def _never(_: Exception) -> bool:
    return False


def component_models(model: Model) -> list[Model]:
    """Return the models that send the requests, without wrappers and fallback lists."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        return [part for each in model.models for part in component_models(each)]
    return [model]


def can_stream(model: Model) -> bool:
    """Whether a streamed request to a model does what a complete one does.

    It doesn't where a class has a `request` of its own and no `request_stream`: the inherited one raises, or passes by
    what `request` does. Nor with a fallback model, which can't fall back once a stream has begun.
    """
    if isinstance(model, FallbackModel):
        return len(model.models) == 1 and can_stream(model.models[0])
    if getattr(model, "stream_function", True) is None:
        # A `FunctionModel` that only answers as a whole. Importing its class would build a schema of all responses.
        return False
    owner = next(kind for kind in type(model).__mro__ if "request" in vars(kind))
    streamer = next(kind for kind in type(model).__mro__ if "request_stream" in vars(kind))
    if not issubclass(streamer, owner):
        return False
    return can_stream(model.wrapped) if isinstance(model, WrapperModel) else True


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
