"""The sandbox of commands that run without approval: what they can't do even if a rule was written carelessly.

`wall` says what a command may do, `confinement` finds that out for a project, `bubblewrap` and `landlock` make the
kernel hold it. `docs/design/sandbox.md` describes what it promises and what it doesn't.
"""

from __future__ import annotations

from llm_do.toolsets.shell.sandbox.backends import SandboxStatus, status

__all__ = ["SandboxStatus", "status"]
