"""What `llm-do run` does: from its options to a linked project, an input and a run, whose end `run_output` prints."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do._startup.code_access import is_open
from llm_do._startup.process import hasten_imports
from llm_do.cli.actions import failure
from llm_do.cli.arguments.target import Target, resolve, say_if_bare
from llm_do.cli.process.signals import Interrupts, kill_children, received
from llm_do.cli.process.streams import Results, claim_stdout, ensure_open, warn
from llm_do.errors import InputError, StoreError, UsageError
from llm_do.text.generated_ids import new_id, short_run_id

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import CommandOptions, OutputOptions
    from llm_do.project.project import Project
    from llm_do.runtime.session.run_options import EntryOptions, RuntimeOptions

__all__ = [
    "carry_out",
    "link",
    "open_target",
    "prepare",
    "start",
]


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
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (whatever it is, it is reported in the output's format)
        if isinstance(error, KeyboardInterrupt) or received() is not None:
            if owes_result:
                failure.report(KeyboardInterrupt(), output.output, results)
                if output.output == "text":
                    failure.print_interruption(interrupts.description)
            kill_children()
            return interrupts.exit_code
        if isinstance(error, StoreError):
            return failure.report(error, "text", results, debug=output.debug)
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
    from llm_do.cli.actions.run_output import print_end, resume_command
    from llm_do.cli.actions.session import Session

    session = Session(project, options.session, options.output, results, interrupts)
    output = options.output
    call, promise = options.call, None
    if options.session.shared.get("durable"):
        run_id = call.get("run_id") or new_id()
        call: EntryOptions = {**call, "run_id": run_id}
        again = resume_command(run_id, options)
        promise = f"run {short_run_id(run_id)} is durable: after an interruption, `{again}` continues it"
    interrupts.last_words = lambda: failure.print_last_words(
        output.output, results, interrupts.description, session.events_to_close
    )
    started = time.monotonic()
    result = session.serve(lambda: session.execute(value, promise, **call))
    seconds = time.monotonic() - started
    code = print_end(result, options, session, results, interrupts, seconds)
    if options.session.record_approvals and result.status != "interrupted":
        from llm_do.cli.actions.lock.recorded_approvals import record_approvals

        record_approvals(session)
    return code


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
        fault = find_idle_pattern(text, project, broadly=option == "--deny")
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
