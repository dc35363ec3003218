"""The report as Markdown, for a comment on a pull request.

Text of models, tools and test files is data here: nothing in it can end a table's cell or a folded block, mention
someone, or become a link. What is too long for a comment is left out, and the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from llm_do.testing.cases.results import CaseResult, CaseStatus, SuiteResult
from llm_do.testing.reports.base_report import Base, describe_change
from llm_do.testing.reports.written_text import describe_failure, place, shorten, writable
from llm_do.text.words import with_count

__all__ = ["MOST", "to_markdown"]

MOST = 60_000
"""The most characters of a report: a comment on GitHub may have 65,536."""

_MOST_TABLE = 40_000
_MOST_FAILURE = 4_000
_MOST_NAME = 200
_MARKS: dict[CaseStatus, str] = {"passed": "✅", "failed": "❌", "error": "💥", "skipped": "⚪"}
_WORDS: dict[CaseStatus, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "with errors",
    "skipped": "skipped",
}
_PUNCTUATION = re.compile(r"[!-'*+./:-@\[-`{-~]")


def to_markdown(suite: SuiteResult, base: Base | None = None, folder: Path = Path()) -> str:
    """The report's text: a table of tests by column, and the failures, folded.

    Args:
        suite: The results.
        base: Earlier results to compare with.
        folder: The project's folder, seen from the folder that the paths in the report are relative to.
    """
    table = _table_by_column(suite, base) if suite.columns else _table(suite, base)
    parts = [f"### {_headline(suite)}", _totals(suite), *table]
    if base is not None and (gone := _gone(suite, base)):
        parts.append(gone)
    text = "\n\n".join(parts) + "\n"
    failed = [case for case in suite.cases if not case.ok]
    for at, case in enumerate(failed):
        block = f"\n{_folded(case, folder)}\n"
        if len(text) + len(block) > MOST:
            return f"{text}\n{with_count(len(failed) - at, 'more failure')} didn't fit in here.\n"
        text += block
    return text


def _headline(suite: SuiteResult) -> str:
    words = [f"{count} {_WORDS[status]}" for status in get_args(CaseStatus) if (count := suite.count(status))]
    return f"{'✅' if suite.ok else '❌'} llm-do test: {', '.join(words) or 'no tests'}"


def _totals(suite: SuiteResult) -> str:
    tokens = sum(case.usage.total_tokens for case in suite.cases)
    costs = [case.cost for case in suite.cases if case.cost is not None]
    words = [f"{suite.seconds:.1f} s", with_count(tokens, "token")]
    if costs:
        words.append(
            _dollars(float(sum(costs))) + ("" if len(costs) == len(suite.cases) else " where prices are known")
        )
    return " · ".join(words)


def _table(suite: SuiteResult, base: Base | None) -> list[str]:
    """A row for each test, a column for each measure."""
    heads = ["Test", "Result", "Passed", "Steps", "Tokens", "Cost"] + (["Change"] if base is not None else [])
    rows = [
        [
            _name(case, suite),
            f"{_MARKS[case.status]} {case.status}",
            _rate(case),
            f"{case.steps:,}",
            f"{case.usage.total_tokens:,}",
            _cost(case),
            *([describe_change(case, base)] if base is not None else []),
        ]
        for case in suite.cases
    ]
    return _rows(heads, ["---", "---", "--:", "--:", "--:", "--:", "---"][: len(heads)], rows, suite.cases)


def _table_by_column(suite: SuiteResult, base: Base | None) -> list[str]:
    """A row for each test, a column for each column of the matrix."""
    by_test: dict[str, dict[str | None, CaseResult]] = {}
    for case in suite.cases:
        by_test.setdefault(case.id, {})[case.column] = case
    heads = ["Test", *(_code(column) for column in suite.columns)]
    rows: list[list[str]] = []
    worst: list[CaseResult] = []
    for cells in by_test.values():
        cases = list(cells.values())
        worst.append(next((case for case in cases if not case.ok), cases[0]))
        rows.append([_name(cases[0], suite), *(_cell(cells.get(column), base) for column in suite.columns)])
    return _rows(heads, ["---"] * len(heads), rows, worst)


def _cell(case: CaseResult | None, base: Base | None) -> str:
    if case is None:
        return ""
    steps = with_count(case.steps, "step")
    words = [f"{_MARKS[case.status]} {_rate(case)}".rstrip(), steps, f"{case.usage.total_tokens:,} tokens", _cost(case)]
    text = " · ".join(filter(None, words))
    change = describe_change(case, base) if base is not None else ""
    return f"{text}<br>{change}" if change else text


def _rows(heads: list[str], rules: list[str], rows: list[list[str]], cases: Sequence[CaseResult]) -> list[str]:
    """The table; where it would be too long, tests that passed are left out first, then the last ones."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    kept = set(range(len(lines)))
    size = sum(map(len, lines))
    for at in sorted(kept, key=lambda at: (not cases[at].ok, -at)):
        if size <= _MOST_TABLE:
            break
        size -= len(lines[at])
        kept.discard(at)
    table = [f"| {' | '.join(heads)} |", f"| {' | '.join(rules)} |", *(lines[at] for at in sorted(kept))]
    left_out = len(lines) - len(kept)
    return ["\n".join(table)] + ([f"{with_count(left_out, 'more test')} didn't fit in here."] if left_out else [])


def _name(case: CaseResult, suite: SuiteResult) -> str:
    """A test's name, with its file if there are several."""
    one_file = all(each.file == case.file for each in suite.cases)
    stem = case.file.name.removesuffix(".test.yaml")
    return _code(case.name if one_file else f"{stem}: {case.name}")


def _code(text: str) -> str:
    """A text in one line of a table or of HTML, as code, so that it is no mention and no link.

    Example:
        >>> _code("a | b")
        '<code>a &#124; b</code>'
    """
    text = shorten(writable(text, lines=False), _MOST_NAME)
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', text)}</code>"


def _rate(case: CaseResult) -> str:
    return "" if case.status == "skipped" else f"{case.passed_repeats}/{case.repeats}"


def _cost(case: CaseResult) -> str:
    return "" if case.cost is None else _dollars(float(case.cost))


def _dollars(amount: float) -> str:
    return f"${amount:.4f}" if amount else "$0"


def _gone(suite: SuiteResult, base: Base) -> str:
    """The tests that only the base has."""
    here = {(case.id, case.column) for case in suite.cases}
    columns = {case.column for case in suite.cases}
    names = [case.name for (id, column), case in base.cases.items() if (id, column) not in here and column in columns]
    if not names:
        return ""
    shown = ", ".join(_code(name) for name in names[:10])
    return f"No longer there: {shown}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _folded(case: CaseResult, folder: Path) -> str:
    """The failures of a case in a block that a click opens."""
    column = f" in {_code(case.column)}" if case.column is not None else ""
    where = _code(place(case.file, case.line, folder))
    head = f"<details>\n<summary>{_MARKS[case.status]} {_code(case.name)}{column} ({where})</summary>"
    failures = "\n".join(describe_failure(failure, folder) for failure in case.failures)
    text = shorten(failures, _MOST_FAILURE)
    fence = "`" * (max([2, *(len(run) for run in re.findall("`+", text))]) + 1)
    return f"{head}\n\n{fence}text\n{text}\n{fence}\n\n</details>"
