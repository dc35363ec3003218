"""The arguments and options of `map`: those of a run that make sense for many, and its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

from llm_do.cli.arguments.run_options import CommandOptions, command_options, run_parameters

__all__ = ["with_batch_options"]

_ONE_RUN = frozenset(
    {
        "attach",
        "budget_usd",
        "dry_run",
        "durable",
        "entry",
        "fields",
        "input_json",
        "no_record",
        "output",
        "record_to",
        "replay",
        "run_id",
        "thread_id",
        "user_id",
        "verbose",
    }
)
"""The options that only a single run has, or that mean something else here."""


def with_batch_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command, after its own options, those of a run that hold for each of many."""
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    shared = [each for each in run_parameters() if each.name not in _ONE_RUN]
    absent = {each.name: each.default for each in run_parameters() if each.name in _ONE_RUN}

    @wraps(command)
    def read(**values: Any) -> int:
        rest = {each.name: values.pop(each.name) for each in own}
        given = {each.name: values[each.name] for each in shared}
        return command(_options({**absent, **given}), **rest)

    read.__signature__ = Signature(  # type: ignore[attr-defined]
        [*(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *shared]
    )
    return read


def _options(values: dict[str, Any]) -> CommandOptions:
    return command_options({**values, "project": None, "prompt": None})
