"""How messages name an option: as a flag in a process that the command line has started, as an argument in a program.

Messages that only a command prints write its flags themselves.
"""

from __future__ import annotations

__all__ = ["name_options_as_flags", "option_name"]

_as_flags = False


def name_options_as_flags() -> None:
    """Name options as flags from now on: this process is a command's."""
    global _as_flags
    _as_flags = True


def option_name(flag: str, argument: str = "") -> str:
    """What an option is called by whoever started this process.

    Args:
        flag: What one writes on the command line.
        argument: What one writes in Python, if that isn't the flag's name.

    Example:
        >>> option_name("--max-steps"), option_name("--no-record", "record=False")
        ('max_steps=', 'record=False')
    """
    return flag if _as_flags else argument or f"{flag.removeprefix('--').replace('-', '_')}="
