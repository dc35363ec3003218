"""`llm-do approvals`: permanent approvals, open questions of durable runs, new code, and why a call is allowed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm_do._startup.plain_commands import LeanCommand, LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import agents_here, runs_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.store_options import StoreOptions, with_store_options
from llm_do.cli.commands.approval_replay import replay

if TYPE_CHECKING:
    from llm_do.cli.actions.admission import Admission
    from llm_do.linker.subprocess_check import CheckResult

__all__ = ["app"]

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="List, revoke and explain approvals, answer the questions of durable runs, and accept new code.",
)


@app.command("list", cls=ProjectFirst)
def list_answers(
    *,
    project: p.Project = None,
    named: p.OfProject = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List permanent approvals.

    They are yours, not the project's: they are kept in `$XDG_STATE_HOME/llm-do/answers`, in a file that you may edit.
    A file that comes with the folder is listed too, but not used. The project's own rules are in its manifest;
    `llm-do graph --permissions` shows their effect.
    """
    import json

    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.text.sanitizer import sanitize

    results = claim_stdout()
    root = _root(project, named)
    from llm_do.runtime.approval.found_approvals import load_found_approvals
    from llm_do.runtime.approval.saved_approvals import load_saved_approvals

    answers, found = load_saved_approvals(root), load_found_approvals(root)
    if form == "json":
        data = [
            {"number": number, "allows": item.text, "place": item.place, "added": item.added, "entry": dict(item.entry)}
            for number, item in enumerate(answers.stored, 1)
        ]
        unused = [{"allows": item.text, "place": item.place, "added": item.added} for item in found.stored]
        faults = [*map(str, (*answers.faults, *found.faults))]
        results.write(json.dumps({"answers": data, "unused": unused, "faults": faults}, indent=2) + "\n")
    else:
        results.write_lines(
            f"{number} {sanitize(item.text)}  ({sanitize(item.place)})" for number, item in enumerate(answers.stored, 1)
        )
        if not answers.stored:
            warn("there are no permanent approvals")
        for item in found.stored:
            warn(sanitize(f"not used, since it came with the folder: {item.text}  ({item.place})"))
    for fault in (*answers.faults, *found.faults):
        warn(sanitize(f"warning: {fault}; it allows nothing"))
    return 0


@app.command(cls=ProjectFirst)
def revoke(
    *,
    project: p.Project = None,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="NUMBER", help="Numbers shown by `list`.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Revoke all of them.")] = False,
    named: p.OfProject = None,
    _debug: p.Debug = False,
) -> int:
    """Revoke a permanent approval.

    \b
    Examples:
      llm-do approvals revoke 2
      llm-do approvals revoke --all
    """
    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.errors import UsageError
    from llm_do.text.sanitizer import sanitize

    claim_stdout()
    root = _root(project, named)
    from llm_do.runtime.approval import saved_approvals

    if everything:
        saved_approvals.clear(root)
        warn("all permanent approvals revoked")
        return 0
    stored = saved_approvals.load_saved_approvals(root).stored
    wrong = [number for number in numbers or () if not 0 < number <= len(stored)]
    if wrong or not numbers:
        fault = f"there is no approval {wrong[0]}" if wrong else "no approval was named"
        raise UsageError(fault, hint="`llm-do approvals list` shows the numbers; --all revokes all.")
    gone = [stored[number - 1] for number in sorted(set(numbers))]
    saved_approvals.revoke(root, gone)
    for item in gone:
        warn(sanitize(f"revoked: {item.text}"))
    return 0


@app.command(cls=ProjectFirst)
@with_store_options
def pending(
    where: StoreOptions,
    *,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN_ID",
            help="Only this run's, by its id or a prefix of it.",
            autocompletion=runs_here,
        ),
    ] = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List the questions of durable runs that wait for an answer.

    These are calls that need approval, questions of agents, and calls that were running when their run stopped. Nothing
    needs to be running meanwhile.

    \b
    Examples:
      llm-do approvals pending
      llm-do approvals pending --run 7f3a91 --format json
    """
    from llm_do.cli.actions.durable.open_questions import list_pending

    return list_pending(where, run, form)


@app.command(cls=ProjectFirst)
@with_store_options
def show(
    where: StoreOptions,
    *,
    question: Annotated[str, typer.Argument(metavar="ID", help="The question, as `pending` shows it.")],
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Show one question in full, with what the call would change.

    \b
    Examples:
      llm-do approvals show 7f3a91.1
      llm-do approvals show 7f3a91.1 --format json
    """
    from llm_do.cli.actions.durable.open_questions import show

    return show(where, question, form)


