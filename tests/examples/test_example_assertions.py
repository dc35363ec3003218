"""Each example asserts something that a reviewer wants to know: it holds, and one edit breaks it."""

from __future__ import annotations

import shutil
from pathlib import Path

from llm_do.linker.linker import check_project
from tests.support.tables import each_row

EXAMPLES = Path(__file__).parents[2] / "examples"

ALLOW = '"approvals": {"allow": ["*"]},\n  "permissions"'


@each_row(
    "example, file, old, new, chain",
    [
        ("approvals", "project.json", '"permissions"', ALLOW, "secretary calls write_file"),
        ("calculator", "explainer.agent", "---\nPut", "tools: [multiply]\n---\nPut", "explainer calls multiply"),
        (
            "desk_team",
            "photographer.agent",
            "---\nDescribe",
            "toolsets: [reporter]\n---\nDescribe",
            "desk runs editor; editor calls photographer; photographer calls reporter",
        ),
        ("embedded_service", "project.json", '"permissions"', ALLOW, "letter runs clerk; clerk calls send_letter"),
        ("guest_book", "judge.agent", "output:", "tools: [tally]\noutput:", "judge calls tally"),
        (
            "house_style",
            "project.json",
            "python3 skills/letters/scripts/reference.py *",
            "git push *",
            "clerk calls shell(git push",
        ),
        ("newsroom", "writer.agent", "output:", "toolsets: [filesystem_project]\noutput:", "writer calls write_file"),
        (
            "receipts",
            "extractor.agent",
            "retries: 1",
            "retries: 1\ntoolsets: [filesystem_project_ro]",
            "main calls extractor (main.py:49); extractor calls read_file",
        ),
        ("release_gate", "releaser.agent", "{requires: [tests_passed]}", "{forbids: [tests_passed]}", "beginning"),
        (
            "support_desk",
            "support.agent",
            "compaction:",
            "toolsets: [shell_readonly]\ncompaction:",
            "support calls shell",
        ),
        ("support_handoff", "project.json", '"permissions"', ALLOW, "support runs billing; billing calls refund"),
        (
            "ticket_desk",
            "desk.py",
            '@desk.tool(required_states=["selected"], forbidden_states=["closed"])\ndef edit_issue',
            '@desk.tool(required_states=["logged_in"])\ndef edit_issue',
            "clerk calls login; clerk calls edit_issue",
        ),
    ],
)
def test_the_assertion_of_an_example_holds_until_one_edit_breaks_it(
    tmp_path: Path, example: str, file: str, old: str, new: str, chain: str
) -> None:
    root = tmp_path / example
    shutil.copytree(EXAMPLES / example, root, dirs_exist_ok=True)
    assert [item for item in check_project(root).diagnostics if item.code.startswith("LD61")] == []
    edited = root / file
    text = edited.read_text(encoding="utf-8")
    assert text.count(old) == 1
    edited.write_text(text.replace(old, new), encoding="utf-8")
    found = [item for item in check_project(root).diagnostics if item.code.startswith("LD61")]
    assert [item.code for item in found] == ["LD611"], found
    assert all(chain in item.message for item in found)


def test_every_example_with_a_manifest_asserts_something() -> None:
    manifests = [path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*/project.json")]
    assert len(manifests) == 12
    assert all('"assert"' in text for text in manifests)
