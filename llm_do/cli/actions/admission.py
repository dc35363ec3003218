"""Whether a command may run what a project's folder holds: asked once, before anything of it is imported or started.

The kind of the command decides what happens without an answer: one that runs a project runs it where nobody can be
asked, since running is consent; one that looks at a project reads its text only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._startup.code_access import command_access, is_open, open_folder
from llm_do._startup.frozen import frozen
from llm_do.cli.process.streams import warn
from llm_do.errors import LinkError, StoreError, UsageError
from llm_do.files.local_folder import FOLDER
from llm_do.linker.sources.project_root import ProjectLocation, locate_project
from llm_do.runtime.approval import trusted_folders
from llm_do.text.sanitizer import shell_word
from llm_do.text.words import with_count
from llm_do.ui.reports.error_text import paragraph
from llm_do.ui.terminal.screen import in_ci

if TYPE_CHECKING:
    from llm_do.linker.analysis.survey import LeftOut, Survey
    from llm_do.linker.linker import LinkReport
    from llm_do.ui.approval.trust_question import TrustAnswer
    from llm_do.ui.terminal.terminal import Terminal

__all__ = ["VARIABLE", "Admission", "admit", "is_trusted", "trusting_command"]

VARIABLE = "LLM_DO_TRUST"
"""The environment variable that trusts every folder a command names."""

_LISTED = "`llm-do approvals list` shows what there is"

_MOST = 4
"""Names that a notice lists; of more, one fewer and a count."""


@frozen
class Admission:
    """What a command may do in a project's folder.

    Args:
        path: The project as the command named it.
        open: Whether what is in the folder may run.
        text_only: Whether `--text-only` closed it.
        servers: The servers that the command would have started.
        report: The project, if it was linked on the way and linking it again would find the same.
    """

    path: Path
    open: bool
    text_only: bool = False
    servers: Sequence[str] = ()
    report: LinkReport | None = None

    def notice(self, left_out: LeftOut | None) -> str | None:
        """Say what a command left out of a folder that isn't trusted, and how to include it."""
        if self.open:
            return None
        parts: list[str] = []
        if left_out is not None:
            imports = [*left_out.python, *left_out.packages]
            parts.append(f"{_listed(imports)} {_was(imports)} not imported")
            names = list(dict.fromkeys(name for found in left_out.names.values() for name in found))
            if names:
                parts.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} unknown")
            if left_out.policy:
                parts.append(f"the policy function {left_out.policy} was not asked")
            if left_out.assertions:
                parts.append("assertions were not proved")
        if self.servers:
            parts.append(f"{_listed(self.servers)} {_was(self.servers)} not started")
        if not parts:
            return None
        if self.text_only:
            return f"{_listed(parts)} (--text-only)"
        return f"this folder isn't trusted, so {_listed(parts)}: {self.remedy}"

    @property
    def remedy(self) -> str:
        """How to include what was left out."""
        return f"--trust includes it once, {trusting_command(self.path)} always"

    def as_data(self, left_out: LeftOut | None) -> dict[str, str]:
        """What a program reads of the notice: `left_out`, if anything was."""
        text = self.notice(left_out)
        return {} if text is None else {"left_out": text}

    def say(self, left_out: LeftOut | None) -> None:
        """Print the notice on stderr, if there is one."""
        text = self.notice(left_out)
        if text is not None:
            from llm_do.text.sanitizer import sanitize

            warn(sanitize(f"note: {text}"))


