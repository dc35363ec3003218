"""What `llm-do doctor` checks on this machine, this terminal and in a project, with hints on what to do."""

from __future__ import annotations

import locale
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from llm_do import __version__
from llm_do._entry_points import GROUPS, find_published
from llm_do._extras import EXTRAS, has_extra, install_command
from llm_do._startup.frozen import frozen
from llm_do.text.sanitizer import sanitize
from llm_do.ui.terminal.screen import in_ci, is_plain
from llm_do.ui.terminal.text_width import pad, text_width

__all__ = ["Check", "checkup", "checkup_lines"]

_SKEW = 5.0


@frozen
class Check:
    """One check and its outcome.

    Args:
        name: What it is.
        status: `ok`; `note` if something is missing that may not be needed; `bad` if llm-do can't work.
        found: What was found.
        hint: What to do.
    """

    name: str
    status: Literal["ok", "note", "bad"]
    found: str
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def checkup(
    root: Path | None, describe: Callable[[str], str] | None = None, env_file: str | None = None
) -> list[Check]:
    """Run every check. Nothing is changed, and no network is used but for the project's database.

    `describe` says what there is at the URL of a database. `env_file` has variables beside the project's `.env`.

    Raises:
        UsageError: `env_file` can't be read.
    """
    project = _project(root, describe, env_file) if root is not None else None
    return [
        _python(),
        *_packages(),
        *_published(),
        *_configuration(),
        *_models(root, env_file),
        _sandbox(),
        _terminal(),
        _encoding(),
        *(project if project is not None else [Check("project", "note", "none here", "llm-do init DIR")]),
    ]


def _python() -> Check:
    found = f"{platform.python_version()} ({sys.executable}), llm-do {__version__}"
    return Check("python", "ok", found)


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _packages() -> Iterator[Check]:
    for name in ("pydantic-ai-slim", "pydantic"):
        if _installed(name):
            yield Check(name, "ok", version(name))
        else:
            yield Check(name, "bad", "not installed", "Install llm-do again: `pip install .` in its checkout.")
    for extra, (package, _) in EXTRAS.items():
        if has_extra(extra):
            found = f"{package} {version(package)}" if _installed(package) else "installed"
            yield Check(f"extra {extra}", "ok", found)
        else:
            yield Check(f"extra {extra}", "note", "not installed", install_command(extra))


def _published() -> Iterator[Check]:
    """The toolsets and models of installed packages, none of which is imported."""
    from llm_do.models.providers.model_names import BUILT_IN, PROVIDERS
    from llm_do.project.tools.builtin_toolsets import BUILTINS

    own = {"toolsets": BUILTINS, "models": (*PROVIDERS, *BUILT_IN)}
    for group in GROUPS:
        found = find_published(group)
        names = [each.name for each in found]
        for each in found:
            what = f"{'toolset' if group == 'toolsets' else 'models'} {each.name}"
            text = f"{each} ({each.target})"
            if each.name in own[group]:
                yield Check(what, "note", f"{text} is never used", "llm-do itself has this name.")
            elif names.count(each.name) > 1:
                yield Check(what, "note", f"{text}, one of several", "Uninstall all but one of the packages.")
            else:
                yield Check(what, "ok", text)


def _configuration() -> Iterator[Check]:
    """The person's configuration: where it is, what it says, and what is wrong in it."""
    from llm_do.models.user_config import load_user_config
    from llm_do.ui.reports.error_text import sentence

    config = load_user_config()
    if config.file is None:
        yield Check("config", "note", "no home folder", "Set XDG_CONFIG_HOME.")
        return
    if not config.exists:
        yield Check("config", "ok", f"{config.file} (none, and none is needed)")
        return
    said = [f"model {', '.join(config.model)}"] if config.model else []
    said += [f"{name} = {', '.join(models)}" for name, models in config.aliases.items()]
    said += ["color never"] if config.color == "never" else []
    yield Check("config", "ok", f"{config.file}: {'; '.join(said) or 'says nothing'}")
    for fault in config.faults:
        hint = sentence(fault.hint, capital=True)
        yield Check("config", "bad" if fault.grave else "note", f"{config.file}:{fault.line}: {fault.message}", hint)


