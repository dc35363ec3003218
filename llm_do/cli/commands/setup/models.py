"""`llm-do models`: which models can be used, and downloading the local one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def models(
    action: Annotated[
        Literal["list", "pull"],
        typer.Argument(metavar="list|pull", help="List available models, or download the local one."),
    ] = "list",
    everything: Annotated[bool, typer.Option("--all", help="Also list models that can't be used, and why.")] = False,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List available models, or download the local one.

    \b
    Examples:
      llm-do models
      llm-do models --all
      llm-do models pull
    """
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    if action == "pull":
        from llm_do.models.builtin import weights

        results.write(f"{weights.pull_weights(warn)}\n")
        return 0
    from llm_do.models.catalog import available_models, declared_aliases

    environ, aliases = _surroundings()
    found = available_models(environ)
    shown = [info for info in found if everything or info.usable or info.name == "local"]
    shown = [*declared_aliases(aliases, environ), *shown]
    if form == "json":
        import json

        data = [{"name": info.name, "usable": info.usable, "note": info.note} for info in shown]
        results.write(json.dumps({"models": data}, indent=2, ensure_ascii=False) + "\n")
        return 0
    widest = max((len(info.name) for info in shown), default=0)
    notes = [info.note if info.usable else f"not available: {info.note}" for info in shown]
    results.write_lines(f"{info.name:<{widest}}  {note}".rstrip() for info, note in zip(shown, notes, strict=True))
    hidden = sum(info not in shown for info in found)
    if hidden:
        warn(f"{hidden} more can't be used; --all shows why")
    return 0


def _surroundings() -> tuple[dict[str, str], dict[str, str | list[str]]]:
    """The environment, with the keys in the `.env` of the current folder's project, and that project's aliases."""
    import os
    from pathlib import Path

    from llm_do.errors import LlmDoError
    from llm_do.linker.sources.project_root import find_project
    from llm_do.linker.sources.stated_settings import stated_aliases
    from llm_do.models.providers.env_files import keys_of, with_variables
    from llm_do.runtime.record.project_variables import file_variables

    try:
        location = find_project(Path.cwd())
    except (LlmDoError, OSError):
        return dict(os.environ), {}
    return with_variables(os.environ, keys_of(file_variables(location.root))), stated_aliases(location)
