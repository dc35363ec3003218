"""What a model reads about a command that ran in the sandbox: why it may have failed, and which new code it made."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_do.files.paths import display_path
from llm_do.toolsets.shell.sandbox.command_sandbox import Guard

__all__ = ["sandbox_note"]

_REFUSED = re.compile(
    r"read-only file system|permission denied|operation not permitted|device or resource busy|cross-device link"
    r"|EROFS|EACCES|EPERM|EBUSY|EXDEV",
    re.IGNORECASE,
)
_NO_NETWORK = re.compile(
    r"network is (unreachable|down)|name resolution|resolve host|name or service not known|ENOTFOUND|EAI_AGAIN"
    r"|no such host|could not resolve|failed to connect|couldn't connect|connection refused",
    re.IGNORECASE,
)
_MOST_NAMED = 10


def sandbox_note(guard: Guard | None, output: str, codes: Sequence[int], *, may_leave: bool) -> str:
    """Return the note, empty if there is nothing to say."""
    if guard is None:
        return ""
    parts: list[str] = []
    if any(codes) and guard.backend is not None and (why := _why(guard, output)):
        parts.append(why + (_LEAVE if may_leave else ""))
    if guard.new_code:
        named = ", ".join(display_path(path, 80) for path in guard.new_code[:_MOST_NAMED])
        more = f" and {len(guard.new_code) - _MOST_NAMED} more" if len(guard.new_code) > _MOST_NAMED else ""
        parts.append(f"New code: {named}{more}. The project doesn't load it before a person has agreed to it.")
    return " ".join(parts)


def _why(guard: Guard, output: str) -> str:
    if _REFUSED.search(output):
        if guard.sandbox.reads_only:
            return "It ran in a sandbox, in which nothing can be written and secrets can't be read."
        return (
            "It ran in a sandbox, because no one approved it: there the project's code, .git and everything outside "
            "the project can't be changed, and secrets can't be read."
        )
    if not guard.sandbox.network and _NO_NETWORK.search(output):
        return "It ran in a sandbox without network, because no one approved it."
    return ""


_LEAVE = " If that is why it failed, call shell again with outside_sandbox=true: a person is asked then."
