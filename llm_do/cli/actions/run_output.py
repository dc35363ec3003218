"""What `llm-do run`, `chat` and `resume` print when a run has ended: errors, questions, the output, the summary."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from llm_do.cli.actions import failure
from llm_do.cli.process.signals import Interrupts, kill_children
from llm_do.cli.process.streams import PIPE_CLOSED, Results, warn
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import shell_word

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import CommandOptions, OutputOptions
    from llm_do.runtime.record.results import RunResult

__all__ = [
    "print_end",
    "print_errors",
    "print_output",
    "print_summary",
    "result_line",
    "resume_command",
    "same_options",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""Control characters that a model's text may not send to a terminal. Elsewhere text is printed verbatim."""


def print_end(
    result: RunResult,
    options: CommandOptions,
    session: Session,
    results: Results,
    interrupts: Interrupts,
    seconds: float,
    *,
    durable: bool = False,
) -> int:
    """Print how a run ended, and return the exit code; `durable` is a run that is so without the option."""
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
    if result.status == "interrupted" and (durable or options.session.shared.get("durable")) and output.verbosity >= 0:
        resumed = resume_command(result.run_id, options)
        warn(f"run {short_run_id(result.run_id)} can be continued: {resumed}")
    if output.output == "json":
        results.write_last(result_line(result))
    elif output.output == "text" and result.error is None:
        print_output(result, results, session)
    print_summary(result, seconds, output, session)
    return PIPE_CLOSED if results.closed and output.output == "events" else code


def _print_questions(result: RunResult, options: CommandOptions) -> None:
    """Say what a run needs that waits for a person; its commands work in the folder where this one was given."""
    from llm_do.ui.reports.open_questions import suspension_lines

    for line in suspension_lines(result.questions, same_options(options)):
        warn(line)


def resume_command(run_id: str, options: CommandOptions) -> str:
    """Return the command that continues a run, in the folder where this one was given."""
    return f"llm-do resume{same_options(options)} {shell_word(short_run_id(run_id))}"


def same_options(options: CommandOptions) -> str:
    """Return the options with which another command, in the same folder, finds a run's project and store."""
    from llm_do.ui.reports.open_questions import same_project

    project = options.input.named
    if project is None and options.input.project is not None and os.path.lexists(options.input.project):
        project = options.input.project
    return same_project(project, options.session.store, options.session.shared.get("env_file"))


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
        denied = [(each.reason, each.agent_path) for each in result.denials]
        for reason, path in dict.fromkeys(denied):
            if last is None or (reason, path) != (last.message, last.agent_path):  # it is that of the last call
                warn(paragraph(reason, agent_path=path))
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
    """A result as the line that `--format json` prints: but for the output, without secrets, as the journal has it."""
    from llm_do.runtime.record.redaction import redact_data

    data = result.to_dict()
    try:
        json.dumps(data, allow_nan=False)
    except ValueError:  # a number that JSON doesn't have, somewhere in a message
        from llm_do.text.json_data import to_json_data

        data = to_json_data(data)
    clean = {**redact_data({**data, "output": None}), "output": data["output"]}
    return f"{json.dumps({name: clean[name] for name in data}, ensure_ascii=False)}\n"
