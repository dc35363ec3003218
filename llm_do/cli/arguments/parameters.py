"""The arguments and options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "IMPORT_SECONDS",
    "PROJECT_HELP",
    "Allow",
    "ApproveAll",
    "AsJson",
    "Attach",
    "BudgetUsd",
    "Debug",
    "Deny",
    "DryRun",
    "Entry",
    "Fields",
    "ImportSeconds",
    "InputJson",
    "MaxDepth",
    "MaxSteps",
    "Models",
    "NoColor",
    "NoRecord",
    "OfProject",
    "Otel",
    "Output",
    "Project",
    "Quiet",
    "RejectAll",
    "Thread",
    "Timeout",
    "User",
    "Verbose",
    "agents_here",
]

PROJECT_HELP = "Folder, manifest or .agent file; by default the project of the current folder."

IMPORT_SECONDS = 30.0
"""What `ImportSeconds` is by default."""


def agents_here(incomplete: str) -> list[str]:
    """The names of the agents of the current folder's project that begin so, for a shell's completion."""
    import re

    from llm_do.errors import LlmDoError
    from llm_do.linker.sources.project_root import find_project

    own_name = re.compile(r"^name:\s*[\"']?([A-Za-z_][\w.-]*)", re.MULTILINE)
    try:
        root = find_project(Path.cwd()).root
    except (LlmDoError, OSError):
        return []
    names: list[str] = []
    for path in [*root.glob("*.agent"), *root.glob("*/*.agent"), *root.glob("*/*/*.agent")][:1000]:
        try:
            found = own_name.search(path.read_text(encoding="utf-8", errors="replace")[:4000])
        except OSError:
            continue
        names.append(found[1] if found else path.stem)
    return sorted({name for name in names if name.startswith(incomplete)})


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
ImportSeconds = Annotated[
    float, typer.Option("--import-timeout", min=0.1, help="Seconds the import of one Python file may take.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
InputJson = Annotated[
    str | None, typer.Option("--input-json", metavar="JSON", help="The input, as a JSON object or string.")
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=VALUE", help="One field of the input; repeatable."),
]
Attach = Annotated[
    list[str] | None,
    typer.Option("--attach", metavar="FILE", help="A file to go with the input, - for stdin; repeatable."),
]
Entry = Annotated[
    str | None,
    typer.Option(
        "--entry",
        "--agent",
        metavar="NAME",
        help="Run another agent, flow or function of the project.",
        autocompletion=agents_here,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="[NAME=]MODEL", help="The model of every agent, or of the one named; repeatable."),
]
ApproveAll = Annotated[bool, typer.Option("--approve-all", help="Allow every call that would be asked about.")]
RejectAll = Annotated[bool, typer.Option("--reject-all", help="Deny every call that would be asked about.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="PATTERN", help="Allow matching calls without asking; repeatable."),
]
Deny = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="PATTERN", help="Deny matching calls, whatever else is said; repeatable."),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="Continue this conversation, or begin it.")]
User = Annotated[str | None, typer.Option("--user", metavar="ID", help="Whose run it is.")]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Keep nothing of this run on disk.")]
MaxDepth = Annotated[int | None, typer.Option("--max-depth", min=1, help="Deepest nested call.")]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", min=1, help="Model requests in one agent's run.")]
BudgetUsd = Annotated[float | None, typer.Option("--budget-usd", min=0.0, help="US dollars that a whole run may cost.")]
Timeout = Annotated[float | None, typer.Option("--timeout", min=0.001, help="Seconds that a whole run may take.")]
Otel = Annotated[
    bool, typer.Option("--otel", help="Send OpenTelemetry spans to where the OTEL_ environment variables say.")
]
Output = Annotated[
    Literal["text", "json", "events"],
    typer.Option("--output", help="The result as text or JSON, or events as JSON lines, live."),
]
Verbose = Annotated[
    int,
    typer.Option(
        "-v", "--verbose", count=True, help="Say on stderr what happens; -vv also streams text.", show_default=False
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Nothing but errors on stderr.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Link and resolve, and show what would run.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
"""Every command takes it; whoever tells of errors (`app.run`) looks for it among the arguments."""
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours.")]
