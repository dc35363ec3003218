"""`llm-do check`: links a project and reports every problem. It calls no model and imports no provider."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def check(
    project: p.Project = None,
    named: p.OfProject = None,
    form: Annotated[
        Literal["text", "json", "github"],
        typer.Option("--format", help="Text for people, JSON for programs, or GitHub workflow annotations."),
    ] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 on warnings too.")] = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Check a project and report every problem. The exit code is 0, or 3 if there are errors.

    \b
    Examples:
      llm-do check
      llm-do check examples/receipts --strict
      llm-do check --format github
    """
    from llm_do._startup.process import disable_plugins
    from llm_do.cli.actions.link_report import from_here, read_source
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    disable_plugins()
    path = project_at(project, named)
    from llm_do.linker.sources.project_files import project_title
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.text.sanitizer import escape_controls
    from llm_do.ui.reports.diagnostic_text import render_github, render_json, render_text, summary
    from llm_do.ui.reports.sandbox_warning import sandbox_warnings
    from llm_do.ui.terminal.screen import wants_color

    report = check_in_subprocess(path, seconds=seconds, tests=True)
    approvals, faults = _permanent_approvals(report.root)
    report = replace(report, diagnostics=(*report.diagnostics, *faults, *sandbox_warnings(path)))
    if form == "json":
        results.write(render_json(report.diagnostics))
    elif form == "github":
        results.write(render_github(from_here(report.diagnostics, report.root)))
    else:
        color = results.is_terminal and wants_color(os.environ, no_color=no_color)
        shown = from_here(report.diagnostics, report.root)
        text = render_text(shown, read_source, color=color, width=results.columns)
        results.write_lines(text.removesuffix("\n").split("\n") if text else ())
        shown_title = project_title(locate_project(path))
        if shown_title is not None:
            warn(escape_controls(shown_title))
        warn(summary(report.diagnostics))
        for line in approvals:
            warn(line)
    return 3 if report.failed or (strict and report.diagnostics) else 0


def _permanent_approvals(root: Path) -> tuple[list[str], list[Diagnostic]]:
    """The project's permanent approvals as lines, and diagnostics of those that can't be read."""
    if not os.path.lexists(root / ".llm-do" / "approvals.json"):
        return [], []
    from llm_do.diagnostics.codes.rules import invalid_saved_approval
    from llm_do.diagnostics.diagnostic import Location
    from llm_do.runtime.approval import saved_approvals
    from llm_do.text.sanitizer import sanitize

    found = saved_approvals.load_saved_approvals(root)
    lines = [sanitize(f"permanently approved: {item.text} ({item.place})") for item in found.stored]
    faults: list[Diagnostic] = []
    for fault in found.faults:
        where = Location(saved_approvals.FILE, fault.line or 1)
        faults.append(invalid_saved_approval(fault.message).at(where))
    return lines, faults
