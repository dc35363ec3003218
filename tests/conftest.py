"""How thorough tests are: of a property test, a few examples among the quick tests and many among the slow ones
(`-m slow`); of a table with the mark `sample`, a few rows among the quick tests and the others among the slow ones.

That the garbage collector doesn't walk what stays until the end: modules, and tests themselves.

That temporary files are in a folder of the session, and that llm-do leaves none of its own there.

That a database that is dropped open fails a test on every version of Python, not only on those that warn of it.

And that the tests find the same surroundings everywhere: a run in the background, which a shell starts with Ctrl-C
or a hangup ignored, can test both all the same, and what a CI system or a person has set (`CI`, `NO_COLOR`) changes
nothing.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import tempfile
import threading
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings

from llm_do._startup.process import pause_collector, resume_collector
from tests.support import session_folder
from tests.support.unclosed_databases import warn_of_unclosed

if TYPE_CHECKING:
    from tests.support.postgres import Server

EXAMPLES = {"quick": 8, "thorough": 300}

CHANGES_A_RUN = re.compile(
    r"CI|GITHUB_ACTIONS|NO_COLOR|FORCE_COLOR|TTY_COMPATIBLE|TTY_INTERACTIVE|CLICOLOR(_FORCE)?|COLORTERM|COLUMNS|LINES"
    r"|LANG|LANGUAGE|LC_.*|TZ|EDITOR|VISUAL|PAGER|PYTHON(PATH|WARNINGS|UTF8|IOENCODING|UNBUFFERED|DONTWRITEBYTECODE)"
    r"|LLM_DO_(?!KILLS$|CACHE$).*|OTEL_.*|.*_API_KEY|.*_BASE_URL|(?i:(https?|all|no)_proxy)"
)
"""Variables that tests run without; `LLM_DO_CACHE` is where the weights are."""


def pytest_configure(config: pytest.Config) -> None:
    """Normalize the environment, choose the number of examples, and make signals work in processes that tests start."""
    pause_collector()
    if sys.version_info < (3, 13):  # which warns of them itself
        warn_of_unclosed()
    for name in [name for name in os.environ if CHANGES_A_RUN.fullmatch(name)]:
        del os.environ[name]
    os.environ["TERM"] = "xterm"
    # Tests trust what they write; those of trust itself remove this.
    os.environ["LLM_DO_TRUST"] = "1"
    if hasattr(config, "workerinput"):
        # To free all objects of a worker one by one takes a second. What is registered later runs before this.
        atexit.register(os._exit, 0)
    else:
        session_folder.make()
    tempfile.tempdir = os.environ["TMPDIR"]
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-", dir=os.environ["TESTS_FOLDER"])
    os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Each commit is judged by the same examples every time; a seed tries others. There are no deadlines: on a busy
    # machine, the time of one example means nothing.
    examples = EXAMPLES["thorough" if config.option.markexpr == "slow" else "quick"]
    seeded = config.getoption("hypothesis_seed", None) is not None
    settings.register_profile("tests", max_examples=examples, deadline=None, derandomize=not seeded)
    settings.load_profile("tests")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what this process and the workers, which may have been killed, kept outside the folders of tests."""
    if not hasattr(config, "workerinput"):
        session_folder.remove()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Include among the slow tests the property tests, with many examples, and the rows of tables outside samples."""
    for _, table in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        rows = list(table)
        if sample := rows[0].get_closest_marker("sample"):
            count = min(sample.args[0], len(rows))
            quick = {index * len(rows) // count for index in range(count)}
            for index, row in enumerate(rows):
                if index not in quick:
                    row.add_marker(pytest.mark.slow)
    if config.option.markexpr == "slow":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if llm-do has left a temporary folder, once the workers have ended."""
    gc.collect()  # a project that was linked from such a folder removes it
    if not hasattr(session.config, "workerinput") and (left := session_folder.left_by_llm_do()):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"llm-do has left in the folder for temporary files: {', '.join(left)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the collector run from now on."""
    resume_collector()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The PostgreSQL server of this test run; tests that ask for it are marked as slow."""
    from tests.support.postgres import missing, shared_server

    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    folder, is_worker = tmp_path_factory.getbasetemp(), hasattr(request.config, "workerinput")
    return shared_server(
        (folder.parent if is_worker else folder) / "postgres", os.getppid() if is_worker else os.getpid()
    )


@pytest.fixture(params=["bubblewrap", "landlock"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Confine commands with each kind of sandbox that works on this machine."""

    from llm_do.toolsets.shell.sandbox import SandboxStatus, bubblewrap, landlock

    if not (bubblewrap.find_prefix()[0] is not None if request.param == "bubblewrap" else landlock.abi()):
        pytest.skip(f"{request.param} doesn't work on this machine")
    found = SandboxStatus(active=True, backend=request.param, reason="")
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.command_sandbox.status", lambda: found)
    return request.param
