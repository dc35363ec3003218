"""What `llm-do run` does: from its options to a linked project, an input, a run and its printed result."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do._startup.code_access import is_open
from llm_do._startup.process import hasten_imports
from llm_do.cli.actions import failure
from llm_do.cli.arguments.target import Target, resolve, say_if_bare
from llm_do.cli.process.signals import Interrupts, kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Results, claim_stdout, ensure_open, warn
from llm_do.errors import InputError, StoreError, UsageError
from llm_do.text.run_ids import short_run_id

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import CommandOptions, OutputOptions
    from llm_do.project.project import Project
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.session.run_options import EntryOptions, RuntimeOptions

__all__ = [
    "carry_out",
    "link",
    "open_target",
    "prepare",
    "print_end",
    "print_errors",
    "print_output",
    "print_summary",
    "result_line",
    "start",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""Control characters that a model's text may not send to a terminal. Elsewhere text is printed verbatim."""


def start(options: CommandOptions) -> int:
    """Run a project and print the result."""
    return carry_out(options, _run, owes_result=True)


def carry_out(
    options: CommandOptions, work: Callable[[CommandOptions, Results, Interrupts], int], *, owes_result: bool
) -> int:
    """Do the work of `run` or `chat`; errors are reported in the output's format. Returns the exit code.

    With `owes_result`, stdout gets a result however the work ends, also when the process is interrupted.
    """
    output = options.output
    results = claim_stdout()
    interrupts = Interrupts()
    if owes_result:
        interrupts.last_words = lambda: failure.print_last_words(output.output, results, interrupts.description)
    interrupts.install()
    try:
        _check(options)
        return work(options, results, interrupts)
    except KeyboardInterrupt as error:
        if owes_result:
            failure.report(error, output.output, results)
            if output.output == "text":
                failure.print_interruption(interrupts.description)
        kill_children()
        return interrupts.exit_code
    except StoreError as error:
        return failure.report(error, "text", results, debug=output.debug)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is reported in the output's format)
        return failure.report(failure.as_llm_do_error(error), output.output, results, debug=output.debug)


def _check(options: CommandOptions) -> None:
    """Refuse options that exclude each other, and empty names."""
    session, call = options.session, options.call
    if session.approve_all and session.reject_all:
        raise UsageError("--approve-all and --reject-all exclude each other", hint="Keep one of them.")
    if session.shared.get("frozen"):
        others = {"--approve-all": session.approve_all, "--reject-all": session.reject_all}
        others |= {"--allow": bool(session.shared.get("allow")), "--record-approvals": session.record_approvals}
        if given := next((option for option, used in others.items() if used), None):
            raise UsageError(f"{given} and --frozen exclude each other", hint="With --frozen, the lock alone answers.")
    if session.no_record and session.shared.get("durable"):
        raise UsageError("--no-record and --durable exclude each other", hint="A durable run lives in its record.")
    if call.get("run_id") is not None and not session.shared.get("durable"):
        raise UsageError("--run-id is for durable runs", hint="Add --durable.")
    if session.no_record and session.store is not None:
        raise UsageError("--no-record and --store exclude each other", hint="Keep one of them.")
    if session.no_record and call.get("thread_id") is not None:
        raise UsageError("--no-record and --thread exclude each other", hint="A thread is a record of its runs.")
    empty = {
        "entry": (options.entry == "", "to run the project's entry"),
        "model": ("" in session.models, "to use the project's models"),
        "thread": (call.get("thread_id") == "", "to start a new conversation"),
        "user": (call.get("user_id") == "", "for a run without a user"),
        "store": (session.store == "", "to use the project's store"),
        "run-id": (call.get("run_id") == "", "for a new id"),
    }
    for name, (is_empty, otherwise) in empty.items():
        if is_empty:
            raise UsageError(f"--{name} is empty", hint=f"Leave it out {otherwise}.")


