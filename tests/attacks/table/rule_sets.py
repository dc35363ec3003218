"""The rules that the attacks meet: those of a person who wants an agent to look around, build, fetch or write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.attacks.table.place import HIT, OUTSIDE, PLAN, SECRET, is_protected

__all__ = ["RULE_SETS", "RuleSet"]

_READING = """
    git log * | git diff * | git show * | git status | git status * | git grep * | git blame * | git ls-files *
    git branch | git stash list | ls * | cat * | head * | tail * | wc * | sort * | uniq * | cut * | tr * | nl *
    tac * | rev * | od * | xxd * | base64 * | cmp * | comm * | paste * | join * | fold * | pr * | column *
    diff * | strings * | echo * | grep * | rg * | find * | tree * | du * | stat * | readlink * | file * | date
    date * | ps * | jq * | yq * | awk * | sed -n * | tar -tf * | tar -tvf * | unzip -l * | zipinfo * | man *
    less * | sqlite3 -readonly data.db * | pwd | env
"""
_ONLINE = """
    curl -s http://127.0.0.1:@PORT@/api/** | curl -s http://127.0.0.1:@PORT@/api/x *
    curl -s -L http://127.0.0.1:@PORT@/api/x | wget -q -O- http://127.0.0.1:@PORT@/api/**
    wget -q -O- http://127.0.0.1:@PORT@/api/x * | git fetch * | git push origin *
"""
_FILE_TOOLS = ("write_file", "edit_file", "move_file", "delete_file", "make_directory")


@dataclass(frozen=True)
class RuleSet:
    """A project's rules, and what they promise.

    `keeps` names what must stay as it is; `unseen` what no output may contain, `offline` whether nothing may be sent.
    """

    name: str
    toolsets: Mapping[str, Any]
    approvals: Mapping[str, Any] = field(default_factory=dict[str, Any])
    mode: Literal["prompt", "approve_all"] = "prompt"
    listed: Sequence[str] = ()
    keeps: Literal["everything", "code", "what is denied"] = "everything"
    unseen: Sequence[str] = (SECRET,)
    offline: bool = True

    @property
    def manifest(self) -> str:
        """The text of the manifest."""
        return json.dumps(
            {
                "version": 1,
                "entry": {"agent": "main"},
                "agent_files": ["*.agent"],
                "python_files": ["tools.py"],
                "toolsets": self.toolsets,
                "approvals": self.approvals,
            }
        )

    @property
    def names(self) -> str:
        """The toolsets that the agent lists."""
        return ", ".join([*self.toolsets, *self.listed])

    def is_kept(self, path: str, attack: str) -> bool:
        """Whether a path of the project must stay as it is under an attack."""
        if self.keeps == "everything" or is_protected(path):
            return True
        return self.keeps == "what is denied" and (
            path.startswith(("kept", "nest", "secret")) or (path == "notes.txt" and "notes.txt" in attack)
        )


def _allow(text: str) -> list[str]:
    return [rule.strip() for line in text.split("\n") for rule in line.split("|") if rule.strip()]


RULE_SETS = {
    each.name: each
    for each in (
        RuleSet(
            "reading",
            {"sh": {"type": "shell", "allow": _allow(_READING), "network": False}},
            unseen=(SECRET, OUTSIDE, HIT),
        ),
        RuleSet("readonly", {}, mode="approve_all", listed=["shell_readonly"], unseen=(SECRET, HIT)),
        RuleSet(
            "online", {"sh": {"type": "shell", "allow": _allow(_ONLINE)}}, unseen=(SECRET, OUTSIDE, HIT), offline=False
        ),
        RuleSet(
            "files",
            {},
            {"allow": [f"{tool}(**)" for tool in _FILE_TOOLS if tool != "move_file"] + ["move_file"]},
            listed=["filesystem_project"],
            keeps="code",
            unseen=(SECRET, OUTSIDE, HIT),
        ),
        RuleSet("running", {"sh": {"type": "shell", "network": False}}, mode="approve_all", keeps="code"),
        RuleSet(
            "denied",
            {"sh": {"type": "shell"}},
            {
                "default": "allow",
                "deny": [
                    "files.read(secret/**)",
                    "files.write(kept/**)",
                    "files.write(nest/kept/**)",
                    "net(127.0.0.1)",
                    "shell(rm *)",
                    "delete_file",
                ],
            },
            mode="approve_all",
            listed=["filesystem_project", "note_read", "note_write", "page"],
            keeps="what is denied",
            unseen=(SECRET, PLAN),
        ),
    )
}
