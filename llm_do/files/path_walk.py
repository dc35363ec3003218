"""A walk below a root, name by name, that resolves links itself."""

from __future__ import annotations

import errno
from collections import deque
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.files.folders import Folder, kind_at
from llm_do.files.paths import display_path, outside_refusal, split_path
from llm_do.files.refusals import FileRefusedError

__all__ = ["Walk", "WalkEnd"]

_MAX_LINKS = 40
_RACED = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.EINVAL, errno.ENOENT}


@frozen
class WalkEnd:
    """Where a walk ended."""

    folder: Folder
    """The deepest folder that exists."""

    name: str
    """The requested name in that folder; empty for the folder itself."""

    below: tuple[str, ...]
    """The names below `name`, if it doesn't exist yet."""

    trail: tuple[str, ...]
    """Every form of the path, in POSIX form below the root: as written, after each link, and the real path last."""

    @property
    def is_root(self) -> bool:
        """Whether this is the root itself, which has no name."""
        return self.trail[-1] == "."


class Walk:
    """A walk from the root that keeps its folders open, so that `..` leads back to the folder it came from."""

    def __init__(self, root: Folder, path: str, spellings: tuple[str, ...]) -> None:
        self.path = path
        self.spellings = spellings
        self.stack = [root]
        self.names: list[str] = []
        self.links = 0

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in reversed(self.stack):
            folder.close()

    def to(self, parts: list[str], *, follow: bool, missing_ok: bool) -> WalkEnd:
        todo = deque(parts)
        trail = [self._position(todo)]
        while todo:
            name = todo.popleft()
            if name == "..":
                self._up()
                continue
            if not todo and not follow:
                return self._end(name, (), trail)
            kind = kind_at(self.stack[-1], name)
            if kind == "link":
                self._follow(name, todo)
                if (place := self._position(todo)) != trail[-1]:
                    trail.append(place)
            elif kind is None:
                # A folder that doesn't exist has no parent, so `..` after it leads nowhere either.
                if not missing_ok or ".." in todo:
                    raise FileRefusedError(display_path(self.path), "there is no such file or folder", reason="missing")
                return self._end(name, tuple(todo), trail)
            elif not todo:
                return self._end(name, (), trail)
            else:
                self._down(name, todo)
        return self._end("", (), trail)

    def _end(self, name: str, below: tuple[str, ...], trail: list[str]) -> WalkEnd:
        where = "/".join([*self.names, *([name] if name else []), *below]) or "."
        if trail[-1] != where:
            trail.append(where)
        return WalkEnd(self.stack[-1], name, below, tuple(trail))

    def _down(self, name: str, todo: deque[str]) -> None:
        try:
            self.stack.append(self.stack[-1].child(name))
        except OSError as error:
            if error.errno not in _RACED or kind_at(self.stack[-1], name) != "link":
                raise
            # It became a link after the check: check it again, and follow it like any other.
            self._count()
            todo.appendleft(name)
        else:
            self.names.append(name)

    def _up(self) -> None:
        if not self.names:
            raise outside_refusal(self.path)
        self.stack.pop().close()
        self.names.pop()

    def _follow(self, name: str, todo: deque[str]) -> None:
        self._count()
        try:
            target = self.stack[-1].readlink(name)
        except OSError as error:
            if error.errno not in _RACED:
                raise
            todo.appendleft(name)
            return
        try:
            # A relative target starts here; only an absolute one may begin with a spelling of the root.
            absolute = Path(target).is_absolute()
            parts = split_path(target if absolute else f"./{target}", self.spellings if absolute else ())
        except FileRefusedError as error:
            raise FileRefusedError(
                display_path(self.path),
                f"the link {display_path('/'.join([*self.names, name]))} leads outside the root folder",
                reason="outside",
            ) from error
        if absolute:
            while self.names:
                self._up()
        todo.extendleft(reversed(parts))

    def _count(self) -> None:
        self.links += 1
        if self.links > _MAX_LINKS:
            raise FileRefusedError(display_path(self.path), "it has too many links or a loop of them", reason="invalid")

    def _position(self, todo: deque[str]) -> str:
        """Return where the walk would end without further links; leaving the root is refused only when it happens."""
        place = list(self.names)
        for part in todo:
            if part != "..":
                place.append(part)
            elif place:
                place.pop()
        return "/".join(place) or "."
