"""One walk below a root, from name to name, that follows links itself; `llm_do.files.root` starts them."""

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
    """Where a walk ended.

    Args:
        folder: The deepest folder that exists.
        name: The name in it that was asked for, empty for the folder itself.
        below: Names below that one, when it doesn't exist yet.
        trail: Every path the walk stood for, in POSIX form below the root: as written first, then what each
            link on the way made of it, where it really is last.
    """

    folder: Folder
    name: str
    below: tuple[str, ...]
    trail: tuple[str, ...]

    @property
    def is_root(self) -> bool:
        """Whether it is the root itself, which has no name."""
        return self.trail[-1] == "."


class Walk:
    """One walk from the root: the folders passed are held open until its end, so `..` goes back where it came from."""

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
                return self._spot(name, (), trail)
            kind = kind_at(self.stack[-1], name)
            if kind == "link":
                self._follow(name, todo)
                if (place := self._position(todo)) != trail[-1]:
                    trail.append(place)
            elif kind is None:
                # Nothing is above a folder that doesn't exist, so `..` after it leads nowhere either.
                if not missing_ok or ".." in todo:
                    raise FileRefusedError(display_path(self.path), "there is no such file or folder", reason="missing")
                return self._spot(name, tuple(todo), trail)
            elif not todo:
                return self._spot(name, (), trail)
            else:
                self._down(name, todo)
        return self._spot("", (), trail)

    def _spot(self, name: str, below: tuple[str, ...], trail: list[str]) -> WalkEnd:
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
            # It became a link after the look: look again, and follow it as any other.
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
            # A relative target is a path from here; only an absolute one may name the root by its spelling.
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
        """Where the walk would end if no more links came; going up past the root is refused when it happens."""
        place = list(self.names)
        for part in todo:
            if part != "..":
                place.append(part)
            elif place:
                place.pop()
        return "/".join(place) or "."
