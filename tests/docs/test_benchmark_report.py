"""The benchmarks' command, report and picture: every promised figure is in both."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.__main__ import NAMES, main
from benchmarks.measure import Figure, read_report

ROOT = Path(__file__).parents[2]
REPORT = (ROOT / "benchmarks/results.txt").read_text(encoding="utf-8")

PROMISED = """
llm-do --help / python -c pass
llm-do --help, memory
llm-do check
llm-do graph
llm-do schema
linking 1000 agents, each
1000 linked agents, each
linking 10000 agents, each / of 1000
whole run / bare PydanticAI
run in process, no tools / bare
tool-call round trip / bare
fifty rules / none
50 concurrent runs / bare
50 concurrent runs, memory / bare
500 concurrent runs / bare
a run among 500 / a run among 50
5,000 chunks streamed / bare
copy of 100000 keys / of 10
a turn on a thread of 100000 messages / of 100
8 children of an agent, wall / bare
decision about a pipeline of three, 50 rules
"""


def test_a_figure_round_trips() -> None:
    figures = [
        Figure("whole run / bare PydanticAI", 0.71, 0.7, detail="1 ms against 2 ms"),
        Figure("llm-do check", 0.233, 0.2, " s"),
        Figure("an event that a subscriber keeps", 0.268, unit=" KB"),
        Figure("runs that saw another's state", 0.0, 0, unit="", detail="of 200"),
    ]

    assert read_report("\n".join(["a machine", "", *(str(figure).rstrip() for figure in figures)])) == figures


def test_only_a_ratio_more_than_a_tenth_higher_is_a_regression() -> None:
    before = Figure("a", 1.0)

    assert [Figure("a", value).worse_than(before) for value in (0.5, 1.09, 1.11)] == [False, False, True]
    assert not Figure("a", 9.0, unit=" s").worse_than(Figure("a", 1.0, unit=" s"))
    assert not Figure("a", 9.0).worse_than(None)


def test_the_report_has_every_promised_figure_with_its_target() -> None:
    targets = {figure.name: figure.target for figure in read_report(REPORT)}

    assert [name for name in PROMISED.strip().splitlines() if targets.get(name) is None] == []


def test_the_picture_matches_the_report() -> None:
    make = runpy.run_path(str(ROOT / "docs/pictures/make.py"))

    assert make["plot"](REPORT) == (ROOT / "docs/pictures/benchmarks.svg").read_text(encoding="utf-8")


def test_every_module_that_measures_is_run() -> None:
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__", "measure", "server"}

    assert set(NAMES) == modules
    assert [name for name in NAMES if not callable(importlib.import_module(f"benchmarks.{name}").main)] == []


def test_a_tool_that_is_not_installed_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", (peers.Peer("none", "no_such_package.at_all", (), {}),))

    assert peers.main() == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--help"], 0, "--save"),
        (["link", "memmory"], 2, "there is no memmory; there are startup, whole_run"),
        (["--save", "nonsense"], 2, "there is no nonsense"),
        (["--fast"], 2, "unrecognized arguments: --fast"),
    ],
)
def test_an_unknown_benchmark_or_option_is_reported_before_anything_is_measured(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == code
    shown = capsys.readouterr()
    assert message in (shown.err if code else shown.out)
