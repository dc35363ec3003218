"""Where a person's home folder is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["account_folder", "find_home_folder", "home_folder"]


def home_folder() -> Path:
    """Return the home folder; a relative `HOME` is ignored, as it would lead into whatever folder a command runs in.

    Raises:
        RuntimeError: There is none.

    Example:
        >>> home_folder().is_absolute()
        True
    """
    home = Path.home()
    if not home.is_absolute():
        home = account_folder() or home
    if not home.is_absolute():
        raise RuntimeError("there is no home folder: HOME is not an absolute path")
    return home


def account_folder() -> Path | None:
    """Return the home folder that the user's account names, whatever `HOME` says; None if no account is known.

    Example:
        >>> account_folder() != Path()
        True
    """
    with suppress(ImportError, KeyError):
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return None


def find_home_folder() -> Path | None:
    """Return the home folder, or None if there is none, as for a user of a container whom no file of users names.

    Example:
        >>> find_home_folder() == home_folder()
        True
    """
    try:
        return home_folder()
    except RuntimeError:
        return None
