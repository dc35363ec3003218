"""What `llm-do undo` does: from the name of a run to its files as they were before it."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.cli.actions.project_store import align_columns
from llm_do.cli.arguments.target import project_at
from llm_do.cli.process.streams import Results, claim_stdout, warn
from llm_do.errors import UsageError
from llm_do.files.changes.kept_folder import MOST_DAYS, KeptFolder
from llm_do.files.changes.undo_plan import UndoPlan, left_to_undo, plan_last, plan_undo
from llm_do.files.changes.undoing import Undone, undo
from llm_do.files.refusals import FileRefusedError
from llm_do.linker.sources.project_root import locate_project
from llm_do.text.generated_ids import WRITE_MORE, several_begin_alike, short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.undo_report import calls_lines, file_data, file_rows, plan_title, undo_diffs

__all__ = ["UndoOptions", "carry_out"]

_PAST = {"restore": "restored", "remove": "removed", "create": "created again"}


@frozen
class UndoOptions:
    """What to undo, and how.

    Args:
        run: The id of a run or an undo, or a prefix of it; None for the last run that changed files.
        globs: Which of its files; none for all.
        yes: Whether not to ask.
        dry_run: Whether to show only what would be done.
        as_json: Whether to print one JSON object.
        trust: Whether files outside of the project's folder may be restored though it isn't trusted.
        no_color: Whether to ask without colours.
    """

    run: str | None = None
    globs: Sequence[str] = ()
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    trust: bool = False
    no_color: bool = False


def carry_out(project: str | None, named: str | None, options: UndoOptions) -> int:
    """Undo what a run has changed, once a person has agreed.

    Raises:
        UsageError: There is nothing to undo, or nobody who can be asked.
    """
    root = locate_project(project_at(project, named)).root
    results = claim_stdout()
    plan = _plan(root, options)
    problems = plan.those("changed", "refused")
    if options.dry_run:
        _print_plan(root, plan, results, as_json=options.as_json)
        return 1 if problems or plan.those("unkept") else 0
    if problems:
        _say_refused(plan)
    elif not plan.those("undo"):
        _say_rest(plan)
        if not plan.those("unkept"):
            warn(sanitize(f"nothing is left to undo of run {short_run_id(plan.record.id)}"))
    elif options.yes or _is_agreed(root, plan, no_color=options.no_color):
        return _undo(root, plan, results, as_json=options.as_json)
    else:
        warn("nothing was undone")
    if options.as_json:
        results.write(_json(plan, None))
    return 0 if not problems and not plan.those("undo", "unkept") else 1


def _plan(root: Path, options: UndoOptions) -> UndoPlan:
    from llm_do.cli.actions.admission import is_trusted

    kept = KeptFolder(root)
    trusted = options.trust or is_trusted(root)
    try:
        if options.run is None:
            plan = plan_last(root, kept.records(), options.globs, trusted=trusted)
            if plan is None:
                which = " that --path matches" if options.globs else ""
                raise UsageError(
                    f"no run has changed files{which} in {root} that could be restored",
                    hint="A run with --no-record keeps nothing, and neither does a command or a program of its own.",
                )
            return plan
        if not options.run:  # every id begins with it
            raise UsageError("the run's id is empty", hint="Leave it out for the last run that changed files.")
        found = kept.find(options.run)
        if len(found) > 1:
            message = several_begin_alike("runs", options.run, [each.id for each in found])
            raise UsageError(message, hint=WRITE_MORE)
        if not found:
            hint = f"It changed no files, wasn't recorded, or ended more than {MOST_DAYS} days ago, for instance."
            raise UsageError(f"nothing is kept of a run {options.run!r}", hint=hint)
        left = left_to_undo(kept.records())
        plan = plan_undo(root, found[0], left[found[0].id], options.globs, trusted=trusted)
    except FileRefusedError as error:  # a glob that is none
        raise UsageError(f"--path: {error.message}", hint=error.hint) from error
    if options.globs and left[found[0].id] and not plan.files:
        raise UsageError(
            f"run {short_run_id(found[0].id)} changed no file that --path matches",
            hint="--dry-run without --path lists what it changed.",
        )
    return plan


def _undo(root: Path, plan: UndoPlan, results: Results, *, as_json: bool) -> int:
    done = undo(root, plan, f"undo-{uuid.uuid4().hex[:8]}")
    if as_json:
        results.write(_json(plan, done))
    else:
        restored = set(done.files)
        rows = [[_PAST[file.act], file.label] for file in plan.those("undo") if file.key in restored]
        results.write_lines(align_columns(rows))
    for key, why in done.failed.items():
        warn(sanitize(f"error: {key.label} was not undone: {why}"))
    _say_rest(plan)
    for line in calls_lines(plan.record):
        warn(sanitize(line))
    if done.files:
        warn(f"`llm-do undo {done.id}` undoes this")
    return 1 if done.failed or plan.those("unkept") else 0


def _say_refused(plan: UndoPlan) -> None:
    """Say which files can't be undone, so that nothing was."""
    for file in plan.those("changed", "refused"):
        warn(sanitize(f"error: {file.key.label}: {file.why}"))
    others = "; --path undoes others, such as --path '!{}'" if plan.those("undo") else ""
    first = plan.those("changed", "refused")[0].key.label
    warn(sanitize(f"nothing was undone{others.format(first)}"))


def _say_rest(plan: UndoPlan) -> None:
    for row in align_columns(file_rows(plan.those("left", "unkept"))):
        warn(row)


def _print_plan(root: Path, plan: UndoPlan, results: Results, *, as_json: bool) -> None:
    if as_json:
        results.write(_json(plan, None))
        return
    results.write_lines([sanitize(plan_title(plan)), *align_columns(file_rows(plan.files))])
    results.write_lines(sanitize(line) for line in calls_lines(plan.record))
    for _, text in undo_diffs(root, plan):
        if text.startswith("---"):
            results.write_lines(sanitize(text, lines=True).removesuffix("\n").split("\n"))


def _json(plan: UndoPlan, done: Undone | None) -> str:
    failed = done.failed if done is not None else None
    data = {
        "run_id": plan.record.id,
        "undo_of": plan.record.of,
        "undo_id": done.id if done is not None and done.files else None,
        "files": file_data(plan, failed, done=done is not None),
        "not_undone": list(plan.record.calls.values()),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _is_agreed(root: Path, plan: UndoPlan, *, no_color: bool) -> bool:
    from llm_do.ui.approval.frame import Frame
    from llm_do.ui.approval.undo_question import ask_undo
    from llm_do.ui.terminal.screen import draws_lines, wants_color
    from llm_do.ui.terminal.terminal import find_terminal

    terminal = find_terminal(os.environ)
    if terminal is None:
        raise UsageError(
            "a person is asked before files are restored, and there is no terminal",
            hint="--dry-run shows what would be done, --yes does it.",
        )
    color = wants_color(os.environ, no_color=no_color)
    frame = Frame(terminal.columns, color, draws_lines(os.environ))
    return asyncio.run(ask_undo(terminal, root, plan, frame))
