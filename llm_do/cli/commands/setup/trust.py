"""`llm-do trust`: the folders whose code a person lets run on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

if TYPE_CHECKING:
    from llm_do.cli.process.streams import Results

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def trust(
    folder: Annotated[
        str | None,
        typer.Argument(metavar="FOLDER", help="The folder; by default the current project's.", show_default=False),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="List the trusted folders, or say whether FOLDER is trusted.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Don't trust the folder any longer.")] = False,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Trust a folder, so that its code runs without a question, as does that of folders below it.

    Trusted folders are kept outside of projects, in `$XDG_STATE_HOME/llm-do/trust.json`. What a run may do there still
    needs approval as its rules say. With --show and a FOLDER the exit code is 1 if it isn't trusted.

    \b
    Examples:
      llm-do trust examples/receipts
      llm-do trust --show
      llm-do trust --revoke examples/receipts
    """
    from llm_do.cli.actions.admission import take_over_approvals
    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.errors import UsageError
    from llm_do.runtime.approval import trusted_folders
    from llm_do.text.sanitizer import sanitize

    results = claim_stdout()
    if show and revoke:
        raise UsageError("--show and --revoke exclude each other", hint="Keep one of them.")
    if show:
        return _show(folder, results, as_json=form == "json")
    root = _root(folder)
    if not revoke:
        trusted_folders.add(root)
        warn(sanitize(f"trusted: {root}"))
        take_over_approvals(root)
        return 0
    if not trusted_folders.remove(root):
        above = trusted_folders.find(root)
        hint = f"It is below {above.path}, which is." if above else "`llm-do trust --show` lists those that are."
        raise UsageError(f"{root} isn't trusted itself", hint=hint)
    above = trusted_folders.find(root)
    warn(sanitize(f"not trusted any longer: {root}"))
    if above is not None:
        warn(sanitize(f"warning: it is below {above.path}, which still is"))
    return 0


def _show(folder: str | None, results: Results, *, as_json: bool) -> int:
    import json

    from llm_do.cli.process.streams import warn
    from llm_do.runtime.approval import trusted_folders
    from llm_do.text.sanitizer import sanitize

    if folder is None:
        found = trusted_folders.load()
    else:
        root = _root(folder)
        entry = trusted_folders.find(root)
        found = (entry,) if entry is not None else ()
    if as_json:
        data = [{"path": each.path, "added": each.added, "exists": each.covers(Path(each.path))} for each in found]
        results.write(json.dumps({"trusted": data}, indent=2) + "\n")
    else:
        for each in found:
            gone = "" if each.covers(Path(each.path)) else "  (no longer there)"
            results.write_lines([sanitize(f"{each.path}  {each.added}{gone}")])
        if not found:
            warn("no folder is trusted" if folder is None else sanitize(f"{folder} isn't trusted"))
    return 1 if folder is not None and not found else 0


def _root(folder: str | None) -> Path:
    """The folder that is meant: a project's, or any other that is named."""
    from llm_do.cli.arguments.target import project_at, user_path
    from llm_do.linker.sources.project_root import locate_project

    if folder is None:
        return locate_project(project_at(None)).root
    path = user_path(folder)
    if path.is_file():
        return locate_project(path).root
    return Path(os.path.abspath(path))  # noqa: PTH100 (one that is gone can still be revoked)
