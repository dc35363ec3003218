"""The page of a run in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do.web.page_file import page_file
from tests.web.page_support import chromium, document_of, event, letters_document, long_document, work_of

pytestmark = pytest.mark.slow

Open = Callable[..., Any]

MARKUP = [
    "</script><script>window.ran=1</script>",
    "<img src=x onerror='window.ran=1'>",
    "<svg onload=window.ran=1>",
    "<!--<script>",
    "javascript:window.ran=1",
    "<iframe srcdoc='<script>parent.ran=1</script>'>",
    "{{7*7}}",
    "${window.ran=1}",
    "\x1b[31mred\x1b[0m",
    "\u202etxt.exe",
    "\u2066isolated\u2069",
    "\ud800half",
    "\u2028\u2029",
    "\x00\x07",
    "<style>*{display:none}</style>",
    "&#60;b&#62;",
    "a" * 5_000_000,
    "\u0301" * 300,
    "\U0001f468\u200d\U0001f469",
    "<base href=//evil>",
]
SHORT = [text[:5000] for text in MARKUP]
HOSTILE = [f"{number}: {text}" for number in range(5) for text in (SHORT if number else MARKUP)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Show a document; whatever goes wrong in the page, or leaves it, fails the test."""
    faults: list[str] = []
    pages: list[Any] = []

    def open_page(document: dict[str, Any], place: str = "", **options: Any) -> Any:
        file = tmp_path / "run.html"
        file.write_text(page_file(document), encoding="utf-8")
        page = browser.new_page(**{"viewport": {"width": 1280, "height": 800}, **options})
        pages.append(page)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on(
            "request", lambda sent: faults.append(sent.url) if not sent.url.startswith(("file:", "data:")) else None
        )
        page.goto(f"file://{file}{place}")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


def names(page: Any) -> list[str]:
    return [row.inner_text() for row in page.locator(".row .name").all()]


def pick(page: Any, name: str) -> None:
    page.locator(".row", has=page.locator(f".name:text-is('{name}')")).first.click()


def selected(page: Any) -> str:
    return page.locator(".row.selected").get_attribute("aria-label")


def test_a_run_is_a_tree_in_which_a_nested_call_is_one_row(show: Open) -> None:
    page = show(letters_document())

    assert names(page) == [
        "lead", "request 1", "look", "look", "request 2", "helper", "request 1", "request 3", "send", "request 4",
    ]  # fmt: skip
    assert page.locator(".row.bad .name").all_inner_texts() == ["look"]
    assert page.locator(".row .wait").count() == 1
    assert "lead" in page.title()
    assert "completed" in page.title()


def test_a_request_shows_first_what_is_new_in_it_then_the_answer_then_all(show: Open) -> None:
    page = show(letters_document())
    pick(page, "request 2")
    detail = page.locator("#detail")
    titles = detail.locator("h3").all_inner_texts()

    assert [title.lower() for title in titles] == ["new since request 1", "answer"]
    assert "the cellar is locked" in detail.locator(".part").first.inner_text()
    assert "You write letters." not in detail.inner_text()
    detail.get_by_text("All that was sent").click()
    assert "You write letters." in detail.inner_text()


def test_a_call_shows_its_arguments_its_decision_and_why(show: Open) -> None:
    page = show(letters_document())
    pick(page, "send")
    text = page.locator("#detail").inner_text().lower()

    assert page.locator("#detail dl.fields dt").all_inner_texts() == ["to", "text"]
    assert "allowed by a person after" in text
    assert "needs approval by default" in text


def test_hostile_texts_are_shown_and_never_run(show: Open) -> None:
    events = [event(0, "call_started", 1.0, input={"input": HOSTILE[0]}, label=HOSTILE[1])]
    for number, text in enumerate(HOSTILE):
        named = {"tool_name": text[:5000], "tool_call_id": f"t{number}"}
        events.append(event(2 * number + 1, "tool_call", 1.0, **named, args={text[:5000]: text}))
        short = text[:5000]
        error = {"type": short, "message": text, "hint": short, "file": short}
        ended = {"status": "failed", "result": short, "duration": 0, "size": 1, "waited": 0, "error": error}
        events.append(event(2 * number + 2, "tool_result", 1.0, **named, **ended))
    page = show(document_of(events))
    assert page.locator(".row").count() >= 20
    for number in range(len(HOSTILE)):
        page.keyboard.press("ArrowDown")
        if number < len(MARKUP):
            shown = page.locator("#detail").inner_text()
            page.keyboard.press("r")
            shown += page.locator("#detail").inner_text()
            page.keyboard.press("r")
            assert not {"\u202e", "\x1b", "\u2066", "\u2028", "\x07"} & set(shown)

    assert page.evaluate("window.ran") is None
    assert page.locator("iframe, img, svg, base, #detail style").count() == 0
    page.goto(page.url.partition("#")[0] + "#e23")
    page.reload()
    assert "\\u202e" in page.locator("#detail").inner_text() or page.locator(".spelled").count()


