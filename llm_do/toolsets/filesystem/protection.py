"""Decide which files below a root a model may touch: some are blocked, some only a person may allow.

A path is checked under every name it has on the way: as written, after each link, and as its real path. The same rules
decide before a call and guard the file access during it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from llm_do.files.code_files import CodeFiles
from llm_do.files.glob_patterns import matches_any_path
from llm_do.files.local_folder import PRIVATE, is_private
from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.state_folder import state_folder
from llm_do.policy.secrets import secret_file
from llm_do.policy.values import Decision, Effect

__all__ = ["Protection"]

_MOST_LOOKED_AT = 5_000
_NOT_WRITTEN = (".git", ".llm-do")
_NAMES = {
    "manifest": "a project's manifest",
    "lock": "a project's lock",
    "agent": "an agent",
    "python": "a project's Python file",
    "skill": "a skill",
    "program": "a server's program",
}


@dataclass(frozen=True)
class Protection:
    """The rules for one root.

    `code` says what is code of the project that the root belongs to. `allow` has globs of paths that are not blocked;
    one without `/` matches files and folders at any depth. `reads` and `writes` are the decisions about reads and
    writes that nothing forbids.
    """

    root: Root
    code: CodeFiles | None = None
    allow: Sequence[str] = ()
    reads: Effect = "allow"
    writes: Effect = "ask"

    def reading(self, trail: tuple[str, ...]) -> None:
        """Raise `FileRefusedError` if reading a path is blocked; a guard for `Root`."""
        self._refuse(trail, writing=False)

    def writing(self, trail: tuple[str, ...]) -> None:
        """Raise `FileRefusedError` if writing a path is blocked; a guard for `Root`."""
        self._refuse(trail, writing=True)

    def may_read(self, path: str) -> bool:
        """Whether a POSIX path below the root that is known to contain no link may be read."""
        return self._blocked((path,), writing=False) is None

    def read_decision(self, path: str) -> Decision:
        """Decide about reading a path as the model wrote it; one outside the root will fail with its own reason."""
        try:
            why = self._blocked(self.root.trail(path), writing=False)
        except FileRefusedError as error:
            return Decision("allow") if self.reads == "allow" else Decision("deny", error.message)
        return Decision("deny", why) if why else Decision(self.reads, "it reads a file" if self.reads == "ask" else "")

    def write_decision(self, *paths: str, follow: bool = True) -> Decision:
        """Decide about writing paths as the model wrote them; an impossible write is denied without asking.

        `follow` says whether the target of a final link is written, or the link itself moved or deleted.
        """
        decision = Decision(self.writes, "it changes files" if self.writes == "ask" else "")
        for path in paths:
            try:
                trail = self.root.trail(path, follow=follow)
            except FileRefusedError as error:
                return Decision("deny", error.message)
            if why := self._blocked(trail, writing=True):
                return Decision("deny", why)
            if why := self._for_a_person(trail):
                decision = Decision("ask", why, person_only=True)
        return decision

    def carried_decision(self, source: str, targets: Sequence[str]) -> Decision:
        """Decide about moving, copying or removing a folder with its contents.

        `source` is the folder or a link to it; any other file is allowed here. `targets` are the paths it may get.
        """
        try:
            kind, place = self.root.stat(source, follow=False).kind, self.root.trail(source, follow=False)[-1]
        except FileRefusedError:
            return Decision("allow")
        if kind not in ("folder", "link"):
            return Decision("allow")
        if self._leads_to_code(place):
            return Decision("ask", "only a person can allow a change of a project's Python file", person_only=True)
        places = [place]
        for target in targets:
            with suppress(FileRefusedError):  # other checks report a target that is refused
                places += self.root.trail(target)
        why = self._why_for_a_person(place, places) if kind == "folder" else None
        return Decision("ask", why, person_only=True) if why else Decision("allow")

    def _why_for_a_person(self, folder: str, places: Sequence[str]) -> str | None:
        """Return why only a person may allow a change of a folder's contents, under all the paths it has or gets."""
        try:
            for number, path in enumerate(self._below(folder)):
                if number >= _MOST_LOOKED_AT:
                    return "it contains too many files to check"
                if why := self._for_a_person(tuple(f"{each}/{path}" for each in places)):
                    return why
        except FileRefusedError as error:
            return f"its contents can't be checked: {error.message}"
        return None

    def _below(self, folder: str) -> Iterator[str]:
        """Return everything in a folder and its subfolders, relative to it, without following links."""
        waiting = [""]
        while waiting:
            base = waiting.pop()
            with self.root.folder(f"{folder}/{base}" if base else folder) as (opened, _):
                entries = list(islice(opened.entries(), _MOST_LOOKED_AT + 1))
            for entry in entries:
                path = f"{base}/{entry.name}" if base else entry.name
                yield path
                if entry.kind == "folder":
                    waiting.append(path)

    def _leads_to_code(self, place: str) -> bool:
        code = self.code
        return code is not None and any(map(code.leads_to_code, self._in_project(place)))

    def _refuse(self, trail: tuple[str, ...], *, writing: bool) -> None:
        if why := self._blocked(trail, writing=writing):
            raise FileRefusedError(trail[0], why, reason="protected", hint="Continue without it; do not retry.")

    def _blocked(self, trail: tuple[str, ...], *, writing: bool) -> str | None:
        for path in trail:
            names = [fold_name(name) for name in path.split("/")]
            why = None
            if (not writing and is_private(path)) or self._is_persons_own(path):
                return PRIVATE
            if writing and (kept := next((name for name in names if name in _NOT_WRITTEN), None)):
                why = f"nothing may be written in {kept}"
            elif entry := secret_file("/".join(names)):
                why = f"it may hold secrets ({entry})"
            if why and not self._allowed(path):
                return why
        return None

    def _is_persons_own(self, path: str) -> bool:
        """Whether a path leads to what the person keeps for themselves, below a root that holds it."""
        return bool(self._own) and any(f"{at}/{path}/".startswith(self._own) for at in self.root.spellings)

    @cached_property
    def _own(self) -> str:
        """The person's state folder with a slash at its end; empty if there is none."""
        try:
            return f"{os.path.realpath(state_folder())}/"
        except OSError:
            return ""

    def _allowed(self, path: str) -> bool:
        return matches_any_path(path, self.allow)

    def _for_a_person(self, trail: tuple[str, ...]) -> str | None:
        for path in trail:
            name = fold_name(path.rpartition("/")[2])
            if name == "project.json":
                return f"only a person can allow a change of {_NAMES['manifest']}"
            if name == "llm-do.lock":
                return f"only a person can allow a change of {_NAMES['lock']}"
            if name.endswith(".agent"):
                return f"only a person can allow a change of {_NAMES['agent']}"
            code = self.code
            if code is not None and (kind := next(filter(None, map(code.kind, self._in_project(path))), None)):
                return f"only a person can allow a change of {_NAMES[kind]}"
        return None

    def _in_project(self, path: str) -> Iterator[str]:
        """Return a path below the root relative to the project's folder, under each of its spellings."""
        if self.code is not None:
            yield from filter(None, (self.code.below_root(f"{at}/{path}") for at in self.root.spellings))
