"""A run as data for the page: complete, linear, and unable to end the script element that it stands in."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

import llm_do.web
from llm_do.runtime.record.events.event import EVENT_TYPES
from llm_do.web.page_file import FILE_SCRIPTS, SERVER_SCRIPTS, page_file, page_text
from llm_do.web.run_document import document_text
from tests.support.runs import agent
from tests.support.scripted import call, script
from tests.web.page_support import document_of, event, letters_document, run_to_document

HOSTILE = [
    "</script><script>alert(1)</script>", "<!--<script>", "\u2028alert(1)\u2029", "\ud800 half", "]]>", "&lt;", "\x00",
    "<!--script-->", "<!--style-->", "\\u003c", "'\"`${1}", "\r\n\x0b\x85", "</SCRIPT ", "<img src=x onerror=alert(1)>",
]  # fmt: skip


class _Elements(html.parser.HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.texts.append(data)


def elements(page: str) -> _Elements:
    found = _Elements()
    found.feed(page)
    return found


def test_hostile_texts_add_no_element_and_are_read_back() -> None:
    document = document_of([event(0, "run_started", 1.0, "r", entry="main", input={"input": text}) for text in HOSTILE])
    found = elements(page_file(document))

    assert found.tags == elements(page_file(document_of([]))).tags
    assert json.loads(found.texts[0]) == document
    assert page_file(document).isascii() or page_file(document).encode("utf-8")


@given(st.recursive(st.text() | st.floats() | st.integers() | st.none() | st.booleans(), st.lists, max_leaves=8))
def test_any_data_is_text_without_markup_that_reads_back(data: Any) -> None:
    text = document_text(data)

    assert not set("<>&\u2028\u2029") & set(text)
    text.encode("utf-8")
    json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))


def test_numbers_that_a_browser_would_round_are_kept_as_text() -> None:
    assert document_text([2**53, 2**53 + 1, float("inf"), 1.5]) == (
        '[9007199254740992,{"$number":"9007199254740993"},{"$number":"inf"},1.5]'
    )


def test_a_message_that_many_requests_have_is_in_the_document_once() -> None:
    def look(place: int) -> str:
        """Look."""
        return f"room {place}"

    turns = [call("look", place=number) for number in range(8)]
    document = run_to_document([agent("main", script(*turns, "done"), tools=[look])], "go")

    assert len(document["requests"]) == 9
    assert len(document["messages"]) == 17  # a prompt; eight answers with a result each
    assert len(document["setups"]) == 1
    lengths = []
    for request in document["requests"]:
        at, length = request["last_message"], 0
        while at >= 0:
            at, length = document["messages"][at][0], length + 1
        lengths.append(length)
    assert lengths == list(range(1, 18, 2))
    assert "new" not in document["requests"][0]


def test_the_document_has_events_requests_and_decisions_of_the_record() -> None:
    document = letters_document()

    assert document["run"]["status"] == "completed"
    assert [request["path"] for request in document["requests"]] == ["lead", "lead", "lead/helper", "lead", "lead"]
    sent = next(each for each in document["events"] if each["type"] == "tool_result" and each["tool_name"] == "send")
    assert sent["decision"]["source"] == "person"


def test_the_page_is_small_and_names_no_other_host() -> None:
    file, server = ("page.html", "page.css", *FILE_SCRIPTS), ("server.css", *SERVER_SCRIPTS[len(FILE_SCRIPTS) :])
    names = (*file, *server)

    assert sum(len(page_text(name).encode()) for name in file) < 60_000
    assert sum(len(page_text(name).encode()) for name in server) < 29_000
    assert not [name for name in names if "http://" in page_text(name).replace("http://www.w3.org/2000/svg", "")]
    assert not [name for name in names if "https://" in page_text(name)]
    for mark in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function"):
        assert not [name for name in SERVER_SCRIPTS if mark in page_text(name)]


def test_the_policy_allows_the_pages_own_script_and_style_only() -> None:
    page = page_file(document_of([]))
    policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0]

    directives = dict(each.split(" ", 1) for each in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"].startswith("'sha256-")
    assert directives["style-src"].startswith("'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in directives


def test_the_page_has_a_place_for_every_type_of_event() -> None:
    script = (Path(llm_do.web.__file__).parent / "page" / "run.js").read_text(encoding="utf-8")
    repeated = {"text"}  # `text_done` has it in full

    missing = [kind for kind in EVENT_TYPES if f"\n  on_{kind}(" not in script and kind not in repeated]
    assert missing == [], "llm_do/web/page/run.js needs a method `on_TYPE` that adds it to a row, or makes one"