def test_ten_thousand_events_open_in_a_second_and_only_rows_in_view_are_made(show: Open) -> None:
    page = show(long_document(10_000))
    page.locator(".row").first.wait_for()
    work = work_of(page)

    # The processor time of the page's thread: the time on the wall is that of other processes, too.
    opened = work()
    assert opened < 1, f"{opened} s of work to open it"
    assert page.locator(".row").count() < 100
    page.keyboard.press("End")
    assert "room 9996" in page.locator(".row.selected").inner_text()
    before = work()
    page.evaluate(
        """async () => {
            const box = document.getElementById("scroll");
            for (let at = 0; at < 60; at++) {
                box.scrollTop = at * 700;
                await new Promise(requestAnimationFrame);
            }
        }"""
    )
    frame = (work() - before) / 60
    assert frame < 0.016, f"{frame} s of work for a frame"
    page.keyboard.press("/")
    page.keyboard.type("room 77 ")
    page.keyboard.press("Backspace")
    assert page.locator("#found").inner_text().endswith("found")


def test_the_keyboard_moves_opens_finds_and_shows_raw_data(show: Open) -> None:
    page = show(letters_document())
    press = page.keyboard.press
    press("ArrowDown")
    assert selected(page).startswith("call, lead")
    press("ArrowLeft")
    assert names(page) == ["lead"]
    press("ArrowRight")
    press("ArrowRight")
    assert selected(page).startswith("model request, request 1")
    press("End")
    assert selected(page).startswith("model request, request 4")
    press("n")
    assert "failed" in selected(page)
    press("r")
    assert '"tool_call_id"' in page.locator("#detail").inner_text()
    press("r")
    press("/")
    page.keyboard.type("helper looked")
    assert page.locator("#found").inner_text() == "2 found"
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "tree"
    press("Escape")
    assert page.locator("#find").input_value() == ""
    press("?")
    assert page.locator("#help").is_visible()
    press("Escape")
    assert not page.locator("#help").is_visible()


def test_a_row_has_an_address_that_a_reload_keeps(show: Open) -> None:
    page = show(letters_document())
    pick(page, "helper")
    place = page.url.partition("#")[2]
    page.reload()

    assert place.startswith("e")
    assert page.url.endswith(f"#{place}")
    assert selected(page).startswith("call, helper")
    assert page.locator("#detail a[href]").first.get_attribute("href") == f"#{place}"


def test_the_tree_is_accessible(show: Open) -> None:
    page = show(letters_document())
    page.keyboard.press("ArrowDown")
    tree = page.get_by_role("tree")
    rows = page.get_by_role("treeitem")

    assert tree.get_attribute("aria-activedescendant") == page.locator(".row.selected").get_attribute("id")
    assert rows.first.get_attribute("aria-expanded") == "true"
    assert {row.get_attribute("aria-level") for row in rows.all()} == {"1", "2", "3"}
    assert rows.nth(1).get_attribute("aria-setsize") == "8"