def _models(root: Path | None, env_file: str | None) -> Iterator[Check]:
    from llm_do.models.providers.env_files import ENV_FILE, keys_of, with_variables
    from llm_do.runtime.record.project_variables import file_variables

    environ = with_variables(os.environ, keys_of(file_variables(root, env_file)))
    own = file_variables(root)
    from llm_do.models.catalog import available_models
    from llm_do.models.providers.model_names import PROVIDERS, find_name_fault

    model = os.environ.get("LLM_DO_MODEL")
    aliases = _aliases(root)
    fault = find_name_fault(model, aliases=aliases) if model and model not in aliases else None
    if model and fault is not None:
        unless = ", unless a Python file of the project registers it" if fault.may_register else ""
        hint = f"{fault.hint[:1].upper()}{fault.hint[1:]}"
        yield Check("LLM_DO_MODEL", "note", f"{model} {fault.problem}{unless}", hint)
    else:
        yield Check("LLM_DO_MODEL", "ok" if model else "note", model or "not set")
    known = sorted({key for info in PROVIDERS.values() for key in info.keys})
    files = {key: ENV_FILE if environ.get(key) == own.get(key) else env_file for key in known}
    there = [key if os.environ.get(key) else f"{key} (in {files[key]})" for key in known if environ.get(key)]
    yield Check(
        "keys",
        "ok" if there else "note",
        f"{', '.join(there)} set" if there else "none is set",
        ""
        if there
        else "Set one, such as OPENAI_API_KEY, or write it in the project's .env; `llm-do models --all` names them.",
    )
    found = available_models(environ)
    local = next((info for info in found if info.name == "local"), None)
    if local is not None:
        yield Check(
            "local model", "ok" if local.usable else "note", local.note or "available",
            "" if local.usable else "llm-do models pull",
        )  # fmt: skip


def _aliases(root: Path | None) -> dict[str, tuple[str, ...]]:
    """The aliases of models that hold in a project's folder."""
    from llm_do.errors import UsageError
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.linker.sources.stated_settings import stated_aliases
    from llm_do.models.aliases import known_aliases

    try:
        return known_aliases(stated_aliases(locate_project(root)) if root is not None else {}, root)
    except UsageError:
        return known_aliases({})


def _sandbox() -> Check:
    from llm_do.toolsets.shell.sandbox import status as sandbox_status

    status = sandbox_status()
    fix = 'Install bubblewrap (package `bubblewrap`), or set `"sandbox": "required"`: then a person is asked.'
    return Check("sandbox", "ok" if status.active else "note", status.reason, "" if status.active else fix)


def _terminal() -> Check:
    streams = [name for number, name in enumerate(("stdin", "stdout", "stderr")) if os.isatty(number)]
    where = f"TERM={os.environ.get('TERM', '')}" + (", CI is set" if in_ci(os.environ) else "")
    if "stderr" not in streams or in_ci(os.environ):
        return Check("terminal", "note", f"plain output, no prompts ({where})", "Calls that need approval are denied.")
    if is_plain(os.environ):
        return Check("terminal", "note", f"plain lines ({where})", "Set TERM, such as TERM=xterm, for the live tree.")
    return Check("terminal", "ok", f"{', '.join(streams)} ({where})")


def _encoding() -> Check:
    name = locale.getpreferredencoding(do_setlocale=False)
    utf8 = name.lower().replace("-", "") == "utf8"
    return Check("locale", "ok" if utf8 else "note", name, "" if utf8 else "Text is UTF-8 anyway; set LANG=C.UTF-8.")


def _project(root: Path, describe: Callable[[str], str] | None, env_file: str | None) -> Iterator[Check]:
    yield Check("project", "ok", str(root))
    yield from _env_file(root)
    from llm_do.files.local_folder import FOLDER, NOT_LINKED, is_linked

    if (store := _stated_database(root)) is not None:
        yield _database(root, store, describe, env_file)
    elif is_linked(root):
        yield Check("store", "note", f"{root / FOLDER} is a link", f"Runs work but aren't recorded. {NOT_LINKED}")
        yield _clock(root)
        return
    else:
        yield from _file(root / FOLDER)
    yield from _approvals(root)
    yield from _servers(root, env_file)
    yield _clock(root)


def _file(folder: Path) -> Iterator[Check]:
    """The store in the project's own file."""
    writable = os.access(folder if folder.exists() else folder.parent, os.W_OK)
    yield Check(
        "store",
        "ok" if writable else "note",
        f"{folder}" + ("" if writable else " can't be written to"),
        "" if writable else "Runs work but aren't recorded.",
    )
    if (folder / "state.db").exists():
        yield _store(folder / "state.db")


def _approvals(root: Path) -> Iterator[Check]:
    """A person's permanent approvals, and those that came with the folder."""
    from llm_do.runtime.approval.found_approvals import FILE, load_found_approvals
    from llm_do.runtime.approval.saved_approvals import load_saved_approvals

    saved, found = load_saved_approvals(root), load_found_approvals(root)
    if saved.stored or saved.faults:
        text = f"{len(saved.stored)} permanent" + "".join(f"; {fault}" for fault in saved.faults)
        yield Check("approvals", "note" if saved.faults else "ok", text, "`llm-do approvals list` shows them.")
    if found.stored or found.faults:
        text = f"{len(found.stored)} in {FILE} aren't used" + "".join(f"; {fault}" for fault in found.faults)
        yield Check(
            "found approvals", "note", text, "If they are yours, `llm-do trust` takes them over; else delete them."
        )


