"""`llm-do schema`: the JSON Schemas that let an editor complete and check project files."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def schema(
    kind: Annotated[
        Literal["agent", "project", "tests"],
        typer.Argument(
            metavar="agent|project|tests",
            help="Schema of the frontmatter of .agent files, of project.json, or of .test.yaml files.",
        ),
    ],
    _debug: p.Debug = False,
) -> int:
    """Print the JSON Schema of project files, for editors.

    \b
    Examples:
      llm-do schema agent > agent.schema.json
      llm-do schema project > project.schema.json
      llm-do schema tests > tests.schema.json
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.process.streams import claim_stdout

    results = claim_stdout()
    hasten_reading()
    from llm_do.formats.editor_schema import agent_schema, cases_schema, project_schema

    schemas = {"agent": agent_schema, "project": project_schema, "tests": cases_schema}
    made = schemas[kind]()
    results.write(json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    return 0
