"""The work of `examples/support_desk`, done on the page from beginning to end in a real browser.

Its model is behind HTTP, on a scripted server that answers as the example's own script does.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.cli_processes import run_forked
from tests.support.openai_server import serve
from tests.web.page_support import chromium
from tests.web.served import ANN, serving

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_desk"
TOOLS = '["find_order","remember_preference","refund"]'


def send(page: Any, text: str) -> str:
    """Continue the conversation of the run that is shown; returns what the page shows of the next one."""
    before = page.url
    page.get_by_placeholder("Continue desk-7").fill(text)
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(lambda url: url != before)
    page.locator("#title .chip.completed").wait_for()
    return page.locator("#detail").inner_text()


def test_a_customer_is_served_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "support_desk"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(".llm-do"))
    manifest = json.loads((root / "project.json").read_text(encoding="utf-8"))
    (root / "project.json").write_text(json.dumps({**manifest, "model": "openai-chat:desk"}), encoding="utf-8")
    turns = yaml.safe_load((root / "answers.yaml").read_text(encoding="utf-8"))["agents"]["support"]
    faults: list[str] = []
    with serve({"desk": turns}) as (url, requests), serving([root]) as desk, chromium() as browser:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{desk.url}/#key={ANN}")
        page.locator("textarea").fill("Where is order A-1001?")
        page.get_by_label("Conversation").fill("desk-7")
        page.get_by_role("button", name="Start").click()
        page.locator("#title .chip.completed").wait_for()
        assert "Your chair was delivered" in page.locator("#detail").inner_text()
        assert page.locator(".row .name").all_inner_texts() == ["support", "request 1", "find_order", "request 2"]

        assert "Gern, ab jetzt auf Deutsch." in send(page, "Please speak German.")
        assert "I may not refund on this desk." in send(page, "It came damaged: 50 euros back?")
        refused = page.url.rpartition("/")[2].partition("#")[0]
        page.locator(".row.tool", has_text="refund").click()
        page.locator("#detail .head", has_text="refund").wait_for()

        supervised = run_forked("threads", "set", ".", "desk-7", f"enabled_tools={TOOLS}", "--user", "ann", cwd=root)
        assert supervised.code == 0, supervised.err
        assert "Done: refunded 50.00 euros of order A-1001." in send(page, "Try again.")
        page.locator(".row", has_text="request 1").first.click()
        page.locator("#detail", has_text="The customer prefers: language German").wait_for()
        done = page.url.rpartition("/")[2].partition("#")[0]

        page.goto(f"{desk.url}/")
        page.locator(".runs tbody tr").nth(3).wait_for()
        assert page.locator(".runs tbody tr").count() == 4
        for run in (refused, done):
            page.get_by_label(f"Compare {run[:12]}").check()
        page.get_by_role("link", name="Compare the two").click()
        page.get_by_text("Where they diverge").wait_for()
        assert "Done: refunded 50.00 euros" in page.locator("#home").inner_text()
    assert faults == []
    assert len(requests) == len(turns)