@app.command(cls=ProjectFirst)
@with_store_options
def answer(
    where: StoreOptions,
    *,
    question: Annotated[str, typer.Argument(metavar="ID", help="The question, as `pending` shows it.")],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ANSWER",
            help="allow, session, deny or abort; for an agent's question a text or the number of a choice; for a call"
            " that was running repeat, done or fail.",
        ),
    ],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="With deny: what the model reads.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run.")] = False,
    _debug: p.Debug = False,
) -> int:
    """Answer a question of a durable run.

    The answer holds for one execution of exactly what was asked, with `session` for as long as the run lasts. The first
    answer counts; rules that deny the call meanwhile still do.

    \b
    Examples:
      llm-do approvals answer 7f3a91.1 allow --resume
      llm-do approvals answer 7f3a91.2 deny --note "use the staging server"
      llm-do approvals answer 7f3a91.3 the blue one
    """
    from llm_do.cli.actions.durable.open_questions import answer

    return answer(where, question, words, note, resume=resume)


@app.command(cls=LeanCommand)
def accept(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Files, relative to the project's folder.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Accept all of it.")] = False,
    named: p.OfProject = None,
    _debug: p.Debug = False,
) -> int:
    """Accept new code that a model wrote; without FILE, list it.

    \b
    Examples:
      llm-do approvals accept
      llm-do approvals accept tools/report.py
    """
    from llm_do.cli.process.streams import claim_stdout, warn
    from llm_do.errors import UsageError
    from llm_do.files.unreviewed import agree, unreviewed_files
    from llm_do.text.sanitizer import sanitize

    results = claim_stdout()
    root = _root(None, named)
    found = unreviewed_files(root)
    accepted = list(found) if everything else [name.removeprefix("./").rstrip("/") for name in files or ()]
    if unknown := [name for name in accepted if name not in found]:
        hint = "`llm-do approvals accept` lists what there is to accept."
        raise UsageError(f"no new code is called {unknown[0]!r}", hint=hint)
    if accepted:
        agree(root, accepted)
    for name in accepted:
        warn(sanitize(f"accepted: {name}"))
    if not files and not everything:
        results.write_lines(sanitize(f"{name}  ({maker})") for name, maker in sorted(found.items()))
    if not found:
        warn("there is no new code to accept")
    return 0


class _OfCall(ProjectFirst):
    """A command whose words are a call's: after the first, only its own long options belong to the command."""

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
    *,
    project: p.Project = None,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[AGENT] TOOL [ARGS]...",
            help="The agent or its call path, the tool, and its arguments: JSON, NAME=VALUE, or text for the main one.",
            show_default=False,
            autocompletion=agents_here,
        ),
    ],
    named: p.OfProject = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="PATTERN", help="As for `run`; repeatable.")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", metavar="PATTERN", help="As for `run`; repeatable.")
    ] = None,
    form: p.Form = "text",
    env_file: p.EnvFile = None,
    trust: p.Trust = False,
    seconds: p.ImportSeconds = p.IMPORT_SECONDS,
    _debug: p.Debug = False,
) -> int:
    """Show whether a call would be allowed, and why.

    It names the rule that decides, and where that rule is. Nothing is called. After the tool's name, anything that
    isn't a long option listed here belongs to the call, and so does everything after `--`.

    \b
    Examples:
      llm-do approvals explain shell git log -3
      llm-do approvals explain main/writer write_file path=out/a.md content=text
      llm-do approvals explain send '{"to": "ann"}' --allow 'send(to=ann)'
    """
    import json

    from llm_do._startup.process import hasten_reading
    from llm_do.cli.actions.link_report import show
    from llm_do.cli.arguments.target import project_at
    from llm_do.cli.process.streams import claim_stdout
    from llm_do.errors import UsageError

    results = claim_stdout()
    hasten_reading()
    try:
        path = project_at(project, named)
    except UsageError as error:
        if "-p" in words:
            error.hint = "After the tool, -p belongs to the call. Write --project, or -p before the tool."
        raise
    from llm_do.cli.actions.admission import admit

    admission = admit(path, trust=trust, env_file=env_file)
    from llm_do.ui.reports.explanation import explanation_lines

    call = {"words": list(words), "allow": list(allow or ()), "deny": list(deny or ())}
    found = _linked(path, call, seconds, env_file, admission)
    admission.say(found.left_out)
    if found.data is None:
        show(found)
        return 3
    if form == "json":
        results.write(json.dumps(found.data, indent=2) + "\n")
    else:
        results.write_lines(explanation_lines(found.data))
    return 0


def _linked(
    path: Path, call: dict[str, Any], seconds: float, env_file: str | None, admission: Admission
) -> CheckResult:
    """Explain a call; a tool that isn't found may be in a file that wasn't imported."""
    from llm_do.errors import UsageError
    from llm_do.linker.sources.project_files import read_project
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.linker.subprocess_check import check_in_subprocess

    try:
        task = "llm_do.ui.reports.explanation:explain_data"
        return check_in_subprocess(path, task, call, seconds=seconds, env_file=env_file)
    except UsageError as error:
        if not admission.open and read_project(locate_project(path)).python:
            error.hint = f"Its folder isn't trusted, so no Python file was imported: {admission.remedy}."
        raise


app.command("replay", cls=ProjectFirst)(replay)


def _root(project: str | None, named: str | None):
    from llm_do.cli.arguments.target import project_at
    from llm_do.linker.sources.project_root import locate_project

    return locate_project(project_at(project, named)).root
