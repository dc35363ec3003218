"""Errors as values: each survives copying and pickling with all its data."""

from __future__ import annotations

import copy
import pickle

import pytest

import llm_do.errors
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import ContextValidationError, LinkError, LlmDoError, ProviderError

CLASSES = [
    kind
    for kind in vars(llm_do.errors).values()
    if isinstance(kind, type) and issubclass(kind, LlmDoError) and kind is not ContextValidationError
]
ERRORS = [
    *(kind("it failed", hint="do this") for kind in CLASSES),
    ContextValidationError("no number", key="count", rule="type", hint="give a number"),
    LinkError("no", [Diagnostic("LD201", "error", "there is no tool `a`", Location("a.agent", 2, 3))]),
    ProviderError("down", agent_path="main/analyst", status_code=503),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_copying_and_pickling(error: LlmDoError) -> None:
    for made in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(made) is type(error)
        assert (str(made), made.args, vars(made)) == (str(error), error.args, vars(error))
