"""The argument and options of each command that reads or changes what a project has recorded: where that is.

They are declared once, so that a command on a store can lack none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.target import project_at
from llm_do.linker.sources.project_root import ProjectLocation, locate_project

__all__ = ["StoreOptions", "with_store_options"]


@frozen
class StoreOptions:
    """Which project's store, or which other one.

    Args:
        project: The project, if it is the first argument.
        named: The project, if `--project` names it.
        store: Another store than the project's.
        env_file: A file with variables for the store's URL, in addition to the project's `.env`.
    """

    project: str | None = None
    named: str | None = None
    store: str | None = None
    env_file: str | None = None

    def location(self, *, quiet: bool = False) -> ProjectLocation:
        """Find the project; one above the current folder is named on stderr unless this is `quiet`.

        Raises:
            UsageError: There is none, or it is named twice.
        """
        found = locate_project(project_at(self.project, self.named, quiet=quiet))
        return replace(found, env_file=self.env_file)


def with_store_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command these, in front of its own; it takes them as its first parameter."""
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in _DECLARED.items()
    ]

    @wraps(command)
    def read(**values: Any) -> int:
        where = {name: values.pop(name) for name in _DECLARED}
        return command(StoreOptions(**where), **values)

    read.__signature__ = Signature([*shared, *own])  # type: ignore[attr-defined]
    return read


_DECLARED = {"project": p.Project, "named": p.OfProject, "store": p.Store, "env_file": p.EnvFile}
"""What the fields of `StoreOptions` are on a command line."""
