"""Attacks that are carried out: a model's calls, in a project with the rules that they meet.

What must stay has not changed afterwards, the model reads no secret, nothing was sent that no rule allows, and
nothing runs any more.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from llm_do.toolsets.shell.sandbox import SandboxStatus, bubblewrap
from tests.attacks.table.attack_lines import Attack, Step, read_attacks
from tests.attacks.table.place import SECRET
from tests.attacks.table.rule_sets import RULE_SETS
from tests.attacks.table.trial import open_trial

LISTS = {name: name for name in RULE_SETS} | {"readonly": "reading"}
QUICK = 25
"""Which of the attacks are quick tests: one of so many."""

_SECONDS = 60


@pytest.fixture
def base(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that isn't one for temporary files, which commands don't see."""
    has_cache = pytestconfig.pluginmanager.hasplugin("cacheprovider") and pytestconfig.cache is not None
    folder = Path(tempfile.mkdtemp(prefix="a", dir=pytestconfig.cache.mkdir("attacks") if has_cache else None))
    (folder / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("DEPLOY_WORD", f"SECRET-{SECRET}-ours")
    yield folder
    for each in (folder, folder.with_name(f"{folder.name}-copy")):
        shutil.rmtree(each, ignore_errors=True)


def got(rules: str, base: Path, attacks: Sequence[Attack], *, names: bool = True) -> dict[str, list[str]]:
    """What each of the attacks got."""

    async def all_of_them() -> dict[str, list[str]]:
        async with open_trial(RULE_SETS[rules], base, names=names) as trial:
            return {attack.line: await asyncio.wait_for(trial.carry_out(attack), _SECONDS) for attack in attacks}

    return {line: found for line, found in asyncio.run(all_of_them()).items() if found}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rules", ["reading", "files", "denied"])
def test_some_attacks_get_nothing(rules: str, base: Path) -> None:
    if bubblewrap.find_prefix()[0] is None:
        pytest.skip("bubblewrap doesn't work on this machine")
    assert got(rules, base, read_attacks(LISTS[rules])[::QUICK]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("rules", list(RULE_SETS))
def test_no_attack_gets_anything(backend: str, rules: str, base: Path) -> None:
    if rules == "files" and backend == "landlock":
        pytest.skip("it runs no commands")
    # Landlock keeps neither modes nor names, as docs/design/sandbox.md says.
    assert got(rules, base, read_attacks(LISTS[rules]), names=backend == "bubblewrap") == {}


@pytest.mark.slow
def test_what_gets_through_is_noticed(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SandboxStatus(active=False, backend=None, reason="")
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.command_sandbox.status", lambda: nothing)
    lines = {
        "sh -c 'echo x >> main.agent; rm lib/util.py'": ["changed lib/util.py", "changed main.agent"],
        "base64 .env": [f"showed {SECRET}"],
        "sh -c 'echo x > @OUT@/private.txt'": ["changed outside/private.txt"],
        "bash -c 'echo x > /dev/udp/127.0.0.1/@PORT@'": ["sent b'UDP x\\n'"],
        "env -i setsid -f sleep 31.4159": ["left sleep"],
        "true": [],
    }
    attacks = [Attack(line, "run", [Step("shell", {"command": line})]) for line in lines]
    found = got("running", base, attacks)
    assert found.keys() == {line for line, expected in lines.items() if expected}
    for line, items in found.items():
        assert [item for item in items if item.startswith(tuple(lines[line]))] == items, line
        assert len(items) == len(lines[line]), line


def test_there_are_enough_attacks_of_every_kind() -> None:
    listed = [attack for name in dict.fromkeys(LISTS.values()) for attack in read_attacks(name)]
    assert len(listed) > 1000
    assert {attack.after for attack in listed} == {"change", "read", "run", "send", "stay"}
