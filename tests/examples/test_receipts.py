"""The receipts example: its Python with scripted answers, and the local model against the expected ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import Project, Runtime
from llm_do.models.builtin import weights

EXPECTED = json.loads((Path(__file__).parent / "receipts_expected.json").read_text(encoding="utf-8"))
AT_LEAST = 10

Load = Callable[[str], Project]


def answering(answers: dict[str, dict[str, str]]) -> FunctionModel:
    """A model that answers for the receipt whose text holds the key."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        text = str(messages[0].parts[-1].content)  # pyright: ignore[reportAttributeAccessIssue]
        given = next(answer for key, answer in answers.items() if key in text)
        return ModelResponse([ToolCallPart(info.output_tools[0].name, given)])

    return FunctionModel(answer)


def report_of(project: Project, texts: dict[str, str], answers: dict[str, dict[str, str]]) -> Any:
    """The report on these receipts when the model answers so."""
    folder = project.root / "some"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    result = Runtime(project, model=answering(answers)).run_sync({"folder": "some"})
    assert result.status == "completed"
    return result.output


@pytest.mark.parametrize(
    ("date", "total", "expected"),
    [
        ("03.11.2026", "€19,30", ("2026-11-03", "EUR", "19.30")),
        ("11/06/2026 04:51 PM", "$46.96", ("2026-11-06", "USD", "46.96")),
        ("11/06/2026", "£46.96", ("2026-06-11", "GBP", "46.96")),
        ("2026/11/05", "¥1,242", ("2026-11-05", "JPY", "1242")),
        ("10. Nov. 2026", "EUR 1.288,90", ("2026-11-10", "EUR", "1288.90")),
        ("Nov 12, 2026", "CHF 1,288.90", ("2026-11-12", "CHF", "1288.90")),
        ("4 November 2026", "SEK 180", ("2026-11-04", "SEK", "180")),
        ("16/11/26", "£17.00", ("2026-11-16", "GBP", "17.00")),
    ],
)
def test_dates_and_amounts_follow_the_conventions_of_their_country(
    date: str, total: str, expected: tuple[str, str, str], example: Load
) -> None:
    report = report_of(example("receipts"), {"a.txt": "A"}, {"A": {"merchant": "Shop", "date": date, "total": total}})

    line = report.receipts[0]
    assert (line.date, line.currency, str(line.amount)) == expected


def test_totals_add_up_by_currency_to_the_cent(example: Load) -> None:
    texts = {f"{n}.txt": f"receipt {n}" for n in range(3)}
    answers = {
        "receipt 0": {"merchant": "A", "date": "1.2.2026", "total": "€0.10"},
        "receipt 1": {"merchant": "B", "date": "1.2.2026", "total": "€0.20"},
        "receipt 2": {"merchant": "C", "date": "1.2.2026", "total": "$1.00"},
    }

    report = report_of(example("receipts"), texts, answers)

    assert report.totals == {"EUR": Decimal("0.30"), "USD": Decimal("1.00")}


def test_an_unreadable_receipt_is_reported_and_the_others_are_processed(example: Load) -> None:
    texts = {"bad.txt": "smudge", "good.txt": "fine"}
    answers = {
        "smudge": {"merchant": "?", "date": "someday", "total": "€1.00"},
        "fine": {"merchant": "Shop", "date": "1.2.2026", "total": "€2.50"},
    }

    report = report_of(example("receipts"), texts, answers)

    assert [line.file for line in report.receipts] == ["good.txt"]
    assert list(report.unread) == ["bad.txt"]
    assert "not read: bad.txt" in str(report)


def test_a_file_that_is_not_text_is_reported_too(example: Load) -> None:
    project = example("receipts")
    (project.root / "some").mkdir()
    (project.root / "some" / "scan.txt").write_bytes(b"\xff\xfe\x00")

    report: Any = Runtime(project, model="test").run_sync({"folder": "some"}).output

    assert list(report.unread) == ["scan.txt"]


def test_every_receipt_has_an_expected_answer(example: Load) -> None:
    names = sorted(path.name for path in (example("receipts").root / "receipts").iterdir())

    assert names == sorted(EXPECTED)
    assert len(names) == 12


@pytest.mark.local_model
@pytest.mark.slow
def test_the_local_model_reads_at_least_ten_of_twelve_right(example: Load, capsys: pytest.CaptureFixture[str]) -> None:
    if weights.find_weights() is None or find_spec("xllamacpp") is None:
        pytest.skip("the local model's weights are not here: run `llm-do models pull`")

    report: Any = Runtime(example("receipts"), model="local").run_sync().output

    read = {line.file: line for line in report.receipts}
    right = [name for name, expected in EXPECTED.items() if name in read and _is_right(read[name], expected)]
    currencies = sum(
        name in read and read[name].currency == expected["currency"] for name, expected in EXPECTED.items()
    )
    figure = f"right in merchant, date and amount: {len(right)} of 12; currency: {currencies}"
    with capsys.disabled():
        print(f"\nreceipts read by the local model: {figure}")
    assert len(right) >= AT_LEAST, f"{figure}; wrong: {sorted(set(EXPECTED) - set(right))}"


def _is_right(line: Any, expected: dict[str, Any]) -> bool:
    merchant = " ".join(line.merchant.lower().split())
    return (
        any(merchant.startswith(name) for name in expected["merchant"])
        and line.date == expected["date"]
        and line.amount == Decimal(expected["amount"])
    )