def admit(
    path: Path,
    *,
    trust: bool,
    looks: bool = False,
    text_only: bool = False,
    connects: bool = False,
    continues: bool = False,
    env_file: str | None = None,
    no_color: bool = False,
) -> Admission:
    """Find out whether a command may run what is in a project's folder, and open the folder if so.

    Args:
        path: The project.
        trust: Whether `--trust` was given.
        looks: Whether this command only looks, although its kind is to run.
        text_only: Whether `--text-only` was given: nothing is opened, and nothing asked.
        connects: Whether a command that looks would start servers too.
        continues: Whether the command continues what is recorded in the folder: answers to questions, and the files
            that a run began with, which may have come with the folder as its code may.
        env_file: A file with variables, read in addition to the project's `.env`.
        no_color: Whether to ask without colours.

    Raises:
        LinkError: A person doesn't trust the folder, and so it can't be run.
        StoreError: The file of trusted folders is damaged.
        UsageError: There is no project, or the environment variable has an unknown value.
    """
    if trust and text_only:
        raise UsageError("--trust and --text-only exclude each other", hint="Keep one of them.")
    looks = looks or command_access() == "looks"
    root = locate_project(path).root
    if text_only:
        return Admission(path, open=False, text_only=True)
    if trust or _is_set() or is_own_example(root):
        return _opened(path, root)
    fault: StoreError | None = None
    try:
        if trusted_folders.find(root) is not None:
            if not looks:
                take_over_approvals(root)
            return _opened(path, root)
    except StoreError as error:
        fault = error
    asks = os.isatty(2) and not in_ci(os.environ)
    if not asks and not looks:
        return _opened(path, root)
    if not asks and not connects and fault is None:
        return Admission(path, open=False)
    records = f"{FOLDER}/state.db" if continues and (root / FOLDER / "state.db").exists() else None
    located = replace(locate_project(path), env_file=env_file)
    return _surveyed(path, located, fault, looks=looks, connects=connects, records=records, no_color=no_color)


def _surveyed(
    path: Path,
    located: ProjectLocation,
    fault: StoreError | None,
    *,
    looks: bool,
    connects: bool,
    records: str | None,
    no_color: bool,
) -> Admission:
    """Link the folder as text to see whether there is anything to ask about, and ask.

    `fault` is why it isn't known whether the folder is trusted already.
    """
    report = _survey(located, records)
    seen = report.survey
    servers = [item.text.partition(":")[0] for item in seen.servers] if seen is not None and connects else []
    needed = seen is not None and bool((seen.python or servers) if looks else seen.runs_something)
    if looks and not needed and seen is not None and seen.packages:
        return Admission(path, open=False, servers=servers)  # nothing of the folder runs, so there is nothing to ask
    agreed: LinkReport | None = report
    if seen is not None and needed:
        agreed = _agreed(path, report, seen, fault, lambda: _survey(located, records), looks=looks, no_color=no_color)
    if agreed is not None:
        return _opened(path, agreed.root, agreed if agreed.left_out is None else None)
    return Admission(path, open=False, servers=servers)


def _survey(located: ProjectLocation, records: str | None) -> LinkReport:
    """Link a closed folder, with what it would run, the records that are continued and the approvals in it included."""
    from llm_do.linker.analysis.survey import Surveyed
    from llm_do.linker.linker import check_project
    from llm_do.runtime.approval.found_approvals import load_found_approvals

    report = check_project(located)
    if report.survey is None:
        return report
    found = tuple(Surveyed(item.text, item.place) for item in load_found_approvals(report.root).stored)
    continued = (Surveyed(records),) if records is not None else ()
    return replace(report, survey=replace(report.survey, records=continued, found=found))


def is_trusted(root: Path) -> bool:
    """Whether a person trusts a project's folder, for what a command that runs nothing may still reach through it.

    Raises:
        StoreError: The file of trusted folders is damaged.
        UsageError: The environment variable has an unknown value.
    """
    return is_open(root) or _is_set() or is_own_example(root) or trusted_folders.find(root) is not None


def trusting_command(path: Path) -> str:
    """The command that trusts a project's folder."""
    folder = path if path.is_dir() else path.parent
    return f"`llm-do trust {shell_word(os.path.relpath(folder))}`"


