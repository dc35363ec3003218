"""What `llm-do runs show --html` does: a recorded run as a page in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_do.cli.actions.records.stored_runs import found_run
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["check_html_options", "write_page"]

STDOUT = "-"
"""The file name that means stdout."""


def check_html_options(file: str, *, form: str, types: Sequence[str] | None, requests: str | None) -> None:
    """Check before anything is read that a page can be written.

    Raises:
        UsageError: It can't, or what else is asked for isn't shown by a page.
    """
    from llm_do.testing.reports.report_file import check_report_file

    for option, used in (("--format", form != "text"), ("--type", bool(types)), ("--requests", requests is not None)):
        if used:
            raise UsageError(f"--html doesn't go with {option}", hint="The page shows events and requests alike.")
    if file != STDOUT:
        check_report_file(Path(file), name="page", option="--html")


async def write_page(store: SqlStore, run: str | None, file: str, *, root: Path) -> Sequence[str]:
    """Write the page of a run, by default the most recent one; the lines are the page if it goes to stdout.

    `root` is the project's folder, whose name is what the page calls it.
    """
    from llm_do.testing.reports.report_file import write_report
    from llm_do.web.page_file import page_file
    from llm_do.web.run_document import stored_document

    record = await found_run(store, run)
    page = page_file(await stored_document(store, record, project=root.name, root=root))
    if file == STDOUT:
        return [page.removesuffix("\n")]
    write_report(Path(file), page, name="page", option="--html")
    warn(f"wrote {sanitize(file)}, the page of run {short_run_id(record.id)}")
    return []
