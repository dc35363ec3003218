"""`llm-do check`: links a project and reports every problem. It calls no model and imports no provider."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

if TYPE_CHECKING:
    from llm_do.cli.process.streams import Results
    from llm_do.diagnostics.diagnostic import Diagnostic

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


def _codes(incomplete: str) -> list[str]:
    """The codes that start with `incomplete`, for the shell's completion."""
    from llm_do.diagnostics.known_codes import CODES

    return [code for code in CODES if code.startswith(incomplete.upper())]


@app.command(cls=LeanCommand)
def check(
    project: p.Project = None,
    named: p.OfProject = None,
    form: Annotated[
        Literal["text", "json", "github", "sarif"],
        typer.Option(
            "--format",
            help="Text for people, JSON for programs, GitHub workflow annotations, or SARIF for code scanning.",
        ),
    ] = "text",
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="CODE", help="Explain a diagnostic, such as LD604, instead.", autocompletion=_codes
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 on warnings too.")] = False,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="Import no Python files, and report what is known without them.")
    ] = False,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Show the most that a run may take: requests, tool calls, dollars.")
    ] = False,
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
      llm-do check --format sarif > check.sarif
      llm-do check --explain LD604
      llm-do check --text-only --strict
      llm-do check --bounds
    """
    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.link_report import as_text, file_from_here, from_here
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout, warn

    results = claim_stdout()
    if explain is not None:
        _explain(explain, results, as_json=form == "json", no_color=no_color)
        return 0
    hasten_reading()
    path = project_at(project, named)
    from llm_do.cli.actions.admission import admit

    admission = admit(path, trust=trust, text_only=text_only, env_file=env_file, no_color=no_color)
    from llm_do.diagnostics.codes.environment import left_out_code
    from llm_do.diagnostics.diagnostic import Location
    from llm_do.linker.sources.project_root import MANIFEST, locate_project
    from llm_do.linker.sources.stated_settings import project_title
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.text.sanitizer import escape_controls
    from llm_do.ui.reports.diagnostic_text import render_github, render_json, summary
    from llm_do.ui.reports.sandbox_warning import sandbox_warnings
    from llm_do.ui.terminal.screen import wants_color

    task = "llm_do.linker.proofs.bounds:bounds_data" if bounds else None
    report = check_in_subprocess(path, task, seconds=seconds, tests=True, env_file=env_file)
    approvals, faults = _permanent_approvals(report.root)
    notice = admission.notice(report.left_out)
    warns = strict and not text_only  # who asks for text only knows that the rest is left out
    faults += [left_out_code(notice).at(Location(MANIFEST))] if notice and warns else []
    report = replace(report, diagnostics=(*report.diagnostics, *faults, *sandbox_warnings(report.files)))
    worst = report.data if report.left_out is None else None
    if bounds and report.left_out is not None:
        warn("the worst case isn't known: Python files were not imported")
    more = {**({"bounds": worst} if bounds else {}), **admission.as_data(report.left_out)}
    if form == "json":
        results.write(render_json(report.diagnostics, more))
    elif form == "sarif":
        from llm_do import __version__
        from llm_do.ui.reports.sarif import render_sarif

        manifest = file_from_here(MANIFEST, report.root)
        results.write(render_sarif(from_here(report.diagnostics, report.root), __version__, manifest, more))
    elif form == "github":
        results.write(render_github(from_here(report.diagnostics, report.root)))
    else:
        color = results.is_terminal and wants_color(os.environ, no_color=no_color)
        text = as_text(report.diagnostics, report.root, color=color, width=results.columns)
        results.write_lines(text.removesuffix("\n").split("\n") if text else ())
        if worst is not None:
            from llm_do.ui.reports.bounds import bounds_lines

            results.write_lines(bounds_lines(worst, color=color))
        shown_title = project_title(locate_project(path))
        if shown_title is not None:
            warn(escape_controls(shown_title))
        warn(summary(report.diagnostics))
        for line in approvals:
            warn(line)
    if not warns:
        admission.say(report.left_out)
    return 3 if report.failed or (strict and report.diagnostics) else 0


def _explain(code: str, results: Results, *, as_json: bool, no_color: bool) -> None:
    """Print what a diagnostic means, and how to fix it."""
    from llm_do.ui.reports.code_text import code_lines, find_code
    from llm_do.ui.terminal.screen import wants_color

    found = find_code(code)
    if as_json:
        results.write(json.dumps(asdict(found), indent=2) + "\n")
    else:
        color = results.is_terminal and wants_color(os.environ, no_color=no_color)
        results.write_lines(code_lines(found, color=color))


def _permanent_approvals(root: Path) -> tuple[list[str], list[Diagnostic]]:
    """A person's permanent approvals as lines, those found in the folder too, and diagnostics of what can't be read."""
    from llm_do.diagnostics.codes.rules import invalid_saved_approval
    from llm_do.diagnostics.diagnostic import Location
    from llm_do.runtime.approval.found_approvals import load_found_approvals
    from llm_do.runtime.approval.saved_approvals import load_saved_approvals
    from llm_do.text.sanitizer import sanitize

    saved, found = load_saved_approvals(root), load_found_approvals(root)
    lines = [sanitize(f"permanently approved: {item.text} ({item.place})") for item in saved.stored]
    lines += [sanitize(f"not used, since it came with the folder: {item.text} ({item.place})") for item in found.stored]
    faults: list[Diagnostic] = []
    lines += [sanitize(f"not used, since it came with the folder: {fault}") for fault in found.faults]
    for fault in saved.faults:
        where = Location(os.path.expanduser(fault.file), fault.line or 1)  # noqa: PTH111
        faults.append(invalid_saved_approval(fault.message).at(where))
    return lines, faults
