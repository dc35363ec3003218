"""Which project a command line names, and whether its first argument is a project at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.cli.arguments.mistaken_path import mistaken_path
from llm_do.cli.arguments.usage_hints import hint_for_words
from llm_do.cli.process.streams import warn, write_stderr
from llm_do.errors import UsageError
from llm_do.linker.sources.project_root import MANIFEST, ProjectLocation, find_project, locate_project, way_to_project
from llm_do.text.sanitizer import sanitize, shell_word
from llm_do.ui.reports.error_text import sentence

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import OutputOptions, SessionOptions

__all__ = ["Target", "project_at", "resolve", "say_if_bare", "user_path"]

_SUFFIXES = (".agent", ".json")


@frozen
class Target:
    """The project, and the prompt among the arguments.

    Args:
        path: The project, as the linker takes it.
        prompt: The prompt, if there is one.
        missing: Why there is no project, where none was named and the current folder has none.
    """

    path: Path
    prompt: str | None = None
    missing: UsageError | None = None


def project_at(project: str | None, option: str | None = None, *, quiet: bool = False) -> Path:
    """The project that a command names, by default that of the current folder; one above it is named on stderr."""
    if project is not None and option is not None:
        raise _twice()
    project = option if option is not None else project
    return _path_of(locate_project(user_path(project)) if project is not None else _current(quiet=quiet))


def resolve(
    project: str | None,
    prompt: str | None,
    option: str | None = None,
    *,
    quiet: bool = False,
    models: Sequence[str] = (),
) -> Target:
    """Tell a project from a prompt.

    In a project's folder a first argument that names no file or folder is the prompt, unless it looks like a path: a
    mistyped path must not become a prompt that costs money. Where there is no project at all, a single word isn't a
    prompt either unless the command line names one of its `models`.
    """
    if option is not None:
        if prompt is not None or (project is not None and os.path.lexists(project)):
            raise _twice()
        project, prompt = option, project
        if prompt is None or prompt.strip():
            return Target(project_at(project), prompt)
    if prompt is not None and not prompt.strip():
        raise UsageError("the prompt is empty", hint="Leave it out to run with the default input.")
    if project is None:
        return _here(prompt, quiet=quiet)
    if not project.strip():
        raise UsageError("the first argument is empty", hint="Give a project, a prompt, or nothing.")
    if _is_path(project):
        return Target(_named(project, prompt), prompt)
    if prompt is not None:
        raise UsageError(
            f"no project at {project!r}: there is no such file or folder",
            hint=sentence(hint_for_words("llm-do run", [project, prompt]), capital=True)
            + " With two arguments, the first is the project.",
        )
    target = _here(project, quiet=quiet)
    mistake = mistaken_path(project, named=bool(models)) if target.missing is not None else None
    if mistake is not None:
        raise mistake from target.missing
    return target


def _here(prompt: str | None, *, quiet: bool) -> Target:
    """The project of the current folder; its absence is left to whoever runs the prompt."""
    try:
        return Target(_path_of(_current(quiet=quiet)), prompt)
    except UsageError as error:
        if isinstance(error.__cause__, OSError) or os.path.lexists(MANIFEST) or not os.access(".", os.R_OK):
            raise
        return Target(Path.cwd(), prompt, error)


def _twice() -> UsageError:
    return UsageError("the project is named twice, with --project and as an argument", hint="Keep one of them.")


def _named(project: str, prompt: str | None) -> Path:
    try:
        return project_at(project)
    except UsageError as error:
        hint = error.hint or ""
        if prompt is None:
            hint += f" If it is a prompt, write: llm-do run . {shell_word(project)}"
        elif os.path.isdir(user_path(project)):
            hint += " To ask a model without a project, leave the folder out."
        raise UsageError(error.message, hint=hint) from error


def _is_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.endswith(_SUFFIXES) or os.path.lexists(text)


def user_path(text: str) -> Path:
    """A path as a person writes it: `~NAME` is a home folder, if there is such a user.

    Example:
        >>> user_path("~no-such-user/notes").as_posix()
        '~no-such-user/notes'
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 (pathlib's takes `./~` for `~`, and raises)


def _current(*, quiet: bool) -> ProjectLocation:
    try:
        here = Path.cwd().resolve()
        found = find_project(here)
        if found.root != here and not quiet:
            write_stderr(f"project: {sanitize(os.path.relpath(found.manifest or found.root, here))}\n")
        return found
    except OSError as error:
        raise UsageError(
            f"the current folder can't be read: {error.strerror or error}",
            hint="Change to a folder that exists, or name the project with --project.",
        ) from error


def _path_of(found: ProjectLocation) -> Path:
    return found.manifest or found.agent_file or found.root


def say_if_bare(target: Target, output: OutputOptions, session: SessionOptions) -> None:
    """Say that there is no project, if there is none, and that a file with keys here isn't read then.

    Standing in a folder is no consent: its keys may be anyone's, and prompts would go to their account.
    """
    if target.missing is None or output.verbosity < 0:
        return
    from llm_do.files.code_files import KEY_FILE

    way = way_to_project(target.path)
    warn(f"note: no project here, so a model is asked directly, without tools ({way})")
    if session.shared.get("env_file") is None and os.path.isfile(KEY_FILE):
        warn(f"note: {KEY_FILE} is read in a project's folder only; --env-file {KEY_FILE} reads the keys in it")
