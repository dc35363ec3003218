"""`project.json.example` is complete and matches the current format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project
from llm_do.formats.editor_schema import project_schema
from llm_do.formats.manifest import parse_manifest
from tests.support.programs import install_program

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "project.json.example").read_text(encoding="utf-8")
OPEN = {"model_settings.", "threads.model_settings.", "hooks."}
"""Objects with arbitrary keys, of which the example shows some."""

ALTERNATIVES = {"entry.agent", "entry.flow", "threads.compaction.fraction"}
"""Keys that exclude others in the example."""

FILES = {
    "agents/researcher.agent": "---\nname: researcher\ntoolsets: [git, notes, wiki]\n---\nFind out.\n",
    "agents/checker.agent": "---\nname: checker\n---\nCheck.\n",
    "agents/stylist.agent": "---\nname: stylist\nhandoffs: [checker]\n---\nPolish.\n",
    "agents/writer.agent": "---\nname: writer\ntoolsets: [filesystem_project, {data: {prefix: data}}]\n---\nWrite.\n",
    "main.py": "NAMES = 'article', 'support', 'desk', 'study'\n\n\nasync def main(input, ctx):\n    return NAMES\n",
    "schemas.py": "from llm_do import AgentArgs\n\n\nclass Week(AgentArgs):\n    number: int\n",
    "rules.py": "def not_at_night(call): ...\n\n\ndef started(agent): ...\n\n\ndef today(ctx): ...\n",
    "data/numbers.txt": "1\n",
    "skills/tables/SKILL.md": "---\nname: tables\ndescription: How tables are written.\n---\nAlign them.\n",
}


def keys_of(schema: dict[str, Any], root: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every dotted key of objects with fixed keys."""
    for option in [schema, *(each for kind in ("anyOf", "oneOf", "allOf") for each in schema.get(kind, []))]:
        target = root["$defs"][option["$ref"].rsplit("/", 1)[1]] if "$ref" in option else option
        for name, inner in target.get("properties", {}).items():
            if prefix not in OPEN:
                yield f"{prefix}{name}"
                yield from keys_of(inner, root, f"{prefix}{name}.")


def test_the_example_parses_without_a_finding() -> None:
    parsed = parse_manifest(EXAMPLE, "project.json")

    assert parsed.value is not None
    assert list(parsed.diagnostics) == []


def test_the_example_links_beside_the_files_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_TOKEN", "secret")
    install_program(tmp_path / "programs", "notes-server", monkeypatch)
    for name, text in {**FILES, "project.json": EXAMPLE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    # The programs of its servers are on no machine.
    assert [each for each in Project.load(tmp_path).warnings if each.code != "LD707"] == []


def test_the_example_shows_every_key() -> None:
    example = json.loads(EXAMPLE)

    def shown(key: str) -> bool:
        value: Any = example
        for step in key.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value is not None

    schema = project_schema()
    assert [key for key in keys_of(schema, schema) if not shown(key) and key not in ALTERNATIVES] == []
