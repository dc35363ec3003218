"""What a command behind a wall may use of a person's home folder, though its own is a scratch folder: where a toolchain
is, and packages that were downloaded before.

It may read them, as it may read the rest of the home folder. Caches aren't among them: they are in the scratch folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from llm_do._home_folder import find_home_folder

__all__ = ["tool_homes"]

_HOMES = {
    "RUSTUP_HOME": ".rustup",
    "PYTHONUSERBASE": ".local",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "SDKMAN_DIR": ".sdkman",
}
_WITHOUT_NETWORK = {"CARGO_HOME": ".cargo", "JULIA_DEPOT_PATH": ".julia"}
"""Where packages are that can't be downloaded again; with network, they can be, into a folder that may be written."""

_GO_MODULES = "pkg/mod/cache/download"
_GO_PROXIES = "https://proxy.golang.org,direct"


def tool_homes(*, network: bool) -> dict[str, str]:
    """Return variables for the folders that there are."""
    wanted = _HOMES if network else _HOMES | _WITHOUT_NETWORK
    # Without a home folder, only what the environment names.
    home = find_home_folder() or Path(os.devnull)
    homes = {name: Path(os.environ.get(name) or home / folder) for name, folder in wanted.items()}
    found = {name: str(folder) for name, folder in homes.items() if folder.is_dir()}
    modules = Path(os.environ.get("GOPATH") or home / "go") / _GO_MODULES
    if modules.is_dir():
        proxies = os.environ.get("GOPROXY") or _GO_PROXIES
        found["GOPROXY"] = f"{modules.as_uri()},{proxies}"
    return found
