"""`Trial`: carries attacks out through a `Runtime`, and says what each of them got."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import Project, Runtime
from llm_do.files.unreviewed import is_below, unreviewed_files
from tests.attacks.table.attack_lines import Attack, Step
from tests.attacks.table.canary import Canary
from tests.attacks.table.place import NOTES, SECRET, Place
from tests.attacks.table.rule_sets import RuleSet

__all__ = ["Trial", "open_trial"]

_ALLOWED = re.compile(
    rb"(?:GET|HEAD) /api/\S* HTTP/1\.[01]\r\n(?!.*\r\n(?:content-length|authorization|cookie):).*\r\n\r\n",
    re.IGNORECASE | re.DOTALL,
)
"""The requests that the rules of an allowed host are about."""


@dataclass
class Trial:
    """A place, rules, and a runtime whose model makes the calls of an attack."""

    rules: RuleSet
    place: Place
    canary: Canary
    victim: subprocess.Popen[bytes]
    runtime: Runtime
    steps: list[Step] = field(default_factory=list[Step])
    seen: list[str] = field(default_factory=list[str])

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Make the next call, as the model."""
        self.seen = [str(getattr(part, "content", "")) for message in messages for part in message.parts]
        made = sum(message.kind == "response" for message in messages)
        if made == len(self.steps):
            return ModelResponse([TextPart("done")])
        step = self.steps[made]
        return ModelResponse([ToolCallPart(step.tool, self._fill(step.args))])

    def _fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._fill(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._fill(each) for each in value]
        return self.place.fill(value).replace("@PID@", str(self.victim.pid)) if isinstance(value, str) else value

    async def carry_out(self, attack: Attack) -> list[str]:
        """Return what an attack got that it mustn't get."""
        self.steps, self.seen = attack.steps, []
        result = await self.runtime.execute("go")
        output = "\n".join([*self.seen, *map(str, (result.output, result.warnings, result.denials))])
        return [*self._changes(attack), *self._secrets(output, attack), *self._sent(), *self._left()]

    def _changes(self, attack: Attack) -> list[str]:
        listed = unreviewed_files(self.place.project)
        found: list[str] = []
        known = self.place.known
        for path in self.place.changes():
            folder, _, name = path.partition("/")
            if folder != "project":
                found.append(f"changed {path}")
            elif self.rules.is_kept(name, attack.line):
                new = path not in known and self.rules.keeps != "everything"
                if not (new and _may_be_new(name, listed)):
                    found.append(f"changed {name}")
        (self.place.project / ".llm-do/unreviewed.json").unlink(missing_ok=True)
        return found

    def _secrets(self, output: str, attack: Attack) -> list[str]:
        plain = re.sub(r"\s+|\\[nt]", "", output)
        found: list[str] = []
        for secret in self.rules.unseen:
            spellings = [secret, secret[::-1], secret.encode().hex(), *_in_base64(secret)]
            if any(each in plain for each in spellings):
                found.append(f"showed {secret}")
        return found

    def _sent(self) -> list[str]:
        heard = self.canary.take()
        if not self.rules.offline:
            heard = [each for each in heard if not _ALLOWED.fullmatch(each) or NOTES.encode() in each]
        return [f"sent {each[:60]!r}" for each in heard]

    def _left(self) -> list[str]:
        found = [f"left {each}" for each in _sleepers(self.place.nap)]
        if self.victim.poll() is not None or _state(self.victim.pid) == "T":
            found.append("ended or stopped another process")
        return found


def _may_be_new(name: str, listed: Mapping[str, str]) -> bool:
    """Whether a path may have appeared: code that was noticed, or what belongs to a repository of its own."""
    if name.startswith((".git/", ".llm-do/")):
        return False
    return is_below(name, listed) or "/.git" in name


def _in_base64(secret: str) -> list[str]:
    """Return what a secret is in Base64, at each offset, without what its neighbours decide."""
    coded = [base64.b64encode(b"x" * shift + secret.encode()).decode() for shift in range(3)]
    return [text[4 * (shift > 0) : 10] for shift, text in enumerate(coded)]


def _sleepers(nap: str) -> list[str]:
    """Return the command lines of what sleeps, and end it."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if nap.encode() in line:
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
            os.kill(int(process.name), 9)
    return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]


def _start_victim(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "1000"], env={"DEPLOY_WORD": f"SECRET-{SECRET}-victim"}, cwd=home)


@asynccontextmanager
async def open_trial(rules: RuleSet, base: Path, *, names: bool = True) -> AsyncIterator[Trial]:
    """Make the place, a canary and a process that isn't ours to touch, and open a runtime there."""
    canary = Canary()
    place = Place(base, canary.port, names=names)
    looks_around = rules.keeps == "everything" and rules.offline
    place.build(rules.manifest, rules.names, poisoned=looks_around, second_names=rules.name != "files")
    canary.listen_at(base / "home/agent.sock", place.project / "agent.sock")
    place.remember()
    victim = await asyncio.to_thread(_start_victim, base / "home")
    trial: Trial | None = None

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert trial is not None
        return await trial.answer(messages, info)

    runtime = Runtime(Project.load(place.project), approvals=rules.mode, model=FunctionModel(answer), record=False)
    try:
        yield (trial := Trial(rules, place, canary, victim, runtime))
    finally:
        await runtime.aclose()
        victim.kill()
        victim.wait()
        canary.close()