def _servers(root: Path, env_file: str | None) -> Iterator[Check]:
    """The project's MCP servers, none of which is started or contacted."""
    from llm_do.errors import UsageError
    from llm_do.formats.toolset_config import McpConfig
    from llm_do.linker.checks.server_checks import find_program
    from llm_do.linker.sources.project_files import read_project
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.runtime.record.project_variables import project_variables

    try:
        manifest = read_project(locate_project(root)).manifest
    except UsageError:
        return
    variables = project_variables(root, env_file)
    for name, config in manifest.toolsets.items() if manifest is not None else ():
        if not isinstance(config, McpConfig):
            continue
        if config.command is None:
            yield Check(f"server {name}", "ok", f"{config.url} (not contacted)")
        elif found := find_program(config.command[0], config.env, root, variables):
            yield Check(f"server {name}", "ok", f"{found} (not started)")
        else:
            hint = "Install it, or write the path that leads to it; `llm-do check` says where."
            yield Check(f"server {name}", "note", f"there is no program {config.command[0]!r}", hint)


def _env_file(root: Path) -> Iterator[Check]:
    """The names of the variables in the project's `.env`, if there is one."""
    from llm_do.files.unreviewed import is_unreviewed
    from llm_do.models.providers.env_files import ENV_FILE
    from llm_do.runtime.record.project_variables import file_variables

    if not (root / ENV_FILE).exists():
        return
    if is_unreviewed(root, ENV_FILE):
        hint = f"Look at it, then `llm-do approvals accept {ENV_FILE}`, or delete it."
        yield Check(ENV_FILE, "note", "not read: a model's tool made it, and no one has agreed to it", hint)
        return
    names = sorted(file_variables(root))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    text = f"for keys and ${{NAME}}: {', '.join(names[:_NAMED])}{more}" if names else "no variables"
    yield Check(ENV_FILE, "ok", text)


_NAMED = 12
"""Variables of a file that are named."""


def _stated_database(root: Path) -> str | None:
    """The database that a project's manifest names; None if it names none."""
    from llm_do.errors import UsageError
    from llm_do.linker.sources.project_root import locate_project
    from llm_do.linker.sources.stated_settings import stated_store
    from llm_do.project.store_location import is_database

    try:
        store = stated_store(locate_project(root))
    except UsageError:
        return None
    return store if is_database(store) else None


def _database(root: Path, store: str, describe: Callable[[str], str] | None, env_file: str | None) -> Check:
    """The project's database, if one is reached there."""
    from llm_do.errors import LlmDoError
    from llm_do.project.store_location import expand
    from llm_do.runtime.record.project_variables import project_variables

    if describe is None:
        hint = "`llm-do trust` trusts it, and the database is then looked at."
        return Check("store", "note", "a database (not contacted, because the folder isn't trusted)", hint)
    try:
        return Check("store", "ok", describe(expand(store, project_variables(root, env_file))))
    except LlmDoError as error:
        return Check("store", "bad", error.message, error.hint or "")


def _store(path: Path) -> Check:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as opened:
            verdict = str(opened.execute("pragma quick_check").fetchone()[0])
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict == "ok":
        return Check("state.db", "ok", f"{path.stat().st_size:,} bytes, sound")
    return Check("state.db", "bad", verdict, f"Move {path} away; `llm-do threads export` may still read it.")


def _clock(root: Path) -> Check:
    ahead = [path.name for path in _files(root) if path.stat().st_mtime > time.time() + _SKEW]
    if ahead:
        return Check(
            "clock", "note", f"{', '.join(ahead[:3])} is from the future", "Set the clock, or touch the files."
        )
    return Check("clock", "ok", "no file of the project is from the future")


def _files(root: Path) -> Iterable[Path]:
    with suppress(OSError):
        yield from (path for path in root.iterdir() if path.suffix in (".agent", ".json", ".py") and path.is_file())


def checkup_lines(checks: Sequence[Check], columns: int | None = None) -> Iterator[str]:
    """The checks as lines."""
    widest = max(text_width(check.name) for check in checks)
    for check in checks:
        text = f"{check.status:<4}  {pad(check.name, widest)}  {sanitize(check.found)}"
        yield from [text] if columns is None else _wrap_lines(text, columns)
        if check.hint and check.status != "ok":
            yield f"{'':8}{sanitize(check.hint)}"


def _wrap_lines(text: str, columns: int) -> list[str]:
    """A check's lines. A path longer than a line isn't broken, so that it can be copied."""
    room = max(columns - 1, 30)
    return textwrap.wrap(text, room, subsequent_indent=" " * 8, break_on_hyphens=False, break_long_words=False)
