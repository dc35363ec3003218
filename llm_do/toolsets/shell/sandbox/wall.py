"""`Wall`: what a command that runs without approval may do, as paths; the backends make the kernel hold it.

Nothing here looks at a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_do._startup.frozen import frozen

__all__ = ["SYSTEM_FOLDERS", "Wall"]

SYSTEM_FOLDERS = frozenset(
    ["bin", "boot", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "snap", "sys", "usr"]
)
"""The folders of `/` that hold programs, what they need, and the system's settings."""


@frozen
class Wall:
    """The limits of one command. Paths are absolute and real; whatever isn't named can be read and not written.

    Args:
        root: The project's folder.
        writable: Folders in which files may be written. None of them can itself be renamed or removed.
        read_only: Files and folders in these that can't be written, renamed or removed.
        hidden: Files and folders that can't be read either.
        visible: What can be read even where a folder above it is hidden, such as the folder of a program.
        network: Whether the command may use the network.
        named: Paths in the home folder that a command finds in its own one too.
        confined: Whether only the project and the system's programs are visible.
    """

    root: Path
    writable: Sequence[Path] = ()
    read_only: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    visible: Sequence[Path] = ()
    network: bool = False
    named: Sequence[Path] = ()
    confined: bool = False

    @property
    def hides_temporary_files(self) -> bool:
        """Whether temporary files of others are hidden: among them are sockets that act for whoever connects."""
        return self.confined or bool(self.writable)
