"""What `llm-do serve` does: it links projects and serves them on this machine until it is interrupted."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from llm_do._extras import missing_extra
from llm_do._startup.process import resume_collector
from llm_do.cli.actions.admission import admit
from llm_do.cli.actions.failure import ReportedLinkError
from llm_do.cli.actions.link_report import show
from llm_do.cli.arguments.target import project_at
from llm_do.cli.process.streams import claim_stdout, warn
from llm_do.errors import UsageError
from llm_do.linker.linker import check_project
from llm_do.linker.sources.project_root import locate_project
from llm_do.project.project import Project
from llm_do.project.store_location import with_store

__all__ = ["serve_projects"]

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]")

CLOSING = 5
"""Seconds that open connections have to end."""


def serve_projects(
    paths: Sequence[str],
    named: str | None = None,
    *,
    port: int,
    open_browser: bool,
    hosts: Sequence[str],
    trust: bool,
    store: str | None = None,
    env_file: str | None = None,
) -> int:
    """Serve projects until the process is interrupted; returns the exit code.

    Raises:
        UsageError: A package is missing, a host's name or the store is invalid, or the port is taken.
        LinkError: A project doesn't link.
    """
    _check_options(hosts, store)
    try:
        from uvicorn import Config

        from llm_do.web.access import MOST_HEADERS
        from llm_do.web.connections import ACCEPTED_AT_ONCE, BoundedConnection, PromptServer
        from llm_do.web.service import Service
    except ImportError as error:
        missing = missing_extra("service", "`llm-do serve`")
        raise UsageError(missing.message, hint=missing.hint) from error
    results = claim_stdout()
    found = [project_at(path, named) for path in paths] or [project_at(None, named)]
    for path in found:
        admit(path, trust=trust, continues=store is None, env_file=env_file)
    projects = [with_store(_linked(path, env_file), store) for path in found]
    with _listen(port) as listening:
        service = Service(projects, hosts=hosts)
        resume_collector()  # runs leave cycles, and it may serve for months
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/#key={service.key}"
        results.write(f"{address}\n")
        warn(f"serving {', '.join(each.name for each in service.projects)}; end it with Ctrl-C")
        config = Config(
            service,
            http=BoundedConnection,
            backlog=ACCEPTED_AT_ONCE,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            h11_max_incomplete_event_size=MOST_HEADERS,
            timeout_graceful_shutdown=CLOSING,
        )
        if open_browser and _has_screen():
            import webbrowser

            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            asyncio.run(PromptServer(config, service).serve(sockets=[listening]))
    return 0


def _check_options(hosts: Sequence[str], store: str | None) -> None:
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(f"--allow-host takes a host's name, not {host!r}", hint="Such as desk.example.org.")
    if store is not None and not store.strip():
        raise UsageError("--store is empty", hint="Leave it out to use the projects' stores.")


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        hint = "Choose another one with --port, or any that is free with --port 0."
        raise UsageError(f"port {port} can't be used: {error.strerror or error}", hint=hint) from error


def _linked(path: Path, env_file: str | None) -> Project:
    report = check_project(replace(locate_project(path), env_file=env_file))
    if report.project is None:
        show(report)
        raise ReportedLinkError("the project does not link", report.diagnostics)
    return report.project


def _has_screen() -> bool:
    """Whether a browser would have somewhere to appear: a person is at a terminal, and there is a display."""
    displays = [os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")]
    return os.isatty(2) and (sys.platform != "linux" or any(displays))
