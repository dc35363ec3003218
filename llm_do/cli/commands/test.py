"""`llm-do test`: runs a project's tests, from recordings, scripts or models."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import models_here, runs_here

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def run(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    text: Annotated[
        str | None,
        typer.Option(
            "-k", metavar="TEXT", help="Run only tests whose name or file contains a text.", show_default=False
        ),
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Ask the models, and record every test again.")] = False,
    record_missing: Annotated[
        bool,
        typer.Option(
            "--record-missing", help="Ask the models, and record the tests whose recordings are missing or out of date."
        ),
    ] = False,
    live: Annotated[bool, typer.Option("--live", help="Ask the models, and record nothing.")] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Run each test durably, then replay it at once with no model and no tools: fail if it isn't the same.",
        ),
    ] = False,
    repeat: Annotated[
        int | None,
        typer.Option("--repeat", metavar="N", min=1, help="With --live: run each test N times.", show_default=False),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="[NAME=]MODEL",
            help="The model of every agent, or of one; may be repeated.",
            autocompletion=models_here,
            show_default=False,
        ),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Run each test in each column of its file's `matrix`.")
    ] = False,
    form: Annotated[
        Literal["text", "json", "junit", "markdown"],
        typer.Option("--format", help="Text for people, JSON, JUnit's XML, or Markdown for a pull request."),
    ] = "text",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the report to a file.", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="FILE",
            help="With --format markdown: compare with an earlier JSON report.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Run again what a changed file can reach, until Ctrl-C.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            "-j", metavar="N", min=1, help="Run N tests at once; by default one per processor.", show_default=False
        ),
    ] = None,
    past: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Make a test of a recorded run, by its id or a prefix.",
            show_default=False,
            autocompletion=runs_here,
        ),
    ] = None,
    store: p.Store = None,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Run a project's tests, from recordings, scripts or models.

    No provider is asked, unless --record, --record-missing or --live says so; these first say what they will ask. The
    exit code is 0; 1 if a test failed; 2 for wrong usage, also if there are no tests; 3 if the project or a test file
    has errors; 7 if a provider failed while recording.

    \b
    Examples:
      llm-do test
      llm-do test examples/receipts -k total
      llm-do test --record-missing
      llm-do test --live --repeat 5 --model openai:gpt-5-mini
      llm-do test --replay
      llm-do test --from 3f9a2b1c
      llm-do test --format junit --output report.xml
    """
    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.testing.options import TestOptions
    from llm_do.cli.process.streams import claim_stdout

    results = claim_stdout()
    hasten_reading()
    from llm_do.cli.actions.testing.action import run_tests

    options = TestOptions(
        project=project if named is None else named,
        text=text,
        record=record,
        record_missing=record_missing,
        live=live,
        replay=replay,
        repeat=repeat,
        models=tuple(models or ()),
        matrix=matrix,
        form=form,
        output=output,
        processes=processes,
        watch=watch,
        base=base,
        run=past,
        store=store,
        seconds=seconds,
        no_color=no_color,
        trust=trust,
        env_file=env_file,
    )
    return run_tests(options, results)