def _run(options: CommandOptions, results: Results, interrupts: Interrupts) -> int:
    target = resolve(
        options.input.project,
        options.input.prompt,
        options.input.named,
        quiet=options.output.quiet,
        models=options.session.models,
    )
    prepare(otel=options.otel)
    project = open_target(target, options)
    from llm_do.cli.arguments.run_input import gather_input

    notice = _notice(options.output)
    known = is_open(project.root) or not project.python_files
    try:
        value = gather_input(project, options.input, target.prompt, options.entry, notice)
    except InputError:
        if known:  # else the input's model may be in a file that wasn't imported
            raise
        value = None
    if target.missing is not None and value is None:
        raise target.missing
    say_if_bare(target, options.output, options.session)
    if options.dry_run:
        from llm_do.cli.actions.dry_run import show

        return show(project, options, value, results, needed=known)
    if options.output.verbosity < 0 and not sys.warnoptions:
        warnings.simplefilter("ignore")
    from llm_do.cli.actions.session import Session

    session = Session(project, options.session, options.output, results, interrupts)
    output = options.output
    call = options.call
    if options.session.shared.get("durable"):
        run_id = call.get("run_id") or uuid.uuid4().hex
        call: EntryOptions = {**call, "run_id": run_id}
        if output.verbosity >= 0:
            shown = short_run_id(run_id)
            where = " with the same --store" if options.session.store is not None else ""
            warn(f"run {shown} is durable: after an interruption, `llm-do resume {shown}`{where} continues it")
    interrupts.last_words = lambda: failure.print_last_words(
        output.output, results, interrupts.description, session.events_to_close
    )
    started = time.monotonic()
    result = session.serve(lambda: session.execute(value, **call))
    seconds = time.monotonic() - started
    code = print_end(result, options, session, results, interrupts, seconds)
    if options.session.record_approvals and result.status != "interrupted":
        from llm_do.cli.actions.lock.recorded_approvals import record_approvals

        record_approvals(session)
    return code


def print_end(
    result: RunResult,
    options: CommandOptions,
    session: Session,
    results: Results,
    interrupts: Interrupts,
    seconds: float,
) -> int:
    """Print how a run ended, and return the exit code."""
    output = options.output
    code = result.exit_code
    if result.status == "interrupted" and interrupts.signum is not None:
        kill_children()
        code = interrupts.exit_code
        if output.output == "text":
            failure.print_interruption(interrupts.description)
    print_errors(result, debug=output.debug)
    if result.status == "suspended":
        _print_questions(result, options)
    if result.status == "denied" and output.output == "text" and output.verbosity >= 0:
        from llm_do.cli.actions.lock.needed_approvals import print_needed

        print_needed([dict(denial.needed) for denial in result.denials if denial.needed is not None])
    _say_how_to_continue(result, options)
    if output.output == "json":
        results.write_last(result_line(result))
    elif output.output == "text" and result.error is None:
        print_output(result, results, session)
    print_summary(result, seconds, output, session)
    return PIPE_CLOSED if results.closed and output.output == "events" else code


def _print_questions(result: RunResult, options: CommandOptions) -> None:
    """Say what a run needs that waits for a person; its commands work in the folder where this one was given."""
    from llm_do.ui.reports.open_questions import suspension_lines

    project = options.input.named
    if project is None and options.input.project is not None and os.path.lexists(options.input.project):
        project = options.input.project
    for line in suspension_lines(result.questions, project, options.session.store):
        warn(line)


def _say_how_to_continue(result: RunResult, options: CommandOptions) -> None:
    """Say what continues a durable run that has stopped, unless its error does."""
    durable = options.session.shared.get("durable")
    if durable and result.status == "interrupted" and options.output.verbosity >= 0:
        warn(f"run {short_run_id(result.run_id)} can be continued: llm-do resume {short_run_id(result.run_id)}")


def open_target(target: Target, options: CommandOptions, *, last: bool = False) -> Project:
    """Link the project that a command line names, or make one of a bare agent where there is none."""
    if target.missing is None:
        return link(target.path, options)
    from llm_do.cli.arguments.bare_agent import bare_project

    project = bare_project(target.missing, options, last=last)
    if options.session.models:
        from llm_do.cli.arguments.named_models import named_models

        named_models(options.session.models, project)
    return project


def link(path: os.PathLike[str], options: CommandOptions, *, continues: bool = False) -> Project:
    """Link the project and show its errors, with `-v` its warnings too.

    `continues` says that runs are continued which are recorded in the project's folder.
    """
    from dataclasses import replace
    from pathlib import Path

    from llm_do.cli.actions.admission import admit
    from llm_do.cli.actions.link_report import show
    from llm_do.linker.linker import check_project
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.project.store_location import with_store

    no_color = options.output.no_color
    continues = continues and options.session.store is None
    env_file = options.session.shared.get("env_file")
    admission = admit(
        Path(path),
        trust=options.input.trust,
        looks=options.dry_run,
        continues=continues,
        env_file=env_file,
        no_color=no_color,
    )
    try:
        report = admission.report or check_project(replace(locate_project(Path(path)), env_file=env_file))
    finally:
        ensure_open()
    output, session = options.output, options.session
    if report.project is None or output.verbosity >= 1:
        show(report, no_color=no_color)
    admission.say(report.left_out)
    if report.project is None:
        raise failure.ReportedLinkError("the project does not link", report.diagnostics)
    if session.models:
        from llm_do.cli.arguments.named_models import check_agents, named_models
        from llm_do.models.providers.model_names import parse_override

        if options.dry_run:  # which shows what is wrong with a model, agent by agent
            check_agents(parse_override(session.models), report.project)
        else:
            named_models(session.models, report.project)
    if output.verbosity >= 0 and report.left_out is None:
        _warn_of_idle_patterns(report.project, session.shared)
    return with_store(report.project, session.store)


