"""LD7xx: models and environment."""

from __future__ import annotations

from llm_do.spec.codes.code import Code

__all__ = ["ENVIRONMENT"]

ENVIRONMENT: dict[str, Code] = {
    "LD701": Code(
        "Malformed model name",
        "error",
        "A model is named provider:name, or by a single word such as test. Whether it exists shows when it is used.",
    ),
    "LD702": Code(
        "Missing environment variable",
        "error",
        "A toolset's configuration refers to a variable that isn't set.",
    ),
    "LD703": Code(
        "Secret shown to commands",
        "error",
        "A shell's `env` names the environment variables that commands may see. One that looks like a secret can't be "
        "among them: what a command sees, a model can read.",
    ),
}
