"""The page of a server in a real browser: it shows runs while they last, and two people answer one question."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.page_support import chromium, visitors
from tests.web.served import ANN, KEY, Served, httpx, serving, wait_for, write_desk

pytestmark = pytest.mark.slow

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving([write_desk(tmp_path_factory.mktemp("live") / "desk")]) as found:
        yield found


@pytest.fixture
def visit(browser: Any, desk: Served) -> Iterator[Visit]:
    with visitors(browser, desk.url, KEY) as visit:
        yield visit


def test_a_run_is_started_answered_and_shown_until_its_end(desk: Served, visit: Visit) -> None:
    page = visit()
    page.locator("textarea").fill("Write to ann.")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Allow").click()
    page.locator("#title .chip.completed").wait_for()

    assert "key=" not in page.url
    assert page.locator(".row .name").all_inner_texts() == ["clerk", "request 1", "send", "request 2"]
    assert "The letter: sent to ann." in page.locator("#detail").inner_text()
    page.locator(".question").wait_for(state="detached")
    page.locator(".row").nth(1).click()
    page.locator("#detail").get_by_text("Send letters.").wait_for()


def test_a_page_that_opens_before_the_first_event_shows_the_run_to_its_end(desk: Served, visit: Visit) -> None:
    run = desk.start(input="Hello")
    question = desk.question(run)
    page = visit("/")
    refused: list[str] = []

    def early(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "events": []})

    def refuse(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, json={"error": {"message": "busy"}})

    page.route(f"**/api/runs/{run}", early, times=1)
    page.route(f"**/api/runs/{run}/events*", refuse)
    page.goto(f"{desk.url}/runs/{run}")
    page.locator(".row.tool.waiting").wait_for()
    assert desk.answer(run, question, "once").status_code == 200
    page.locator("#title .chip.completed").wait_for()

    assert refused[0].endswith("after=-1")
    assert page.locator(".row .name").all_inner_texts() == ["clerk", "request 1", "send", "request 2"]


def test_two_people_answer_one_question_and_one_of_them_wins(desk: Served, visit: Visit) -> None:
    run = desk.start(input="Hello")
    one, two = visit(f"/runs/{run}"), visit(f"/runs/{run}")
    for page in (one, two):
        page.locator(".question").wait_for()
    # The second one answers what is still on the page, although the first has answered.
    two.route("**/questions", lambda route: route.abort())
    two.route("**/events*", lambda route: route.abort())
    two.reload()
    two.locator(".question").wait_for()
    one.get_by_role("button", name="Allow").click()
    wait_for(lambda: not desk.http.get(f"/api/runs/{run}/questions").json()["questions"])
    two.get_by_role("button", name="Deny").click()
    two.locator(".said", has_text="send was answered: allow, by").wait_for()
    one.locator("#title .chip.completed").wait_for()

    assert desk.ended(run)["events"][-1]["output"] == "The letter: sent to ann."


def test_reloading_in_the_middle_of_a_run_loses_no_event(desk: Served, visit: Visit) -> None:
    run = desk.start(input="Hello")
    question = desk.question(run)
    page = visit(f"/runs/{run}")
    page.locator(".question").wait_for()
    page.reload()
    page.locator(".question").wait_for()
    desk.answer(run, question, "once")
    page.locator("#title .chip.completed").wait_for()
    seen = page.locator(".row .name").all_inner_texts()
    page.reload()
    page.locator(".row").first.wait_for()

    assert page.locator(".row .name").all_inner_texts() == seen == ["clerk", "request 1", "send", "request 2"]


def test_a_run_of_a_killed_process_is_shown_as_such(desk: Served, visit: Visit) -> None:
    root: Path = desk.service.projects[0].project.root
    program = (
        "import asyncio, sys, time\nfrom llm_do import Project, Runtime\n"
        "async def ask(request):\n    await asyncio.sleep(60)\n"
        "runtime = Runtime(Project.load(sys.argv[1]), record=True, approvals=ask)\n"
        "runtime.run_sync('from elsewhere')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(root)])
    try:
        runs = wait_for(lambda: desk.http.get("/api/runs?status=running").json()["runs"])
        page = visit(f"/runs/{runs[0]['run_id']}")
        page.locator(".row.waiting").wait_for()
        assert page.locator(".question").count() == 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    page.locator("#title .chip", has_text="interrupted").wait_for()

    assert "was interrupted" in page.locator(".banner").inner_text()
    assert "unfinished" in page.locator(".row").last.get_attribute("aria-label")


def test_two_runs_are_chosen_and_compared(desk: Served, visit: Visit) -> None:
    for text in ("One", "Two"):
        desk.ended(desk.start(entry="shop", input=text))
    page = visit()
    for number in (0, 1):
        page.locator(".runs input").nth(number).check()
    page.get_by_role("link", name="Compare the two").click()

    page.get_by_text("request 1 of shop").wait_for()
    assert "input changed" in page.locator("#home").inner_text()
    again = visit(f"/compare?{urlsplit(page.url).query}&ref=mail")
    again.get_by_text("request 1 of shop").wait_for()


def test_a_conversation_is_continued_from_its_run(desk: Served, visit: Visit) -> None:
    run = desk.start(entry="shop", input="One", thread="chat-1")
    desk.ended(run)
    page = visit(f"/runs/{run}")
    page.get_by_placeholder("Continue chat-1").fill("And coffee?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(lambda url: run not in url)
    page.locator("#title .chip.completed").wait_for()

    assert "Coffee is 5.00." in page.locator("#detail").inner_text()


def test_a_wrong_key_shows_what_to_do_and_nothing_else(visit: Visit) -> None:
    page = visit("/", key="wrong")
    page.get_by_text("This page has no key").wait_for()

    assert "llm-do serve" in page.locator("#home").inner_text()
    assert page.locator(".runs").count() == 0


def test_an_entry_that_takes_fields_is_started_with_json(browser: Any, tmp_path: Path) -> None:
    root = write_desk(tmp_path / "desk")
    (root / "tools.py").write_text(
        "from llm_do import AgentArgs\n\n\nclass Pitch(AgentArgs):\n    company: str\n    stars: int = 3\n",
        encoding="utf-8",
    )
    (root / "clerk.agent").write_text(
        "---\nname: clerk\nmodel: script:shop.yaml\ninput_model_ref: tools.py:Pitch\n---\nJudge.\n", encoding="utf-8"
    )
    with serving([root]) as desk, visitors(browser, desk.url, KEY) as visit:
        page = visit()
        page.get_by_text('Takes JSON: {"company": string, "stars"?: integer}').wait_for()
        page.get_by_label("Input").fill("Acme")
        page.get_by_role("button", name="Start").click()
        page.get_by_text("The input isn't JSON").wait_for()
        page.get_by_label("Input").fill('{"company": "Acme"}')
        page.get_by_role("button", name="Start").click()
        page.locator("#title .chip.completed").wait_for()
        page.locator("#detail", has_text="Acme").wait_for()


def test_a_conversation_is_read_and_continued(desk: Served, visit: Visit) -> None:
    run = desk.start(input="To ann, please.", thread="talk <b>1</b>")
    page = visit("/threads")
    page.get_by_role("link", name="talk <b>1</b>").click()
    page.get_by_role("button", name="Allow").click()
    page.locator(".turn.agent", has_text="The letter: sent to ann.").wait_for()
    page.get_by_label("Input").fill("Another.")
    page.get_by_role("button", name="Send").click()
    page.locator("#home .chip.bad").wait_for()  # the script has no more answers

    assert page.locator("#title").inner_text().startswith("desk / talk <b>1</b>")
    assert page.locator(".turn.user a").first.get_attribute("href") == f"/runs/{run}"
    page.locator(".turn.user a").first.click()
    page.locator("#title .chip.completed").wait_for()
    page.get_by_role("link", name="Conversation").click()
    page.locator(".turn.agent", has_text="The letter: sent to ann.").wait_for()
    page.goto(f"{desk.url}/threads?thread=none")
    page.get_by_text("there is no conversation with this id").wait_for()


def test_a_conversation_is_continued_with_a_message(desk: Served, visit: Visit) -> None:
    desk.ended(desk.start(entry="shop", input="Tea?", thread="shopping"))
    page = visit("/threads?thread=shopping")
    page.get_by_label("Input").fill("Coffee?")
    page.get_by_role("button", name="Send").click()
    page.locator(".turn.agent", has_text="Coffee is 5.00.").wait_for()

    assert page.locator(".turn.user pre").all_inner_texts() == ["Tea?", "Coffee?"]


def test_a_conversation_of_another_user_is_read_only(desk: Served, visit: Visit) -> None:
    ann = httpx.Client(base_url=desk.url, headers={"Authorization": f"Bearer {ANN}"}, trust_env=False, timeout=30)
    run = ann.post("/api/runs", json={"entry": "shop", "input": "Tea?", "thread": "ann-1"}).json()["run_id"]
    ann.close()
    desk.ended(run)
    page = visit("/threads?thread=ann-1&user=ann&ref=mail")
    page.get_by_text("This is a conversation of ann").wait_for()

    assert page.get_by_role("button", name="Send").count() == 0
    page.goto(f"{desk.url}/runs/{run}")
    page.get_by_role("link", name="Conversation").wait_for()
    assert page.get_by_role("button", name="Send").count() == 0


def test_another_port_of_this_machine_cannot_write_with_the_cookie(browser: Any, desk: Served, tmp_path: Path) -> None:
    with serving([write_desk(tmp_path / "other")], keys={"another": None}) as other:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{desk.url}/#key={KEY}")
        page.locator("textarea").wait_for()
        page.goto(f"{other.url}/")
        before = len(desk.http.get("/api/runs").json()["runs"])
        answers = page.evaluate(
            """async (url) => {
                const found = [];
                for (const [mode, type] of [["no-cors", "text/plain"], ["cors", "application/json"]]) {
                    const options = {method: "POST", mode, body: "{}", headers: {"Content-Type": type}};
                    found.push({...options, credentials: "include"});
                }
                found.push({credentials: "include"});
                const tried = found.map((each) => fetch(`${url}/api/runs`, each).then((a) => a.type, () => "refused"));
                return Promise.all(tried);
            }""",
            desk.url,
        )
        context.close()
        assert len(desk.http.get("/api/runs").json()["runs"]) == before
    assert answers == ["refused", "refused", "refused"]  # its own policy refuses too