CONTRAST = """() => {
    const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    const light = (rgb) => rgb.match(/[0-9.]+/g).slice(0, 3).map(Number).map(channel)
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
    const bad = [];
    for (const e of document.querySelectorAll("body *")) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
        const [one, two] = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
        const contrast = (one + 0.05) / (two + 0.05);
        if (contrast < 4.5) bad.push([e.className, e.textContent.slice(0, 30), contrast]);
    }
    return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(scheme: str, show: Open) -> None:
    page = show(letters_document(), color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert page.evaluate(CONTRAST) == []
    page.keyboard.press("n")
    assert page.evaluate(CONTRAST) == []
    assert (paper == "rgb(18, 19, 22)") == (scheme == "dark")


def test_printing_shows_all_rows_on_white(show: Open) -> None:
    page = show(long_document(400), color_scheme="dark")
    few = page.locator(".row").count()
    page.emulate_media(media="print")
    page.wait_for_function("document.querySelectorAll('.row').length > 190")

    assert few < 60
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(250, 249, 247)"
    assert page.pdf()[:4] == b"%PDF"


def test_on_a_phone_the_rows_come_first_and_details_cover_them(show: Open) -> None:
    page = show(letters_document(), viewport={"width": 390, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not page.locator("#detail").is_visible()
    pick(page, "send")
    assert page.locator("#detail").is_visible()
    page.get_by_role("button", name="Rows").click()
    assert not page.locator("#detail").is_visible()
    page.get_by_role("button", name="Summary").click()
    assert "Write to ann." in page.locator("#detail").inner_text()


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("suspended", "The run waits for a person"),
        ("stopped", "llm-do resume"),
        ("running", "in progress"),
        ("interrupted", "was interrupted"),
    ],
)
def test_a_run_without_an_end_says_what_became_of_it(status: str, says: str, show: Open) -> None:
    events = [event(0, "run_started", 1000.0, "r", entry="main", input={"input": "go"})]
    events.append(event(1, "call_started", 1000.0, input={"input": "go"}, label=""))
    events.append(event(2, "tool_call", 1001.0, tool_name="pay", tool_call_id="t", args={"amount": 7}))
    page = show(document_of(events, status))

    assert says in page.locator(".banner").inner_text()
    assert page.locator(".banner a").inner_text() == "pay"
    state = {"running": "running", "interrupted": "unfinished"}.get(status, "unfinished")
    assert state in page.locator(".row").last.get_attribute("aria-label")


def test_the_files_that_a_run_changed_are_listed_with_what_can_be_restored(show: Open) -> None:
    files = [{"path": f"new/{number}.md", "change": "created", "can_undo": True, "note": ""} for number in range(250)]
    files[1] = {"path": MARKUP[0] + MARKUP[9], "change": "changed", "can_undo": False, "note": MARKUP[1]}
    page = show({**document_of([event(0, "run_started", 1000.0, "r", entry="main", input={})]), "files": files})
    listed = page.locator("section.part", has=page.locator("h3:text-is('Files changed')"))

    assert listed.locator("dt").all_inner_texts() == ["created", "changed", *["created"] * 198, "and"]
    shown = listed.locator("dd").all_inner_texts()
    assert (shown[0], shown[-1]) == ("new/0.md", "50 more")
    assert shown[1] == f"{MARKUP[0]}\\u202etxt.exe {MARKUP[1]}"
    assert listed.locator("p").inner_text() == "llm-do undo r can restore 249 of 250"
    assert page.evaluate("window.ran") is None
    assert show(document_of([])).locator("h3:text-is('Files changed')").count() == 0


def test_a_run_without_events_says_so(show: Open) -> None:
    assert "Nothing is recorded" in show(document_of([])).locator("#detail").inner_text()


def test_the_time_that_a_durable_run_was_stopped_takes_little_room(show: Open) -> None:
    events = [event(0, "run_started", 1000.0, "r", entry="main", input={"input": "go"})]
    events.append(event(1, "call_started", 1000.0, input={"input": "go"}, label=""))
    events.append(event(2, "tool_call", 1001.0, tool_name="pay", tool_call_id="t", args={"amount": 7}))
    events.append(event(3, "run_resumed", 90_000.0, "r", attempt=2, steps=1))
    ended = {"status": "success", "result": "paid", "duration": 1, "size": 4, "waited": 0}
    events.append(event(4, "tool_result", 90_001.0, tool_name="pay", tool_call_id="t", **ended))
    events.append(event(5, "run_finished", 90_001.0, "r", status="completed", output="paid"))
    page = show(document_of(events))

    assert names(page) == ["main", "pay", "resumed"]
    assert "stopped for 1 d 1 h" in page.locator(".row.note").get_attribute("aria-label").replace("had ", "")
    assert page.locator(".pause").first.bounding_box()["width"] < 20
    assert "2.00 s" in page.locator("#title").inner_text()


def test_a_retry_is_named_and_its_delay_drawn(show: Open) -> None:
    request = {"model": "m", "request": 1, "purpose": "step"}
    used = {"requests": 1, "input_tokens": 5, "output_tokens": 1, "total_tokens": 6, "cost_usd": 0.01}
    page = show(
        document_of(
            [
                event(0, "call_started", 1000.0, input={"input": "go"}, label=""),
                event(1, "model_request", 1000.0, **request, attempt=1),
                event(2, "usage", 1000.5, usage={**used, "cost_usd": None}, **request, attempt=1),
                event(3, "retry", 1000.5, attempt=1, delay=1.0, error="the provider is busy (429)", model=None),
                event(4, "model_request", 1001.5, **request, attempt=2),
                event(5, "usage", 1002.0, usage=used, **request, attempt=2),
                event(6, "run_finished", 1002.0, "r", status="completed", output="done"),
            ]
        )
    )

    assert names(page) == ["main", "request 1", "request 1, attempt 2"]
    assert "the provider is busy (429)" in page.locator(".row").nth(1).inner_text()
    assert page.locator(".delay").count() == 1
    assert "$0.0100" in page.locator("#title").inner_text()


def test_what_a_guard_replaced_is_a_row_with_what_the_agent_got_instead(show: Open) -> None:
    guarded = {"guard": "without_cards", "side": "input", "replacement": {"input": "pay with ****"}}
    page = show(
        document_of(
            [
                event(0, "call_started", 1000.0, input={"input": "pay with 4111"}, label=""),
                event(1, "guard", 1000.5, **guarded),
                event(2, "run_finished", 1001.0, "r", status="completed", output="paid"),
            ]
        )
    )

    assert names(page) == ["main", "without_cards replaced the input"]
    pick(page, "without_cards replaced the input")
    assert "pay with ****" in page.locator("#detail").inner_text()
