"""`llm-do approvals replay`: what other rules would have decided about the recorded calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import runs_here
from llm_do.cli.arguments.moments import moment_parser

__all__ = ["replay"]


def replay(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="FILE",
            help="Rules to try: a JSON file with `allow`, `ask` and `deny`, or a manifest; else the project's own.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        float | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            parser=moment_parser,
            help="Only runs since then: a day, a time, or 30d.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="ID",
            help="Only this run.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ] = None,
    store: p.Store = None,
    form: p.Form = "text",
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Show what rules would have decided about recorded calls.

    It also proposes rules that spare questions; they have test cases from the record, and allow nothing that was ever
    denied. Nothing is called. A call whose arguments weren't recorded in full is unknown.

    \b
    Examples:
      llm-do approvals replay --since 30d
      llm-do approvals replay --rules new-rules.json
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.admission import admit
    from llm_do.cli.actions.link_report import show
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.text.sanitizer import sanitize
    from llm_do.ui.reports.approval_replay import replay_lines
    from llm_do.ui.terminal.screen import wants_color

    results = claim_stdout()
    hasten_reading()
    path = project_at(project, named)
    admission = admit(path, trust=trust, env_file=env_file, no_color=no_color)
    options = {
        "rules": str(Path(rules).absolute()) if rules is not None else None,
        "since": since,
        "run": run,
        "place": store,
    }
    task = "llm_do.cli.actions.approvals.replay:replay_data"
    found = check_in_subprocess(path, task, options, seconds=seconds, env_file=env_file)
    admission.say(found.left_out)
    if found.data is None:
        show(found, no_color=no_color)
        return 3
    for text in found.data["warnings"]:
        warn(sanitize(f"warning: {text}"))
    if form == "json":
        results.write(json.dumps(found.data, indent=2) + "\n")
        return 0
    data = {**found.data, "rules": f"the rules of {rules}" if rules is not None else "the project's rules"}
    results.write_lines(replay_lines(data, color=results.is_terminal and wants_color(os.environ, no_color=no_color)))
    return 0
