"""Runs that are continued with the project's files as they began with them, which are kept in the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, RunResult, Runtime
from llm_do.errors import LinkError, UsageError
from llm_do.runtime.record.redaction import protect_values
from llm_do.runtime.session import project_snapshots
from llm_do.threads import SqliteStore
from tests.durable.test_resumed_runs import StoppingStore, store_path

MAIN = """
from helpers.words import greeting


def note(text: str) -> str:
    \"\"\"Note a text.\"\"\"
    with open("{root}/notes", "a") as file:
        file.write(f"{{text}}\\n")
    return f"{{greeting()}} noted"


async def main(input, ctx):
    first = await ctx.call("writer", "one")
    return f"{{first}}, {{await ctx.call('writer', 'two')}}: {{greeting()}}"


TOOLS = [note]
"""
AGENT = "---\nname: writer\nmodel: script:answers.yaml\ntools: [note]\n---\nWrite.\n"
SCRIPT = "- tools: [{name: note, args: {text: a}}]\n- text: done\n"
MANIFEST: dict[str, Any] = {
    "version": 1,
    "entry": {"function": "main.py:main"},
    "agent_files": ["*.agent"],
    "python_files": ["main.py"],
    "approvals": {"allow": ["note"]},
    "toolsets": {
        "api": {"type": "http", "base_url": "https://example.org/", "headers": {"X-Key": "${ACME_API_KEY}"}},
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "project"
    (root / "helpers").mkdir(parents=True)
    (root / "helpers/words.py").write_text("def greeting():\n    return 'hello'\n")
    (root / "main.py").write_text(MAIN.format(root=root))
    (root / "writer.agent").write_text(AGENT)
    (root / "answers.yaml").write_text(SCRIPT)
    (root / ".env").write_text("ACME_API_KEY=sk-of-the-env-file\n")
    (root / "project.json").write_text(json.dumps(MANIFEST))
    yield root
    for name in [name for name in sys.modules if name.partition(".")[0] == "helpers"]:
        del sys.modules[name]


def change_all(root: Path) -> None:
    """Change every file, so that nothing of the run would be the same."""
    (root / "helpers/words.py").write_text("def greeting():\n    return 'goodbye'\n")
    (root / "main.py").write_text("async def main(input, ctx):\n    return await ctx.call('writer', 'other')\n")
    (root / "writer.agent").write_text("---\nname: writer\nmodel: script:answers.yaml\n---\nWrite otherwise.\n")
    (root / "answers.yaml").write_text("- text: otherwise\n")
    (root / "project.json").write_text(json.dumps({**MANIFEST, "approvals": {}}))


async def stop_at(root: Path, number: int) -> RunResult:
    store = StoppingStore(store_path(root), number, after=True)
    runtime = Runtime(Project.load(root), durable=True, store=store)
    store.stop = runtime.interrupt
    try:
        return await runtime.execute("go", run_id="r")
    finally:
        await runtime.aclose()
        await store.aclose()


async def resume(root: Path, **options: Any) -> RunResult:
    store = SqliteStore(store_path(root))
    runtime = Runtime(Project.load(root), durable=True, store=store)
    try:
        return await runtime.execute_again("r", in_flight="repeat", **options)
    finally:
        await runtime.aclose()
        await store.aclose()


def rows(root: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(store_path(root))) as db:
        return db.execute(query).fetchall()


def test_a_run_goes_on_with_the_files_that_it_began_with(root: Path) -> None:
    async def go() -> tuple[RunResult, RunResult]:
        stopped = await stop_at(root, 3)
        change_all(root)
        with pytest.raises(UsageError) as caught:
            await resume(root)
        names = "answers.yaml, helpers/words.py, main.py, project.json, writer.agent"
        assert caught.value.message == f"the project has changed since run r began: {names}"
        assert "--as-begun" in (caught.value.hint or "")
        assert "--accept-changes" in (caught.value.hint or "")
        return stopped, await resume(root, as_begun=True)

    stopped, result = asyncio.run(go())
    assert stopped.status == "interrupted"
    assert (result.status, result.output) == ("completed", "done, done: hello")
    assert set((root / "notes").read_text().split()) == {"a"}  # its tools work in the project's own folder


@pytest.mark.slow
def test_a_run_goes_on_with_the_skills_that_it_began_with(root: Path) -> None:
    skill = root / "skills/tea"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil water.\n")
    (skill / "references/water.md").write_text("Soft water.\n")
    (root / "writer.agent").write_text(AGENT.replace("tools: [note]", "skills: [skills/*]"))
    calls = (
        "{name: load_skill, args: {name: tea}}, {name: read_skill_file, args: {skill: tea, path: references/water.md}}"
    )
    (root / "answers.yaml").write_text(f"- tools: [{calls}]\n- text: 'done'\n")

    async def go() -> RunResult:
        await stop_at(root, 1)
        (skill / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil milk.\n")
        (skill / "references/water.md").write_text("Hard water.\n")
        with pytest.raises(UsageError, match=r"skills/tea/SKILL\.md, skills/tea/references/water\.md"):
            await resume(root)
        return await resume(root, as_begun=True)

    result = asyncio.run(go())
    assert result.status == "completed"
    told = [str(message) for call in result.calls for message in call.messages]
    assert any("Boil water." in text and "Its folder in the project is skills/tea." in text for text in told)
    assert any("Soft water." in text for text in told)
    assert not any("milk" in text or "Hard" in text for text in told)


def test_deny_rules_of_today_hold(root: Path) -> None:
    async def go() -> RunResult:
        await stop_at(root, 1)
        (root / "project.json").write_text(json.dumps({**MANIFEST, "approvals": {"deny": ["note"]}}))
        return await resume(root, as_begun=True)

    result = asyncio.run(go())
    assert [record.tool for record in result.denials] == ["note"] * len(result.denials)
    assert result.denials
    assert not (root / "notes").exists()


def test_each_version_is_kept_once_and_as_long_as_a_run_needs_it(root: Path) -> None:
    async def go() -> None:
        store = SqliteStore(store_path(root))
        runtime = Runtime(Project.load(root), durable=True, store=store)
        for run_id in ("a", "b"):
            await runtime.run("go", run_id=run_id)
        assert len(rows(root, "SELECT * FROM projects")) == 1
        await runtime.aclose()
        await store.aclose()
        await stop_at(root, 2)
        assert len(rows(root, "SELECT * FROM projects")) == 1
        (root / "helpers/words.py").write_text("def greeting():\n    return 'hi'\n")
        store = SqliteStore(store_path(root))
        runtime = Runtime(Project.load(root), durable=True, store=store)
        await runtime.run("go", run_id="c")
        assert len(rows(root, "SELECT * FROM projects")) == 2
        await store.drop_run("r")
        assert rows(root, "SELECT * FROM projects") == []
        await runtime.aclose()
        await store.aclose()

    asyncio.run(go())


def test_secrets_are_not_kept(root: Path) -> None:
    (root / "helpers/words.py").write_text("KEY = 'sk-in-the-code-123'\ndef greeting():\n    return KEY[:2]\n")
    protect_values({"WORDS_API_KEY": "sk-in-the-code-123"})

    async def go() -> RunResult:
        await stop_at(root, 2)
        [(kept,)] = rows(root, "SELECT files FROM projects")
        text = zlib.decompress(kept).decode()
        assert sorted(json.loads(text)) == [
            "answers.yaml", "helpers/words.py", "main.py", "project.json", "writer.agent",
        ]  # fmt: skip
        assert "sk-in-the-code-123" not in text
        assert "sk-of-the-env-file" not in text
        change_all(root)
        return await resume(root, as_begun=True)

    assert asyncio.run(go()).output == "done, done: sk"


def bomb() -> bytes:
    return zlib.compress(b"0" * (project_snapshots.LARGEST * 5), 9)


def packed(change: Any) -> Any:
    """A row's files with a change."""

    def pack(kept: bytes) -> bytes:
        data = json.loads(zlib.decompress(kept))
        change(data)
        return zlib.compress(json.dumps(data).encode())

    return pack


