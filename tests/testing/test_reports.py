"""Reports of test results: what JSON, JUnit's XML and Markdown say, whatever text models and authors have written."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from llm_do import UsageError
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.results import CaseResult, CaseStatus, Failure, SuiteResult
from llm_do.testing.reports.base_report import read_base
from llm_do.testing.reports.json_report import to_json
from llm_do.testing.reports.junit_report import to_junit
from llm_do.testing.reports.markdown_report import MOST, to_markdown
from llm_do.testing.reports.report_file import check_report_file, write_report

FILE = Path("tests/minutes.test.yaml")
NASTY = (
    "a | b\n| c | d |\n</details></code></pre><script>alert(1)</script>\n```\n~~~~\n````\n# Head\n> @octocat #1 :tada: "
    "[x](http://evil) ![x](y) $x$ \\| \\ **bold** `code` www.evil.example"
    " \x00\x1b[31m\x85\u202e\u2028\ud800\ud83d\ude00"
    "\ufffe\r\n---\n<!-- -->\n]]> &amp; &#124;"
)


def case(
    name: str = "writes",
    status: CaseStatus = "passed",
    *,
    column: str | None = None,
    failures: tuple[Failure, ...] = (),
    file: Path = FILE,
    tokens: int = 100,
    steps: int = 2,
    cost: str | None = "0.01",
    repeats: int = 1,
    output: str | None = None,
) -> CaseResult:
    return CaseResult(
        f"{file.as_posix()}::{name}",
        name,
        file,
        3,
        column,
        status,
        failures,
        repeats=repeats,
        passed_repeats=repeats if status == "passed" else 0,
        steps=steps,
        usage=Usage(1, 0, tokens, 0),
        cost=None if cost is None else Decimal(cost),
        seconds=0.5,
        output=output,
    )


def failed(name: str = "writes", *texts: str, column: str | None = None) -> CaseResult:
    failures = tuple(Failure(FILE, 7, text, text, text, text, text) for text in texts or ("the output differs",))
    return case(name, "failed", failures=failures, column=column, output=texts[0] if texts else None)


# -- JUnit


def test_junit_has_a_suite_for_each_file_and_column_and_counts() -> None:
    other = Path("tests/other.test.yaml")
    cases = [case("one", column="small"), failed("one", column="strict"), case("two", "skipped", file=other)]

    top = ElementTree.fromstring(to_junit(SuiteResult(tuple(cases), ("small", "strict"), 2.0), Path("demo")))

    assert {name: top.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
        "time": "2.000",
    }
    assert [group.get("name") for group in top] == [
        "demo/tests/minutes.test.yaml [small]",
        "demo/tests/minutes.test.yaml [strict]",
        "demo/tests/other.test.yaml",
    ]
    test = top[1][0]
    assert (test.get("classname"), test.get("name")) == ("demo.tests.minutes", "[strict] one")
    assert (test.get("file"), test.get("line")) == ("demo/tests/minutes.test.yaml", "3")
    assert test[0].tag == "failure"
    assert (test[0].text or "").startswith("demo/tests/minutes.test.yaml:7: the output differs")


def test_a_junit_failure_says_all_of_it_and_an_error_is_told_apart() -> None:
    failures = (
        Failure(FILE, 7, "the output differs", "yes", "no", "-yes\n+no", "Look there."),
        Failure(None, None, "a model's request failed"),
    )
    suite = SuiteResult((case("x", "failed", failures=failures, output="no"), case("y", "error", failures=failures)))

    fault, output = ElementTree.fromstring(to_junit(suite))[0][0]
    error = ElementTree.fromstring(to_junit(suite))[0][1][0]

    assert fault.get("message") == "the output differs (and 1 more)"
    assert fault.text == (
        "tests/minutes.test.yaml:7: the output differs\n  expected: yes\n  got:      no\n  -yes\n  +no\n  Look there.\n"
        "a model's request failed"
    )
    assert (output.tag, output.text) == ("system-out", "no")
    assert error.tag == "error"


def check_junit(text: str) -> None:
    suite = SuiteResult((failed(text, text),), (), 0.0)
    xml = to_junit(suite)
    assert xml.encode("utf-8")
    (test,) = ElementTree.fromstring(xml)[0]
    assert not set(test.get("name", "")) & set("\n\r\t\x1b\u202e")


@pytest.mark.parametrize("text", [NASTY, "", " ", "👩‍👩‍👧 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\ud83d\ude00", "a" * 5000])
def test_junit_is_xml_whatever_a_model_wrote(text: str) -> None:
    check_junit(text)


@given(st.text(st.characters()))
def test_junit_is_xml_for_any_text(text: str) -> None:
    check_junit(text)


def test_junit_keeps_emoji_and_shows_what_it_cannot_hold() -> None:
    xml = to_junit(SuiteResult((failed("x", "👍 \x1b[31m \ud800 \u202e tab\t end\r"),)))

    assert "👍 \\x1b[31m \\ud800 \\u202e tab\t end\\r" in (ElementTree.fromstring(xml)[0][0][0].text or "")


# -- Markdown


class Structure(HTMLParser):
    """The elements of rendered Markdown, and the text that isn't code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.balanced = True
        self.cells: list[str] = []
        self.loose = ""
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in ("br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += data
        if "code" not in self.open:
            self.loose += data


def check_markdown(text: str, columns: tuple[str, ...] = ()) -> None:
    suite = SuiteResult(tuple(failed(text, text, column=column) for column in columns or (None,)), columns, 0.0)
    structure = Structure(to_markdown(suite))
    assert structure.balanced
    assert not structure.open
    count = len(suite.cases)
    assert structure.tags.count("table") == 1
    assert structure.tags.count("tr") == 2
    assert structure.tags.count("td") == (len(columns) + 1 if columns else 6)
    assert structure.tags.count("details") == structure.tags.count("summary") == structure.tags.count("pre") == count
    assert set(structure.tags) <= {
        *("h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "pre")
    }


@pytest.mark.parametrize("text", [NASTY, "`", "```", "\\", "|", "\\|", "</summary>", "\n\n</details>\n\n# x", "~" * 9])
def test_nothing_a_model_wrote_breaks_out_of_the_table_or_the_details(text: str) -> None:
    check_markdown(text)
    check_markdown(text, (text, "strict"))


@given(st.text(st.sampled_from(sorted(set(NASTY))), max_size=40))
def test_no_text_breaks_out_of_the_table_or_the_details(text: str) -> None:
    check_markdown(text)
    check_markdown(text, (text, "strict"))


def test_names_mention_no_one_and_link_nowhere() -> None:
    structure = Structure(to_markdown(SuiteResult((failed("@octocat #1 http://evil :tada:", "@octocat #1"),))))

    assert "octocat" not in structure.loose
    assert "#1" not in structure.loose
    assert "http" not in structure.loose


def test_the_table_has_a_row_for_each_test() -> None:
    suite = SuiteResult((case("writes"), failed("asks"), case("rests", "skipped", cost=None)), (), 1.5)

    text = to_markdown(suite, folder=Path("demo"))

    assert text.startswith(
        "### ❌ llm-do test: 1 passed, 1 failed, 1 skipped\n\n1.5 s · 300 tokens · $0.0200 where prices are known\n\n"
        "| Test | Result | Passed | Steps | Tokens | Cost |\n"
        "| --- | --- | --: | --: | --: | --: |\n"
        "| <code>writes</code> | ✅ passed | 1/1 | 2 | 100 | $0.0100 |\n"
        "| <code>asks</code> | ❌ failed | 0/1 | 2 | 100 | $0.0100 |\n"
        "| <code>rests</code> | ⚪ skipped |  | 2 | 100 |  |\n"
        "\n<details>\n<summary>❌ <code>asks</code> (<code>demo&#47;tests&#47;minutes&#46;test&#46;yaml&#58;3</code>)"
        "</summary>\n\n```text\ndemo/tests/minutes.test.yaml:7: the output differs\n"
    )


def test_with_a_matrix_the_table_has_a_cell_for_each_column() -> None:
    cases = (case("writes", column="small", repeats=3, steps=6), failed("writes", column="strict"))

    text = to_markdown(SuiteResult((*cases, case("asks", column="small")), ("small", "strict"), 1.5))

    assert (
        "| Test | <code>small</code> | <code>strict</code> |\n"
        "| --- | --- | --- |\n"
        "| <code>writes</code> | ✅ 3/3 · 6 steps · 100 tokens · $0.0100 | ❌ 0/1 · 2 steps · 100 tokens · $0.0100 |\n"
        "| <code>asks</code> | ✅ 1/1 · 2 steps · 100 tokens · $0.0100 |  |\n"
    ) in text
    assert "<summary>❌ <code>writes</code> in <code>strict</code> (" in text


def test_a_base_says_what_has_changed(tmp_path: Path) -> None:
    before = (case("same"), failed("mended"), case("dearer"), case("gone"), case("rarely", repeats=4))
    write_report(tmp_path / "base.json", to_json(SuiteResult(before)))
    now = (
        case("same"),
        case("mended"),
        case("dearer", tokens=150, steps=1, cost="0.02"),
        case("rarely", repeats=2, tokens=50, steps=1, cost="0.005"),
        case("new"),
    )

    text = to_markdown(SuiteResult(now), read_base(tmp_path / "base.json"))

    changes = {
        row.split("|")[1].strip()[6:-7]: row.split("|")[7].strip()
        for row in text.splitlines()
        if "<code>" in row and row.startswith("|")
    }
    assert changes == {
        "same": "",
        "mended": "failed before",
        "dearer": "steps -50%, tokens +50%, cost +100%",
        "rarely": "",
        "new": "new",
    }
    assert "\nNo longer there: <code>gone</code>\n" in text


def test_a_large_report_fits_into_a_comment_and_shows_failures_first() -> None:
    text = "x" * 200
    cases = [*(case(f"p{i} {text}") for i in range(300)), *(failed(f"f{i}", "y" * 9000) for i in range(30))]
    random.Random(1).shuffle(cases)

    report = to_markdown(SuiteResult(tuple(cases)))

    assert len(report) < MOST + 1000
    assert all(f"<code>f{i}</code> | ❌" in report for i in range(30))
    assert "more tests didn't fit in here." in report
    assert "more failures didn't fit in here." in report
    structure = Structure(report)
    assert structure.balanced
    assert not structure.open


# -- JSON and files


def test_json_has_a_version_and_every_result(tmp_path: Path) -> None:
    suite = SuiteResult((case("writes", column="small"), failed("asks", "\ud800x", column="small")), ("small",), 1.5)

    data = json.loads(to_json(suite).encode())

    assert (data["report"], data["columns"], data["seconds"]) == (1, ["small"], 1.5)
    assert [each["status"] for each in data["cases"]] == ["passed", "failed"]
    assert SuiteResult.from_dict(data).cases[0] == suite.cases[0]


GOOD = json.loads(to_json(SuiteResult((case(),))))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no", "is not JSON"),
        ("", "is not JSON"),
        ("[]", "is not a report of llm-do test"),
        ("{}", "is not a report of llm-do test"),
        (json.dumps(GOOD | {"report": 2}), "is a report of version 2, and this llm-do reads version 1"),
        (json.dumps(GOOD | {"cases": [{}]}), "is damaged: 'id' is missing"),
        (json.dumps(GOOD | {"cases": None}), "is damaged"),
        (json.dumps(GOOD | {"cases": [GOOD["cases"][0] | {"steps": "many"}]}), 'is damaged: "many" where a number'),
        (json.dumps(GOOD | {"cases": [GOOD["cases"][0] | {"steps": float("nan")}]}), "is damaged: NaN where a number"),
        (json.dumps(GOOD | {"cases": [GOOD["cases"][0] | {"status": "odd"}]}), 'is damaged: a status "odd"'),
        ("[" * 100_000, "can't be read"),
    ],
)
def test_a_base_that_is_no_report_is_a_usage_error(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "base.json").write_text(text)

    with pytest.raises(UsageError, match=r"base\.json") as caught:
        read_base(tmp_path / "base.json")

    assert problem in caught.value.message
    assert "--format json" in (caught.value.hint or "")


