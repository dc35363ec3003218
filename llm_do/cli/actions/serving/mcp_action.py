"""What `llm-do mcp` does: link a project and serve it to one client until that closes stdin."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do import __version__
from llm_do._extras import has_extra, missing_extra
from llm_do._startup.process import resume_collector
from llm_do.cli.actions import failure
from llm_do.cli.actions.run_action import link, prepare
from llm_do.cli.arguments.run_options import CommandOptions
from llm_do.cli.arguments.target import project_at
from llm_do.cli.process.signals import Interrupts, guard_children, kill_children
from llm_do.cli.process.streams import ProtocolStreams, claim_stdout, warn, write_stderr
from llm_do.errors import UsageError
from llm_do.text.sanitizer import sanitize

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import InputOptions, OutputOptions, SessionOptions
    from llm_do.project.project import Project
    from llm_do.runtime.approval.broker import RunApprovalPolicy
    from llm_do.runtime.context.user_questions import AskUser
    from llm_do.runtime.session.runtime_config import RuntimeConfig

__all__ = ["start"]


def start(target: InputOptions, session: SessionOptions, output: OutputOptions, only: Sequence[str]) -> int:
    """Serve the project until the client closes stdin; what is wrong before that is reported on stderr."""
    streams = ProtocolStreams()
    interrupts = Interrupts()
    interrupts.install()
    options = CommandOptions(target, {}, session, output)
    try:
        if session.approve_all and session.reject_all:
            raise UsageError("--approve-all and --reject-all exclude each other", hint="Keep one of them.")
        if not has_extra("mcp"):
            missing = missing_extra("mcp", "`llm-do mcp`")
            raise UsageError(missing.message, hint=missing.hint)
        prepare(otel=False)
        return _serve(link(project_at(target.project, target.named), options), options, only, streams, interrupts)
    except KeyboardInterrupt:
        kill_children()
        return interrupts.exit_code
    except Exception as error:  # noqa: BLE001 (whatever it is, it is reported in a paragraph)
        return failure.report(failure.as_llm_do_error(error), "text", claim_stdout(), debug=output.debug)


def _serve(
    project: Project, options: CommandOptions, only: Sequence[str], streams: ProtocolStreams, interrupts: Interrupts
) -> int:
    from llm_do.cli.actions.session import log_to_stderr, runtime_config
    from llm_do.mcp_server.server import ProjectServer
    from llm_do.runtime.approval.broker import RunApprovalPolicy
    from llm_do.runtime.runtime import Runtime
    from llm_do.ui.live.display import Display

    output = options.output
    log_to_stderr(output)
    display = Display(write_stderr, output.verbosity)
    notices: set[str] = set()

    def notice(text: str) -> None:
        if output.verbosity >= 0 and text not in notices:
            notices.add(text)
            display.line(sanitize(" ".join(text.split())))

    def configure(asked: RunApprovalPolicy, ask_user: AskUser | None) -> RuntimeConfig:
        return runtime_config(project, options.session, asked, ask_user=ask_user, notice=notice)

    Runtime(
        project, config=configure(RunApprovalPolicy(), None)
    )  # an option with an invalid value ends the command now
    server = ProjectServer(project, configure, version=__version__, only=only, on_event=display.on_event)
    if streams.is_terminal and output.verbosity >= 0:
        warn("An MCP client starts this command and speaks to it on stdin; see docs/mcp.md. Ctrl-C ends it.")
    if project.python_files:
        guard_children()
    resume_collector()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    work = loop.create_task(server.serve(streams.stdin, streams.stdout))

    def stop() -> None:
        loop.call_soon_threadsafe(work.cancel)

    interrupts.stop = stop
    try:
        loop.run_until_complete(work)
    except asyncio.CancelledError:
        kill_children()
        return interrupts.exit_code
    return 0
