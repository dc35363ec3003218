"""`llm-do models`: which models can be used, and downloading the local one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.project_first import ProjectFirst

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=ProjectFirst)
def models(
    *,
    project: p.Project = None,
    action: Annotated[
        Literal["list", "pull"],
        typer.Argument(metavar="list|pull", help="List available models, or download the local one."),
    ] = "list",
    named: p.OfProject = None,
    env_file: p.EnvFile = None,
    everything: Annotated[bool, typer.Option("--all", help="Also list models that can't be used, and why.")] = False,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List available models, or download the local one.

    Those of a project are listed with its aliases, and with the providers whose keys are in its `.env`.

    \b
    Examples:
      llm-do models
      llm-do models examples/support_desk --env-file prod.env
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
    from llm_do.ui.terminal.text_width import pad, text_width

    environ, aliases = _surroundings(project, named, env_file)
    found = available_models(environ)
    shown = [info for info in found if everything or info.usable or info.name == "local"]
    shown = [*declared_aliases(aliases, environ), *shown]
    if form == "json":
        import json

        data = [{"name": info.name, "usable": info.usable, "note": info.note} for info in shown]
        results.write(json.dumps({"models": data}, indent=2, ensure_ascii=False) + "\n")
        return 0
    widest = max((text_width(info.name) for info in shown), default=0)
    notes = [info.note if info.usable else f"not available: {info.note}" for info in shown]
    results.write_lines(f"{pad(info.name, widest)}  {note}".rstrip() for info, note in zip(shown, notes, strict=True))
    hidden = sum(info not in shown for info in found)
    if hidden:
        warn(f"{hidden} more can't be used; --all shows why")
    return 0


def _surroundings(
    project: str | None, named: str | None, env_file: str | None
) -> tuple[dict[str, str], dict[str, str | list[str]]]:
    """The environment, with the keys in the named file and a project's `.env`, and that project's aliases."""
    import os

    from llm_do.cli.arguments.target import project_at
    from llm_do.errors import UsageError
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.linker.sources.stated_settings import stated_aliases
    from llm_do.models.providers.env_files import keys_of, with_variables
    from llm_do.runtime.record.project_variables import file_variables

    try:
        location = locate_project(project_at(project, named, quiet=True))
    except UsageError:
        if project is not None or named is not None:
            raise
        location = None
    root, aliases = (location.root, stated_aliases(location)) if location is not None else (None, {})
    return with_variables(os.environ, keys_of(file_variables(root, env_file))), aliases
