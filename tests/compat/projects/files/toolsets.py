from pathlib import Path

from llm_do.toolsets.filesystem import FileSystemToolset, ReadOnlyFileSystemToolset
from llm_do.toolsets.shell import ShellToolset

HERE = Path(__file__).parent


def workspace(ctx):
    return FileSystemToolset(
        config={"base_path": str(HERE / "work"), "read_approval": False, "write_approval": True}, id="workspace"
    )


library = ReadOnlyFileSystemToolset(config={"base_path": str(HERE / "library")}, id="library", max_retries=2)

commands = ShellToolset(
    config={
        "rules": [
            {"pattern": "ls", "approval_required": False},
            {"pattern": "cat", "approval_required": True, "approval_required_if_args": ["-v"]},
        ],
        "default": {"approval_required": True},
    }
)

TOOLSETS = {"workspace": workspace, "library": library, "commands": commands}
