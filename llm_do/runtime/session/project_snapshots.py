"""The files of a project as a durable run began with them: kept with the run, and linked again from there.

They are what the linker read, the Python modules that it imported from the project, and the scripts of its models:
never `.env`, and nothing outside of the project's folder. What is kept is read with as much distrust as any other file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import sys
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast
from weakref import WeakKeyDictionary

from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.concurrency.temporary_folders import make_temporary_folder, remove_temporary_folder
from llm_do.errors import UsageError
from llm_do.files.code_files import KEY_FILE
from llm_do.models.providers.model_names import split_name
from llm_do.project.flow_spec import every_agent
from llm_do.project.project import Project
from llm_do.runtime.record.store.store_writes import ProjectRow
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.text.json_data import json_text

__all__ = ["Snapshot", "file_digests", "link_snapshot", "take_snapshot"]

LARGEST = 16 * 1024 * 1024
"""The most bytes that are kept of a project."""

MOST_FILES = 2000
"""The most files that are kept of a project."""

_NATIVE = (".so", ".pyd", ".dylib", ".dll")


@frozen
class Snapshot:
    """A project's files.

    Args:
        digests: The digest of each file, by its path below the project's folder.
        row: The files as the store keeps them; None if they can't be kept.
        unkept: Why they can't be kept; empty if they are.
    """

    digests: Mapping[str, str]
    row: ProjectRow | None = None
    unkept: str = ""


_taken: WeakKeyDictionary[Project, tuple[Snapshot, Mapping[str, str]]] = WeakKeyDictionary()


def take_snapshot(project: Project, secrets: Mapping[str, str]) -> Snapshot:
    """Read the files that a run of the project begins with.

    Args:
        project: The project.
        secrets: Values that aren't kept plainly, each with the name of its variable.
    """
    files: dict[str, bytes] = {}
    unkept = ""
    for path in sorted(_paths(project)):
        name = _name(project, path)
        try:
            files[name] = path.read_bytes()
        except OSError:
            continue
        if not _is_inside(name):
            unkept = unkept or f"{name} isn't below the project's folder"
        elif name.endswith(_NATIVE):
            unkept = unkept or f"{name} is a native module"
    if len(files) > MOST_FILES or sum(map(len, files.values())) > LARGEST:
        unkept = unkept or f"its files are more than {MOST_FILES} or larger than {LARGEST // 1024 // 1024} MB"
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    if unkept or not files:
        return Snapshot(digests, None, unkept or "it has no files")
    known = _taken.get(project)
    if known is not None and known[0].digests == digests and known[1] == secrets:
        return known[0]
    digest = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    text = json_text({name: _to_text(data) for name, data in files.items()})
    snapshot = Snapshot(digests, ProjectRow(digest, zlib.compress(Seal(secrets).close(text).encode(), 6)))
    _taken[project] = (snapshot, dict(secrets))
    return snapshot


def file_digests(project: Project, names: Iterable[str] = ()) -> dict[str, str]:
    """The digests of the project's files as they are now, and of those of these names."""
    found: dict[str, str] = {}
    declared = {_name(project, path): path for path in _declared(project)}
    for name, path in {**{name: project.root / name for name in names}, **declared}.items():
        try:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            continue
    return found


def link_snapshot(row: ProjectRow, digests: Mapping[str, str], project: Project, seal: Seal, run_id: str) -> Project:
    """Link the files that a run began with, for the folder of the project as it is now, whose newer deny rules hold.

    Args:
        row: The files, from the store.
        digests: The digest of each, from what the run began with.
        project: The project as it is now.
        seal: Puts secrets back.
        run_id: The run, for errors.

    Raises:
        UsageError: What the store has isn't what the run began with.
        LinkError: The files don't link, such as for lack of a library.
    """
    files = _read(row, digests, seal, run_id)
    folder = make_temporary_folder("as-begun")
    source = folder.resolve() / (project.root.name or "project")
    source.mkdir(mode=0o700)
    for name, data in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(data)
    target = source
    if project.manifest is not None and _name(project, project.manifest) in files:
        target = source / _name(project, project.manifest)
    elif project.manifest is None and len(project.files) == 1:
        target = source / _name(project, project.files[0])
    try:
        linked = Project.load(target, root=project.root, env_file=project.env_file)
    except BaseException:
        remove_temporary_folder(folder)
        raise
    linked = replace(linked, policy=linked.policy.plus(project.policy.denies))
    # Its scripts, and modules that it imports later, are read from there.
    weakref.finalize(linked, _remove, os.getpid(), folder)
    return linked


def _read(row: ProjectRow, digests: Mapping[str, str], seal: Seal, run_id: str) -> dict[str, bytes]:
    """The files of a row, if they are exactly those that the run began with."""
    try:
        unpacked = zlib.decompressobj().decompress(row.files, LARGEST * 4)
        data = cast("dict[str, Any]", json.loads(seal.open(unpacked.decode())))
        files = {name: _from_text(text) for name, text in data.items()}
    except (zlib.error, ValueError, AttributeError, binascii.Error) as error:
        raise _damaged(run_id, "can't be read") from error
    if {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} != dict(digests):
        raise _damaged(run_id, "aren't those that it began with")
    wrong = next((name for name in files if not _is_inside(name)), None)
    if wrong is not None:
        raise _damaged(run_id, f"have a path that leads elsewhere: {wrong!r}")
    return files


def _damaged(run_id: str, what: str) -> UsageError:
    return UsageError(
        f"the files that the store has of run {run_id} {what}; nothing of them was run",
        hint="Continue with the project as it is now, with "
        f"{option_name('--accept-changes', 'accept_changes=True')}, or begin a new run.",
    )


def _paths(project: Project) -> set[Path]:
    """The declared files, and what was imported from the project's folder."""
    found = set(_declared(project))
    if not project.python_files:
        return found
    root = f"{project.root}{os.sep}"
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith(root):
            path = Path(file)
            if not {"site-packages", "dist-packages"}.intersection(path.parts) and ".venv" not in path.parts:
                found.add(path)
    return found


def _declared(project: Project) -> Iterator[Path]:
    """The files that the linker read, apart from those that runs make, and the scripts that its models name."""
    made = project.generated_agents_dir
    for file in {*project.files, *project.python_files}:
        if (made is None or made not in file.parents) and file.name != KEY_FILE:
            yield file
    for name in _model_names(project):
        prefix, rest = split_name(name)
        if prefix == "script" and rest and (file := project.root / rest).is_file():
            yield file


def _model_names(project: Project) -> Iterator[str]:
    chosen: list[object] = [project.model, *project.model_aliases.values()]
    chosen += [spec.model for spec, _ in every_agent(project.registry)]
    for each in chosen:
        if isinstance(each, str):
            yield each
        elif isinstance(each, list | tuple):
            yield from (name for name in cast("list[object]", each) if isinstance(name, str))


def _name(project: Project, path: Path) -> str:
    return Path(os.path.relpath(path, project.root)).as_posix()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    parts = path.parts
    return (
        bool(parts)
        and not path.is_absolute()
        and not {"..", ".git", ".llm-do", KEY_FILE}.intersection(parts)
        and (not set(name) & {"\0", "\\"})
    )


def _to_text(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _from_text(text: str | Mapping[str, str]) -> bytes:
    return text.encode() if isinstance(text, str) else base64.b64decode(text["base64"], validate=True)


def _remove(process: int, folder: Path) -> None:
    if os.getpid() == process:  # not in one that was forked off it
        remove_temporary_folder(folder)