def take_over_approvals(root: Path) -> None:
    """Move the approvals in a trusted folder to the person's own, the first time that it is used."""
    # Here and below, imported where it is needed: it reads rules, which a command that only lists records doesn't.
    from llm_do.runtime.approval.found_approvals import FILE, move_found_approvals

    try:
        count = move_found_approvals(root)
    except StoreError as error:
        warn(paragraph(error.message, hint=error.hint, label="warning"))
        return
    if count:
        warn(f"note: {_approvals(count)} moved from {FILE} to your own; {_LISTED}")


def is_own_example(root: Path) -> bool:
    """Whether a project is an example of the checkout that this llm-do itself runs from, whose code runs anyway."""
    checkout = Path(os.path.realpath(__file__)).parents[3]
    return os.path.isfile(checkout / "pyproject.toml") and root.is_relative_to(checkout / "examples")


def _opened(path: Path, root: Path, report: LinkReport | None = None) -> Admission:
    open_folder(root)
    if command_access() == "runs":
        from llm_do.runtime.approval.found_approvals import FILE, load_found_approvals

        if count := len(load_found_approvals(root).stored):
            warn(f"note: {_approvals(count)} in {FILE} came with the folder and count for nothing; {_LISTED}")
    return Admission(path, open=True, report=report)


def _is_set() -> bool:
    """Whether the environment trusts every folder; a project's own files never reach it."""
    value = os.environ.get(VARIABLE, "").strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("", "0", "false", "no", "off"):
        return False
    raise UsageError(f"{VARIABLE} is {os.environ[VARIABLE]!r}", hint=f"Set {VARIABLE}=1, or unset it.")


def _agreed(
    path: Path,
    report: LinkReport,
    seen: Survey,
    fault: StoreError | None,
    survey: Callable[[], LinkReport],
    *,
    looks: bool,
    no_color: bool,
) -> LinkReport | None:
    """Return the project of which a person, or where none is there the kind of the command, lets code run.

    What is in the folder may change while the question is read; what would run then is asked about again.
    """
    from llm_do.linker.analysis.survey import file_digests
    from llm_do.ui.terminal.terminal import find_terminal

    terminal = find_terminal(os.environ)
    if terminal is None and not looks:
        return report
    if fault is not None:
        raise fault
    while terminal is not None:
        digests = file_digests(seen)
        answer = _ask(terminal, seen, looks=looks, no_color=no_color)
        if answer == "no":
            break
        report = survey()
        if report.survey == seen and file_digests(seen) == digests:
            if answer == "trust":
                trusted_folders.add(seen.root)
                take_over_approvals(seen.root)
            return report
        if report.survey is None:
            return None  # its manifest can't be read any longer, which linking it as text reports
        seen = report.survey
        warn("the folder has changed since it was asked about; this is how it is now")
    if not looks:
        hint = f"--trust runs it once; {trusting_command(path)} trusts it."
        raise LinkError(f"{seen.root} isn't trusted, and nothing of it has run", hint=hint)
    return None


def _ask(terminal: Terminal, seen: Survey, *, looks: bool, no_color: bool) -> TrustAnswer:
    from llm_do.ui.approval.frame import Frame
    from llm_do.ui.approval.trust_question import ask_trust
    from llm_do.ui.terminal.screen import draws_lines, wants_color

    color = wants_color(os.environ, no_color=no_color)
    frame = Frame(terminal.columns, color, draws_lines(os.environ))
    return ask_trust(terminal, seen, frame, looks=looks, lasting=trusted_folders.refusal(seen.root) is None)


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence; of many, the first ones and a count.

    Example:
        >>> _listed(["a"]), _listed(["a", "b", "c"]), _listed(["a", "b", "c", "d", "e"])
        ('a', 'a, b and c', 'a, b, c and 2 more')
    """
    *first, last = names if len(names) <= _MOST else [*names[: _MOST - 1], f"{len(names) - _MOST + 1} more"]
    return f"{', '.join(first)} and {last}" if first else last


def _approvals(count: int) -> str:
    return with_count(count, "permanent approval")


def _was(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"
