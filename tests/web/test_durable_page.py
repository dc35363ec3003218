"""Durable runs on the page, in a real browser: their questions are answered with nothing running, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_processes import run_forked
from tests.web.page_support import chromium, visitors
from tests.web.served import KEY, Served, wait_for

pytestmark = pytest.mark.slow

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser: Any, desk: Served) -> Iterator[Visit]:
    with visitors(browser, desk.url, KEY) as visit:
        yield visit


def suspended(root: Path, run_id: str) -> None:
    """Begin a durable run in another process, which ends as the run waits for a person."""
    ended = run_forked("run", ".", "--durable", "--run-id", run_id, "Hello", cwd=root)
    assert ended.code == 5, ended.err


def test_a_question_with_nothing_running_is_answered_on_the_first_page(root: Path, desk: Served, visit: Visit) -> None:
    suspended(root, "waits")
    page = visit()
    card = page.locator(".question")
    card.wait_for()

    assert "Allow send?" in card.inner_text()
    assert "ann" in card.locator(".fields").inner_text()
    assert card.get_by_role("button").all_inner_texts() == ["Allow", "For this run", "Deny", "End the run"]
    card.get_by_label("Reason for a denial").fill("use the phone")
    page.wait_for_timeout(2500)  # the list is refreshed meanwhile, and what was typed stays
    card.get_by_role("button", name="Deny").click()
    card.wait_for(state="detached")
    page.get_by_role("link", name="clerk").first.click()
    page.locator("#title .chip.completed").wait_for()

    result = next(each for each in desk.ended("waits")["events"] if each["type"] == "tool_result")
    assert "use the phone" in result["result"]


def test_the_answers_stay_in_sight_below_a_long_question(root: Path, visit: Visit) -> None:
    letter = "- tools: [{name: send, args: {to: '" + "ann, " * 2000 + "'}}]\n- text: Sent.\n"
    (root / "answers.yaml").write_text(letter, encoding="utf-8")
    suspended(root, "waits")
    page = visit("/runs/waits")
    page.locator(".question").wait_for()
    card, button = page.locator(".question").bounding_box(), page.get_by_role("button", name="Deny").bounding_box()

    assert card["y"] < button["y"]
    assert button["y"] + button["height"] <= card["y"] + card["height"] + 1


def test_a_durable_run_is_begun_answered_and_drawn_over_its_attempts(desk: Served, visit: Visit) -> None:
    page = visit()
    page.locator("textarea").fill("Write to ann.")
    page.get_by_label("Durable").check()
    page.get_by_role("button", name="Start").click()
    page.locator("#title .chip.suspended").wait_for()
    page.get_by_role("button", name="Allow", exact=True).click()
    page.locator("#title .chip.completed").wait_for()

    names = page.locator(".row .name").all_inner_texts()
    assert sorted(names) == ["clerk", "request 1", "request 2", "resumed", "send"]
    assert "The letter: sent to ann." in page.locator("#detail").inner_text()
    page.get_by_role("button", name="Continue").wait_for(state="detached")


def test_an_answer_on_the_command_line_is_told_on_the_page_and_the_run_is_continued_there(
    root: Path, desk: Served, visit: Visit
) -> None:
    suspended(root, "waits")
    page = visit("/runs/waits")
    page.locator(".question").wait_for()
    assert run_forked("approvals", "answer", "waits.1", "allow", cwd=root).code == 0
    page.locator(".said", has_text="send was answered: allow, by").wait_for()

    page.locator(".question").wait_for(state="detached")
    page.get_by_role("button", name="Continue").click()
    page.locator("#title .chip.completed").wait_for()
    assert "The letter: sent to ann." in page.locator("#detail").inner_text()


def test_of_two_people_one_answers_and_the_other_is_told_what(root: Path, desk: Served, visit: Visit) -> None:
    suspended(root, "waits")
    one, two = visit("/runs/waits"), visit("/runs/waits")
    for page in (one, two):
        page.locator(".question").wait_for()
    # The second one answers what is still on the page, although the first has answered.
    two.route("**/questions", lambda route: route.abort())
    two.route("**/events*", lambda route: route.abort())
    two.reload()
    two.locator(".question").wait_for()
    one.get_by_role("button", name="Allow", exact=True).click()
    wait_for(lambda: not desk.http.get("/api/questions").json()["questions"])
    two.get_by_role("button", name="Deny").click()
    two.locator(".said", has_text="send was answered: allow, by").wait_for()
    one.locator("#title .chip.completed").wait_for()

    assert one.locator(".said").count() == 0


def test_a_run_of_a_changed_project_says_how_it_is_continued(root: Path, visit: Visit) -> None:
    suspended(root, "waits")
    with (root / "tools.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    page = visit("/runs/waits")
    page.get_by_role("button", name="Allow", exact=True).click()
    page.locator(".said", has_text="llm-do resume waits --as-begun").wait_for()

    assert "tools.py" in page.locator(".said").inner_text()
    page.locator("#title .chip.suspended").wait_for()


def test_a_run_that_waits_is_dropped(root: Path, desk: Served, visit: Visit) -> None:
    suspended(root, "waits")
    page = visit("/runs/waits")
    page.get_by_role("button", name="Drop").click()
    page.locator("#title .chip", has_text="interrupted").wait_for()
    page.locator(".question").wait_for(state="detached")

    assert desk.ended("waits")["run"]["status"] == "interrupted"
