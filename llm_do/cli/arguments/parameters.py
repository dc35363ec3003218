"""The arguments and options that several commands take, each declared once; those of runs are in `run_options`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import TIME, time_parser

__all__ = [
    "IMPORT_SECONDS",
    "PROJECT_HELP",
    "Debug",
    "EnvFile",
    "Form",
    "ImportSeconds",
    "NoColor",
    "OfProject",
    "Project",
    "Store",
    "Trust",
]

PROJECT_HELP = "Folder, manifest or .agent file; by default the project of the current folder."

IMPORT_SECONDS = 30.0
"""What `ImportSeconds` is by default."""


Project = Annotated[
    str | None,
    typer.Argument(
        metavar="PROJECT",
        help=PROJECT_HELP,
        show_default=False,
    ),
]
OfProject = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        metavar="PROJECT",
        help=PROJECT_HELP,
        show_default=False,
    ),
]
STORE_HELP = "Where the record is kept: postgresql://... or a SQLite file; by default as the project says."
Store = Annotated[str | None, typer.Option("--store", metavar="STORE", help=STORE_HELP, show_default=False)]
ImportSeconds = Annotated[
    float,
    typer.Option(
        "--import-timeout",
        metavar=TIME,
        parser=time_parser(0.1),
        help="Seconds that importing one Python file may take, or a time such as 2m.",
    ),
]
Form = Annotated[Literal["text", "json"], typer.Option("--format", help="Text for people, or JSON for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
"""Every command takes it; `app.run` looks for it among the arguments when it reports an error."""
Trust = Annotated[
    bool, typer.Option("--trust", help="Trust the project's folder for this command, as LLM_DO_TRUST=1 does.")
]
EnvFile = Annotated[
    str | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help="File with keys and variables for `${NAME}`, read in addition to the project's `.env`; the environment has"
        " precedence.",
        show_default=False,
    ),
]
"""Every command that links a project takes it; of a run it is one of the options of `run_options`."""
NoColor = Annotated[bool, typer.Option("--no-color", help="Don't use colours.")]