def _warn_of_idle_patterns(project: Project, options: RuntimeOptions) -> None:
    """Warn of patterns that can't match any call: a typo would go unnoticed."""
    patterns = [("--allow", text) for text in options.get("allow") or ()]
    patterns += [("--deny", text) for text in options.get("deny") or ()]
    if not patterns:
        return
    from llm_do.linker.checks.rule_checks import find_idle_pattern
    from llm_do.ui.reports.error_text import paragraph

    for option, text in patterns:
        fault = find_idle_pattern(text, project)
        if fault is not None:
            warn(paragraph(f"{option} {fault}", label="warning"))


def _notice(output: OutputOptions) -> Callable[[str], None]:
    def notice(text: str) -> None:
        from llm_do.text.sanitizer import sanitize

        if output.verbosity >= 0:
            warn(sanitize(text))

    return notice


def prepare(*, otel: bool) -> None:
    """Set up what holds for the process, before PydanticAI is imported."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    hasten_imports()
    if otel:
        from llm_do.cli.actions.telemetry import switch_on

        switch_on()


def print_errors(result: RunResult, *, debug: bool) -> None:
    """Print a run's errors on stderr: those that it survived first, then the one that ended it."""
    from llm_do.runtime.record.results import ErrorRecord
    from llm_do.ui.reports.error_text import block_lines, error_text, paragraph

    last = ErrorRecord.of(result.error) if result.error is not None else None
    printed: set[str] = set()
    for record in result.errors:
        if last is not None and (record.type, record.message) == (last.type, last.message):
            continue
        text = paragraph(
            record.message, agent_path=record.agent_path, file=record.file, line=record.line, hint=record.hint
        )
        text = "\n".join([text, *block_lines(record.block)])
        if text not in printed:
            printed.add(text)
            _print_traceback(record.exception, debug=debug)
            warn(text)
    _print_traceback(result.error, debug=debug)
    if result.status == "denied":
        for denial in result.denials:
            warn(paragraph(denial.reason, agent_path=denial.agent_path))
    # Whoever sent a signal knows about it; an interrupt that code raised comes as a surprise.
    if result.error is not None and (
        result.status not in ("interrupted", "suspended") or isinstance(result.error.__cause__, KeyboardInterrupt)
    ):
        warn(error_text(result.error))


def _print_traceback(error: BaseException | None, *, debug: bool) -> None:
    if debug and error is not None:
        import traceback

        warn("".join(traceback.format_exception(error)))


def print_summary(result: RunResult, seconds: float, output: OutputOptions, session: Session) -> None:
    """Print what each agent did, and the summary line: on a terminal, the latter also with `-v`."""
    if output.verbosity >= 1 or (output.verbosity == 0 and session.animated):
        from llm_do.ui.live.event_lines import summary_line

        for line in session.display.agent_lines():
            warn(line)
        warn(summary_line(result, seconds))


def print_output(result: RunResult, results: Results, session: Session) -> None:
    """Print a run's output: on a terminal, with a model's Markdown drawn and data indented."""
    from llm_do.text.output_text import output_text

    text = output_text(result.output)
    if results.is_terminal and session.animated and session.wrote(text):
        from llm_do.ui.terminal.markdown import render_markdown

        text = render_markdown(text, results.columns or 80, color=session.color) if text else ""
    elif results.is_terminal:
        if not isinstance(result.output, str) and len(text) >= (results.columns or 80):
            text = _indented(text)
        text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    if text:
        results.write(text if text.endswith("\n") else text + "\n")


def _indented(text: str) -> str:
    """JSON on several lines; other text, such as that of a class of the project, as it is."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(data, ensure_ascii=False, indent=2) if isinstance(data, dict | list) else text


def result_line(result: RunResult) -> str:
    """A result as the line that `--format json` prints."""
    data = result.to_dict()
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number that JSON doesn't have, somewhere in a message
        from llm_do.text.json_data import to_json_data

        text = json.dumps(to_json_data(data), ensure_ascii=False)
    return f"{text}\n"
