"""Carrying out `llm-do run`: from options to a linked project, an input, a run, and what is printed of it."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING

from llm_do.cli.actions import failure
from llm_do.cli.arguments.target import resolve
from llm_do.cli.process.signals import Interrupts, kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Results, claim_stdout, ensure_open, warn
from llm_do.errors import LinkError, StoreError, UsageError

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import RunOptions
    from llm_do.project.project import Project
    from llm_do.runtime.record.results import RunResult

__all__ = ["check_options", "link", "prepare", "print_output", "result_line", "start", "tell_errors"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""What a model's text may not do to a terminal. Elsewhere a text is printed verbatim."""


def start(options: RunOptions) -> int:
    """Run what the options say, and print what came of it."""
    results = claim_stdout()
    interrupts = Interrupts()
    interrupts.last_words = lambda: failure.print_last_words(options.output, results)
    interrupts.install()
    try:
        check_options(options)
        return _run(options, results, interrupts)
    except KeyboardInterrupt as error:
        failure.report(error, options.output, results)
        kill_children()
        return interrupts.exit_code
    except StoreError as error:
        return failure.report(error, "text", results, debug=options.debug)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told in the form that was asked for)
        return failure.report(failure.as_llm_do_error(error), options.output, results, debug=options.debug)


def check_options(options: RunOptions) -> None:
    """Refuse options that exclude each other."""
    if options.approve_all and options.reject_all:
        raise UsageError("--approve-all and --reject-all exclude each other", hint="Keep one of them.")
    if options.no_record and options.thread is not None:
        raise UsageError("--no-record and --thread exclude each other", hint="A thread is what is recorded of it.")
    without = {
        "entry": (options.entry, "to run the project's entry"),
        "model": ("" if "" in options.models else None, "to use the project's models"),
        "thread": (options.thread, "to begin a new conversation"),
        "user": (options.user, "where it is nobody's in particular"),
    }
    for name, (value, what_for) in without.items():
        if value == "":
            raise UsageError(f"--{name} names nothing", hint=f"Leave it out {what_for}.")


def _run(options: RunOptions, results: Results, interrupts: Interrupts) -> int:
    target = resolve(options.project, options.prompt, options.named)
    prepare(options)
    project = link(target.path, options)
    from llm_do.cli.arguments.run_input import gather_input

    value = gather_input(project, options, target.prompt, _notice(options))
    if options.dry_run:
        from llm_do.cli.actions.dry_run import show

        return show(project, options, value, results)
    return _execute(project, options, value, results, interrupts)


def link(path: os.PathLike[str], options: RunOptions) -> Project:
    """Link the project; what is wrong with it is shown, and its warnings with `-v`."""
    from pathlib import Path

    from llm_do.cli.actions.link_report import show
    from llm_do.linker.linker import check_project

    try:
        report = check_project(Path(path))
    finally:
        ensure_open()
    if report.project is None:
        show(report, no_color=options.no_color)
        raise LinkError("the project does not link", report.diagnostics)
    if options.verbosity >= 1:
        show(report, no_color=options.no_color)
    if options.models and not options.dry_run:
        from llm_do.cli.arguments.named_models import named_models

        named_models(options.models, report.project)
    if options.verbosity >= 0:
        _warn_of_idle(report.project, options)
    return report.project


def _warn_of_idle(project: Project, options: RunOptions) -> None:
    """Say which of the command line's patterns can't match: a mistyped one would go unnoticed."""
    patterns = [("--allow", text) for text in options.allow] + [("--deny", text) for text in options.deny]
    if not patterns:
        return
    from llm_do.linker.checks.rule_checks import find_idle_pattern
    from llm_do.ui.reports.error_text import paragraph

    for option, text in patterns:
        found = find_idle_pattern(text, project)
        if found is not None:
            warn(paragraph(f"{option} {found}", label="warning"))


def _notice(options: RunOptions):
    def tell(text: str) -> None:
        from llm_do.text.sanitizer import sanitize

        if options.verbosity >= 0:
            warn(sanitize(text))

    return tell


def prepare(options: RunOptions) -> None:
    """Set up what holds for the process, before PydanticAI is imported."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    _import_httpx()
    if options.otel:
        from llm_do.cli.actions.telemetry import switch_on

        switch_on()


def _import_httpx() -> None:
    """Import httpx without its own command line, which brings click, rich and pygments: a fourteenth of a short run.

    It does without where they aren't installed; a module that is None counts as one that isn't.
    """
    name = "httpx._main"
    if "httpx" not in sys.modules:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]
        try:
            import httpx  # noqa: F401 # pyright: ignore[reportUnusedImport]
        except ImportError:
            return
        finally:
            del sys.modules[name]


def _execute(project: Project, options: RunOptions, value: object, results: Results, interrupts: Interrupts) -> int:
    if options.verbosity < 0 and not sys.warnoptions:
        warnings.simplefilter("ignore")
    from llm_do.cli.actions.session import Session

    session = Session(project, options, results, interrupts)
    interrupts.last_words = lambda: failure.print_last_words(options.output, results, session.heard)
    started = time.monotonic()
    result = session.run(value)
    seconds = time.monotonic() - started
    code = result.exit_code
    if result.status == "interrupted" and interrupts.signum is not None:
        kill_children()
        code = interrupts.exit_code
    tell_errors(result, debug=options.debug)
    _print(result, options, results, session)
    if options.verbosity >= 1 or (options.verbosity == 0 and session.animated):
        from llm_do.ui.live.event_lines import summary_line

        warn(summary_line(result, seconds))
    return PIPE_CLOSED if results.closed and options.output == "events" else code


def tell_errors(result: RunResult, *, debug: bool) -> None:
    """What went wrong, on stderr: what the run survived first, then what ended it."""
    from llm_do.runtime.record.results import ErrorRecord
    from llm_do.ui.reports.error_text import error_text, paragraph

    if debug and result.error is not None:
        import traceback

        warn("".join(traceback.format_exception(result.error)))
    last = ErrorRecord.of(result.error) if result.error is not None else None
    for record in result.errors:
        if last is None or (record.type, record.message) != (last.type, last.message):
            warn(paragraph(record.message, agent_path=record.agent_path, file=record.file, line=record.line))
    if result.status == "denied":
        for denial in result.denials:
            warn(paragraph(denial.reason, agent_path=denial.agent_path))
    # Who has sent a signal knows of it; of an interrupt that code has raised nobody does.
    if result.error is not None and (
        result.status != "interrupted" or isinstance(result.error.__cause__, KeyboardInterrupt)
    ):
        warn(error_text(result.error))


def _print(result: RunResult, options: RunOptions, results: Results, session: Session) -> None:
    if options.output == "json":
        results.write_last(result_line(result))
    elif options.output == "text" and result.error is None:
        print_output(result, results, session)


def print_output(result: RunResult, results: Results, session: Session) -> None:
    """Print what a run returned: drawn for a person, verbatim for a program."""
    from llm_do.runtime.record.results import output_text

    text = output_text(result.output)
    if results.is_terminal and session.animated:
        from llm_do.ui.terminal.markdown import render_markdown

        text = render_markdown(text, results.columns or 80, color=session.color) if text else ""
    elif results.is_terminal:
        text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    if text:
        results.write(text if text.endswith("\n") else text + "\n")


def result_line(result: RunResult) -> str:
    """A result as the line that `--output json` prints."""
    data = result.to_dict()
    try:
        said = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number that JSON doesn't have, somewhere in a message
        from llm_do.text.json_data import to_json_data

        said = json.dumps(to_json_data(data), ensure_ascii=False)
    return f"{said}\n"
