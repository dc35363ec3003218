"""LD7xx: models and environment."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

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
    "LD704": Code(
        "Model name without a provider, or without a name",
        "error",
        "A model is named provider:name; only `local` and `test` stand alone. No provider can be found for this one, "
        "whatever is installed.",
    ),
    "LD705": Code(
        "Unknown provider",
        "warning",
        "Nobody has this prefix: not PydanticAI, not llm-do, and no Python file of the project registers it. Only an "
        "application that registers it before it runs the project could use the model.",
    ),
    "LD706": Code(
        "Budget in dollars, and a model without a known price",
        "warning",
        "`budget.cost_usd` is kept by the price list that comes with PydanticAI. A model that isn't in it, judged by "
        "its name, is refused when the run comes to it. `local`, `test` and `script:` cost nothing; what a model "
        "registered by the project costs, its responses may say.",
    ),
}
