"""The corpus of wrong projects: small, each with exactly what is found in it, some with their fix.

A file holds cases. `== CODE title` begins one; `-- NAME` a file of it, `-- fixed NAME` the same file fixed, and
`-- found` what is expected, as `CODE file:line:column`. A name may be followed by `(expression)`: Python for text or
bytes; `(link)`: a symbolic link; `(absent)`: no such file. A project without an agent gets a plain `main.agent`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from llm_do._entry_points import Published
from llm_do._startup.code_access import closed_folders
from llm_do.cli.actions.admission import Admission
from llm_do.diagnostics.codes.environment import left_out_code
from llm_do.diagnostics.diagnostic import Location
from llm_do.linker.subprocess_check import CheckResult, check_in_subprocess
from llm_do.linker.test_linker import check_with_tests

__all__ = ["HERE", "Case", "File", "all_files", "cases", "harms", "linked", "write"]

HERE = Path(__file__).parent
MAIN = "---\nname: main\n---\nHelp.\n"
PUBLISHED = {
    "LD715": (Published("lookup", "a:A", "acme-tools", "1.0"), Published("lookup", "b:B", "other-tools", "2.1")),
    "LD716": (Published("lookup", "no_such_module_of_acme:A", "acme-tools", "1.0"),),
}
"""What is installed for the examples of these codes."""

_SECTION = re.compile(r"-- (?P<fixed>fixed )?(?P<name>\S+)(?: \((?P<kind>expression|link|absent)\))?")


@dataclass(frozen=True)
class File:
    """One file as the corpus has it: its text, or what it is made from."""

    text: str
    kind: str | None = None

    @property
    def data(self) -> bytes:
        """Its bytes."""
        if self.kind != "expression":
            return self.text.encode()
        made = eval(self.text)  # noqa: S307 (the corpus is ours)
        return made if isinstance(made, bytes) else made.encode()


@dataclass
class Case:
    """One wrong project.

    Args:
        source: The file of the corpus, and the line it begins at.
        code: What it is an example of.
        title: What is wrong with it.
        files: Its files.
        found: What is expected; None where that isn't written down.
        fixed: The files that fix it.
    """

    source: tuple[Path, int]
    code: str
    title: str
    files: dict[str, File] = field(default_factory=dict)
    found: list[str] | None = None
    fixed: dict[str, File] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.code} {self.title}"


def cases() -> list[Case]:
    """Every case."""
    return [case for path in sorted(HERE.glob("LD*.txt")) for case in _read(path)]


def _read(path: Path) -> Iterator[Case]:
    case: Case | None = None
    lines: list[str] = []
    section: re.Match[str] | None = None

    def close() -> None:
        if case is None or section is None:
            return
        while lines and not lines[-1]:
            lines.pop()
        if section["name"] == "found":
            case.found = list(lines)
        else:
            text = "\n".join(lines) + ("\n" if lines and section["kind"] is None else "")
            (case.fixed if section["fixed"] else case.files)[section["name"]] = File(text, section["kind"])
        lines.clear()

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("== "):
            close()
            if case is not None:
                yield case
            code, _, title = line.removeprefix("== ").partition(" ")
            case, section = Case((path, number), code, title), None
        elif (found := _SECTION.fullmatch(line)) is not None:
            close()
            section = found
        elif section is not None:
            lines.append(line)
    close()
    if case is not None:
        yield case


def all_files(case: Case, *, fixed: bool = False) -> dict[str, File]:
    """All files of a case, the agent that it doesn't write itself included."""
    files = {**case.files, **(case.fixed if fixed else {})}
    if not any(name.endswith(".agent") for name in files):
        files["main.agent"] = File(MAIN)
    elif any(name.startswith("fixed") for name in files):
        raise ValueError(case.id)
    if "project.json" in files and "main.agent" not in files and '"agent": "main"' in files["project.json"].text:
        files["main.agent"] = File(MAIN)
    return files


def write(case: Case, root: Path, *, fixed: bool = False) -> Path:
    """Write a case's files."""
    for name, file in all_files(case, fixed=fixed).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.kind == "link":
            path.symlink_to(file.text)
        elif file.kind != "absent":
            path.write_bytes(file.data)
    return root


def harms(case: Case) -> bool:
    """Whether linking it would hurt the process that does."""
    return case.code in ("LD310", "LD311")


def linked(case: Case) -> CheckResult:
    """What linking a case finds; each is linked once, however many ask."""
    if case.source not in _LINKED:
        with tempfile.TemporaryDirectory() as folder:
            root = write(case, Path(folder))
            if harms(case):
                found = check_in_subprocess(root, seconds=5)
            elif case.code == "LD710":
                found = _as_text(root)
            elif case.code in PUBLISHED:
                with patch("llm_do.linker.analysis.published.find_published", lambda *_: PUBLISHED[case.code]):
                    found = CheckResult(check_with_tests(root).diagnostics, root)
            elif case.code == "LD714":
                # The command depends on how llm-do is installed here.
                with patch("llm_do.models.provider_packages.install_command", "pip install '{package}'".format):
                    found = CheckResult(check_with_tests(root).diagnostics, root)
            else:
                report = check_with_tests(root)
                found = CheckResult(report.diagnostics, report.root)
        _LINKED[case.source] = found
    return _LINKED[case.source]


def _as_text(root: Path) -> CheckResult:
    """What a strict check finds in a folder that isn't trusted."""
    with closed_folders("looks"):
        report = check_with_tests(root)
        notice = Admission(Path(), open=False).notice(report.left_out)
    fault = left_out_code(str(notice)).at(Location("project.json"))
    return CheckResult((*report.diagnostics, fault), report.root)


_LINKED: dict[tuple[Path, int], CheckResult] = {}