DAMAGED = {
    "no archive": lambda kept: b"nothing",
    "a bomb": lambda kept: bomb(),
    "no files": lambda kept: zlib.compress(b"[]"),
    "other code": packed(lambda data: data.update({"main.py": "raise SystemExit"})),
    "one more file": packed(lambda data: data.update({"sitecustomize.py": "raise SystemExit"})),
    "one less": packed(lambda data: data.pop("main.py")),
    "a path above": packed(lambda data: data.update({"../evil.py": "x = 1"})),
    "wrong base64": packed(lambda data: data.update({"main.py": {"base64": "!"}})),
}


@pytest.mark.slow
def test_files_that_are_not_those_of_the_run_are_refused(root: Path, tmp_path: Path) -> None:
    asyncio.run(stop_at(root, 2))
    change_all(root)
    [(kept,)] = rows(root, "SELECT files FROM projects")
    for name, damage in DAMAGED.items():
        with closing(sqlite3.connect(store_path(root))) as db:
            db.execute("UPDATE projects SET files = ?", (damage(kept),))
            db.commit()
        with pytest.raises(UsageError, match="nothing of them was run") as caught:
            asyncio.run(resume(root, as_begun=True))
        assert caught.value.exit_code == 2, name
    assert not (tmp_path / "evil.py").exists()


@pytest.mark.parametrize("digests", [{"../evil.py": ""}, {"/etc/evil.py": ""}, {".env": ""}, {"a/.git/x": ""}])
def test_paths_that_lead_elsewhere_are_refused_although_their_digests_fit(
    digests: dict[str, str], root: Path, tmp_path: Path
) -> None:
    import hashlib

    from llm_do.runtime.record.store.store_writes import ProjectRow
    from llm_do.runtime.session.project_snapshots import link_snapshot
    from llm_do.runtime.steps.sealed_secrets import Seal

    content = "raise SystemExit"
    files = zlib.compress(json.dumps(dict.fromkeys(digests, content)).encode())
    known = dict.fromkeys(digests, hashlib.sha256(content.encode()).hexdigest())
    with pytest.raises(UsageError, match="leads elsewhere"):
        link_snapshot(ProjectRow("d", files), known, Project.load(root), Seal({}), "r")
    assert not (tmp_path / "evil.py").exists()


def test_what_can_not_be_kept_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_snapshots, "LARGEST", 10)

    async def go() -> None:
        await stop_at(root, 2)
        change_all(root)
        with pytest.raises(UsageError) as caught:
            await resume(root)
        assert "--as-begun" not in (caught.value.hint or "")
        with pytest.raises(UsageError, match="the files that run r began with aren't kept: its files are more than"):
            await resume(root, as_begun=True)
        with pytest.raises(UsageError, match="not with both"):
            await resume(root, as_begun=True, accept_changes=True)

    asyncio.run(go())


def test_a_project_that_no_longer_links_is_refused(root: Path) -> None:
    asyncio.run(stop_at(root, 2))
    (root / "main.py").write_text("def main(:\n")
    with pytest.raises(LinkError):  # its deny rules aren't known
        asyncio.run(resume(root, as_begun=True))
