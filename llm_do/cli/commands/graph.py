"""`llm-do graph`: who calls whom, with which tools and permissions. It calls no model; it only imports Python files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments import parameters as p

_FORMS: dict[str, Literal["text", "mermaid", "dot"]] = {"tree": "text", "mermaid": "mermaid", "dot": "dot"}

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=LeanCommand)
def graph(
    project: p.Project = None,
    named: p.OfProject = None,
    form: Annotated[
        Literal["tree", "mermaid", "dot", "json"],
        typer.Option("--format", help="A tree for a terminal, Mermaid for Markdown, DOT for Graphviz, or JSON."),
    ] = "tree",
    permissions: Annotated[
        bool,
        typer.Option(
            "--permissions",
            help="Show the effective permissions of each agent along every call path, and the assertions.",
        ),
    ] = False,
    states: Annotated[
        str | None,
        typer.Option(
            "--states",
            metavar="AGENT",
            help="Show an agent's state machines: its toolkits' and its own.",
            show_default=False,
        ),
    ] = None,
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> int:
    """Show agents, tools and approvals as a tree or a graph.

    \b
    Examples:
      llm-do graph --permissions
      llm-do graph --format mermaid > graph.mmd
    """
    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.link_report import show
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout

    results = claim_stdout()
    hasten_reading()
    path = project_at(project, named)
    from llm_do.cli.actions.admission import admit

    admission = admit(path, trust=trust, env_file=env_file, no_color=no_color)
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.ui.reports import project_graph as drawing
    from llm_do.ui.terminal.screen import wants_color

    if states is not None:
        task, options = "llm_do.linker.checks.machine_checks:machines_data", {"agent": states}
    else:
        task, options = "llm_do.ui.reports.project_graph:graph_data", {}
    found = check_in_subprocess(path, task, options, seconds=seconds, env_file=env_file)
    if found.data is None or permissions:
        show(found, no_color=no_color)
    admission.say(found.left_out)
    if found.data is None:
        return 3
    if states is not None:
        from llm_do.ui.reports.machine_diagrams import draw_data

        results.write(_as_json(found.data) if form == "json" else draw_data(found.data, _FORMS[form]))
        return 0
    data = found.data if found.left_out is None else _with_unread(found.data, found.left_out.names)
    if form == "tree":
        color = results.is_terminal and wants_color(os.environ, no_color=no_color)
        text = (drawing.permissions if permissions else drawing.tree)(data, color=color)
        results.write_lines(text.splitlines())
    else:
        if form == "json":
            results.write(_as_json({**data, **admission.as_data(found.left_out)}))
        else:
            from llm_do.ui.reports import graph_languages

            draw = {"mermaid": graph_languages.mermaid, "dot": graph_languages.dot}[form]
            results.write(draw(data, assertions=permissions))
    return 0


def _with_unread(data: Mapping[str, Any], unread: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The data with the names that each agent lists and that aren't known, since no Python file was imported."""
    agents = [{**agent, "unread": [*unread.get(agent["name"], ())]} for agent in data["agents"]]
    return {**data, "agents": agents}


def _as_json(data: Mapping[str, Any]) -> str:
    import json

    return f"{json.dumps(data, indent=2)}\n"
