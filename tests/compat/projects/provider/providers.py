"""Registers models of our own server under a prefix of their own."""

import os

from pydantic_ai.models.openai import OpenAIChatModel

from llm_do import register_model_factory
from llm_do.providers import OpenAICompatibleProvider

BUILT: list[OpenAIChatModel] = []


def build(model_name: str) -> OpenAIChatModel:
    base_url = os.environ.get("COMPAT_LAB_URL", "http://localhost:1/v1")
    model = OpenAIChatModel(model_name, provider=OpenAICompatibleProvider(base_url=base_url, name="compat-lab"))
    BUILT.append(model)
    return model


register_model_factory("compat-lab", build)