def test_a_base_may_have_fields_of_later_versions(tmp_path: Path) -> None:
    later = GOOD | {"more": 1, "cases": [GOOD["cases"][0] | {"more": 1}]}
    (tmp_path / "base.json").write_text(json.dumps(later))

    assert "Change" in to_markdown(SuiteResult((case(),)), read_base(tmp_path / "base.json"))


def test_a_base_that_does_not_exist_or_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no report"):
        read_base(tmp_path / "base.json")
    (tmp_path / "base.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="can't be read"):
        read_base(tmp_path / "base.json")
    with pytest.raises(UsageError, match="can't be read"):
        read_base(tmp_path)


def test_where_a_report_cannot_go_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*missing"):
        check_report_file(tmp_path / "missing" / "report.xml")
    with pytest.raises(UsageError, match="it is a folder"):
        check_report_file(tmp_path)
    check_report_file(tmp_path / "report.xml")
    assert not list(tmp_path.iterdir())


def test_a_report_replaces_the_one_before(tmp_path: Path) -> None:
    write_report(tmp_path / "report.xml", "old and longer")
    write_report(tmp_path / "report.xml", "new \ud800")

    assert (tmp_path / "report.xml").read_text() == "new \\ud800"
    assert [path.name for path in tmp_path.iterdir()] == ["report.xml"]
