"""`llm-do approvals`: what was allowed for good, taking it back, and why a call is allowed or not."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Literal

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.plain_commands import LeanCommand, LeanGroup

__all__ = ["app"]

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="List, take back and explain what is allowed.",
)

Form = Annotated[Literal["text", "json"], typer.Option("--format", help="For people, or for programs.")]


@app.command("list", cls=LeanCommand)
def list_answers(project: p.OfProject = None, form: Form = "text", _debug: p.Debug = False) -> int:
    """List what was allowed for good.

    It stands in `.llm-do/approvals.json`, which may also be edited. The rules of the project itself stand in its
    manifest; `llm-do graph --permissions` shows what they come to.
    """
    import json

    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.text.sanitizer import sanitize

    results = claim_stdout()
    answers = _answers(project)
    if form == "json":
        data = [
            {"number": number, "allows": item.text, "place": item.place, "added": item.added, "entry": dict(item.entry)}
            for number, item in enumerate(answers.stored, 1)
        ]
        results.write(json.dumps({"answers": data, "faults": [*map(str, answers.faults)]}, indent=2) + "\n")
    else:
        results.write_lines(
            f"{number} {sanitize(item.text)}  ({sanitize(item.place)})" for number, item in enumerate(answers.stored, 1)
        )
        if not answers.stored:
            warn("nothing was allowed for good")
    for fault in answers.faults:
        warn(sanitize(f"warning: {fault}; it allows nothing"))
    return 0


@app.command(cls=LeanCommand)
def revoke(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="NUMBER...", help="As `list` shows them.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that was allowed for good.")] = False,
    project: p.OfProject = None,
    _debug: p.Debug = False,
) -> int:
    """Take back what was allowed for good.

    \b
    Examples:
      llm-do approvals revoke 2
      llm-do approvals revoke --all
    """
    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.errors import UsageError
    from llm_do.text.sanitizer import sanitize

    claim_stdout()
    root = _root(project)
    from llm_do.runtime.approval import saved_approvals

    if everything:
        saved_approvals.clear(root)
        warn("nothing is allowed for good any more")
        return 0
    stored = saved_approvals.load_saved_approvals(root).stored
    wrong = [number for number in numbers or () if not 0 < number <= len(stored)]
    if wrong or not numbers:
        said = f"there is no number {wrong[0]}" if wrong else "nothing was named to take back"
        raise UsageError(said, hint="`llm-do approvals list` shows the numbers; --all takes back everything.")
    gone = [stored[number - 1] for number in sorted(set(numbers))]
    saved_approvals.revoke(root, gone)
    for item in gone:
        warn(sanitize(f"revoked: {item.text}"))
    return 0


class _OfCall(LeanCommand):
    """A command whose words are a call's: behind the first, only long options that it has are its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        flags = {name: getattr(param, "is_flag", False) for param in self.get_params(ctx) for name in param.opts}
        own: list[str] = []
        words: list[str] = []
        left = iter(args)
        for word in left:
            if word == "--":
                words += left
            elif word.partition("=")[0] in flags and (word.startswith("--") or not words):
                value = [] if "=" in word or flags[word] else [*islice(left, 1)] or None
                if value is None:
                    return super().parse_args(ctx, args)
                own += [word, *value]
            elif word.startswith("-") and not words:
                own.append(word)
            else:
                words.append(word)
        return super().parse_args(ctx, [*own, "--", *words])


@app.command(cls=_OfCall)
def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[AGENT] TOOL [ARGS]...",
            help="The agent or its call path, the tool, and its arguments: JSON, NAME=VALUE, or the main one's text.",
            show_default=False,
            autocompletion=p.agents_here,
        ),
    ],
    project: p.OfProject = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="PATTERN", help="As if `run` was given it; repeatable.")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", metavar="PATTERN", help="As if `run` was given it; repeatable.")
    ] = None,
    form: Form = "text",
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
) -> int:
    """Say whether a call would be allowed.

    Also by which rule, and where that rule stands. Nothing is called. Behind the tool, what is none of the long options
    here belongs to the call, and so does all that follows `--`.

    \b
    Examples:
      llm-do approvals explain shell git log -3
      llm-do approvals explain main/writer write_file path=out/a.md content=text
      llm-do approvals explain send '{"to": "ann"}' --allow 'send(to=ann)'
    """
    import json

    from llm_do.cli.actions.link_report import show
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout, without_plugins
    from llm_do.errors import UsageError

    results = claim_stdout()
    without_plugins()
    try:
        path = project_at(project)
    except UsageError as error:
        if "-p" in words:
            error.hint = "Behind the tool, -p belongs to the call. Write --project, or -p in front of the tool."
        raise
    from llm_do.linker.subprocess_check import check_in_subprocess
    from llm_do.ui.reports.explanation import explanation_lines

    given = {"words": list(words), "allow": list(allow or ()), "deny": list(deny or ())}
    found = check_in_subprocess(path, "llm_do.ui.reports.explanation:explain_data", given, seconds=seconds)
    if found.data is None:
        show(found)
        return 3
    if form == "json":
        results.write(json.dumps(found.data, indent=2) + "\n")
    else:
        results.write_lines(explanation_lines(found.data))
    return 0


def _root(project: str | None):
    from llm_do.cli.arguments.target import project_at
    from llm_do.linker.sources.project_root import locate_project

    return locate_project(project_at(project)).root


def _answers(project: str | None):
    root = _root(project)
    from llm_do.runtime.approval import saved_approvals

    return saved_approvals.load_saved_approvals(root)
