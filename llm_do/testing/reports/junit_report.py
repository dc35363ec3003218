"""The report as JUnit's XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from llm_do.testing.cases.results import CaseResult, SuiteResult
from llm_do.testing.reports.written_text import describe_failure, first_line, writable

__all__ = ["to_junit"]


def to_junit(suite: SuiteResult, folder: Path = Path()) -> str:
    """The report's text: a suite for each test file and column, whose tests have a file and a line.

    Args:
        suite: The results.
        folder: The project's folder, seen from the folder that the paths in the report are relative to.
    """
    top = Element("testsuites", {"name": "llm-do", **_counts(suite.cases), "time": f"{suite.seconds:.3f}"})
    groups: dict[tuple[Path, str | None], list[CaseResult]] = {}
    for case in suite.cases:
        groups.setdefault((case.file, case.column), []).append(case)
    for (file, column), cases in groups.items():
        name = writable((folder / file).as_posix() + (f" [{column}]" if column is not None else ""), lines=False)
        time = f"{sum(case.seconds for case in cases):.3f}"
        group = SubElement(top, "testsuite", {"name": name, **_counts(cases), "time": time})
        for case in cases:
            _add(group, case, folder)
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(top, encoding="unicode") + "\n"


def _counts(cases: Sequence[CaseResult]) -> dict[str, str]:
    def count(status: str) -> str:
        return str(sum(case.status == status for case in cases))

    return {
        "tests": str(len(cases)),
        "failures": count("failed"),
        "errors": count("error"),
        "skipped": count("skipped"),
    }


def _add(group: Element, case: CaseResult, folder: Path) -> None:
    path = (folder / case.file).as_posix()
    element = SubElement(
        group,
        "testcase",
        # Viewers show the last part of a class name, and group by what is before its last dot.
        classname=writable(path.removesuffix(".test.yaml").strip("./").replace("/", "."), lines=False),
        # The column first: a name has to end with the test's.
        name=writable((f"[{case.column}] " if case.column is not None else "") + case.name, lines=False),
        file=writable(path, lines=False),
        line=str(case.line),
        time=f"{case.seconds:.3f}",
    )
    if case.status == "skipped":
        SubElement(element, "skipped", message=writable(case.reason or "", lines=False))
    elif case.status != "passed":
        fault = SubElement(element, "failure" if case.status == "failed" else "error")
        fault.set("message", first_line(case.failures))
        fault.set("type", case.status)
        fault.text = "\n".join(describe_failure(failure, folder) for failure in case.failures)
        if case.output is not None:
            SubElement(element, "system-out").text = writable(case.output)
