"""Makes the pictures of the documents: `make pictures`, or `python docs/pictures/make.py NAME ...` for some.

`approval` and `receipts` are real runs in a pseudo-terminal; `receipts` needs the local model's weights
(`llm-do models pull`). `durable` is one that is killed and resumed, and `page` one in Chromium. `benchmarks` draws
`benchmarks/results.txt`.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.measure import read_report  # noqa: E402

FOLDER = Path(__file__).parent
TARGET, LONGEST = 20, 28
"""Cells of a bar that is as long as its target, and of the longest one that is drawn."""
COLUMNS = 96
ROWS = 60
SECONDS = 300


def run(
    command: str, answers: dict[str, str], files: dict[str, str] | None = None, page: Path | None = None
) -> pyte.Screen:
    """Run `llm-do ...` in a terminal of its own and answer what it asks.

    Args:
        command: The words behind `llm-do`.
        answers: A regular expression of what is asked to what is typed, in order.
        files: Files that exist among the examples before it runs.
        page: Where to write the page of the run.

    Returns:
        The screen as it is in the end.
    """
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder) / "examples"
        shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns("out"))
        for name, text in (files or {}).items():
            (examples / name).parent.mkdir(parents=True, exist_ok=True)
            (examples / name).write_text(text, encoding="utf-8")
        terminal = start(command, folder)
        for asked, typed in answers.items():
            terminal.expect(asked)
            stream.feed(f"{terminal.before}{terminal.after}")
            terminal.sendline(typed)
        stream.feed(terminal.read())
        terminal.close()
        if page is not None:
            show = [sys.executable, "-m", "llm_do.cli", "runs", "show", command.split()[1], "--html", str(page)]
            subprocess.run(show, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    if terminal.exitstatus != 0:
        raise SystemExit(f"llm-do {command} ended with {terminal.exitstatus}:\n" + "\n".join(screen.display))
    return screen


def start(command: str, folder: str) -> pexpect.spawn[str]:
    """Start `llm-do ...` in a folder, in a terminal of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return pexpect.spawn(
        sys.executable,
        ["-m", "llm_do.cli", *shlex.split(command)],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "LLM_DO_TRUST": "1"},
        dimensions=(ROWS, COLUMNS),
        encoding="utf-8",
        timeout=SECONDS,
    )


def styled(screen: pyte.Screen) -> Text:
    """A screen as rich text, without the empty lines at its end."""
    lines: list[Text] = []
    for row in range(screen.lines):
        line = Text()
        for column in range(screen.columns):
            char = screen.buffer[row][column]
            colour = (
                None if char.fg == "default" else f"#{char.fg}" if re.fullmatch("[0-9a-f]{6}", char.fg) else char.fg
            )
            colour = "yellow" if colour == "brown" else colour
            style = Style(
                color=colour, bold=char.bold or None, italic=char.italics or None, reverse=char.reverse or None
            )
            line.append(char.data, style)
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def draw(name: str, command: str, answers: dict[str, str], files: dict[str, str]) -> None:
    """Write `NAME.svg`: the command and what it shows."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ llm-do {command}", style="bold"))
    console.print(styled(run(command, answers, files)))
    (FOLDER / f"{name}.svg").write_text(picture(console, name, "llm-do"), encoding="utf-8")


def draw_durable() -> None:
    """Write `durable.svg`: a run that is killed while it pays, and is asked about and finished by another process."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())

    def show(command: str, screen: pyte.Screen) -> None:
        console.print(Text(f"$ llm-do {command}", style="bold"))
        console.print(styled(screen))

    with tempfile.TemporaryDirectory() as folder:
        for name, text in RENT.items():
            (Path(folder) / "rent" / name).parent.mkdir(exist_ok=True)
            (Path(folder) / "rent" / name).write_text(text, encoding="utf-8")
        command, screen = 'run rent "Pay the rent." --durable --run-id rent-12', pyte.Screen(COLUMNS, ROWS)
        stream, terminal = pyte.Stream(screen), start(command, folder)
        while not (Path(folder) / "rent" / "paid").exists() or "pay(" not in "".join(screen.display):
            with suppress(pexpect.TIMEOUT):
                stream.feed(terminal.read_nonblocking(10_000, 0.2))
        terminal.kill(signal.SIGKILL)
        terminal.wait()
        show(command, screen)
        console.print(Text("Killed"))
        command, screen = "resume rent-12 -p rent", pyte.Screen(COLUMNS, ROWS)
        stream, terminal = pyte.Stream(screen), start(command, folder)
        terminal.expect("answer: ")
        stream.feed(f"{terminal.before}{terminal.after}")
        terminal.sendline("2")
        stream.feed(terminal.read())
        terminal.close()
        show(command, screen)
    if terminal.exitstatus != 0:
        raise SystemExit(f"llm-do {command} ended with {terminal.exitstatus}")
    (FOLDER / "durable.svg").write_text(picture(console, "durable", "llm-do"), encoding="utf-8")


def draw_page() -> None:
    """Write `page.png`: the page of a run in which a person was asked, with a call selected."""
    from tests.web.page_support import chromium

    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "run.html"
        command, answers, files = RUNS["approval"]
        run(command, answers, files, file)
        page = browser.new_page(viewport={"width": 1180, "height": 620}, device_scale_factor=1.5)
        page.goto(f"file://{file}")
        page.locator(".row.tool").last.click()
        page.screenshot(path=FOLDER / "page.png")


def picture(console: Console, name: str, title: str) -> str:
    """What a console has recorded, as SVG."""
    drawn = console.export_svg(title=title, theme=SVG_EXPORT_THEME, unique_id=name)
    # The picture loads nothing from elsewhere: its letters are the reader's own.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono").replace(
        "<!-- Generated with Rich https://www.textualize.io -->", ""
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def plot(report: str) -> str:
    """The report of the benchmarks as SVG: each figure that has a target, as a part of it.

    Args:
        report: The text that `python -m benchmarks --save` writes.
    """
    table = Table(box=None, header_style="bold")
    for heading, justify in (
        ("measured", "left"),
        ("figure", "right"),
        ("target", "right"),
        ("up to the line: target met", "left"),
    ):
        table.add_column(heading, justify=justify, no_wrap=True)
    for figure in read_report(report):
        if figure.target:
            filled = min(round(TARGET * figure.value / figure.target), LONGEST)
            cells = ["█" if cell < filled else " " for cell in range(LONGEST)]
            cells[TARGET] = "│"
            bar = Text("".join(cells), style="green" if figure.met else "red")
            bar.stylize("default", TARGET, TARGET + 1)
            table.add_row(figure.name, f"{figure.value:.3g}{figure.unit}", f"{figure.target:g}{figure.unit}", bar)
    console = Console(record=True, width=COLUMNS + 24, file=io.StringIO())
    console.print(Text(report.splitlines()[0], style="dim"), table)
    return picture(console, "benchmarks", "python -m benchmarks")


MINUTES = """\
# Minutes, budget round

- The printer lease ends. Karl cancels it.
- New laptops, if there is money left.
- Next meeting: 1 December.
"""
"""An earlier version of what the example writes, so that there is a change to show."""

RENT = {
    "main.agent": "---\nname: clerk\nmodel: script:answers.yaml\ntools: [pay]\n---\nPay what is due, and say so.\n",
    "project.json": '{"version": 1, "entry": {"agent": "clerk"}, "agent_files": ["*.agent"],'
    ' "python_files": ["bank.py"]}',
    "answers.yaml": "- tools: [{name: pay, args: {to: landlord, amount: 1200}}]\n- text: The rent is paid.\n",
    "bank.py": """\
import time
from contextlib import suppress
from pathlib import Path

from llm_do import tool


@tool(approval="allow")
def pay(to: str, amount: int) -> str:
    Path(__file__).with_name("paid").touch()
    time.sleep(60)
    return f"paid {amount} to {to}"


TOOLS = [pay]
""",
}
"""A project whose bank takes its time."""

RUNS = {
    "approval": ("run examples/approvals", {"allow\\? ": "y"}, {"approvals/out/minutes.md": MINUTES}),
    "receipts": ("run examples/receipts", dict[str, str](), dict[str, str]()),
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or [*RUNS, "durable", "page", "benchmarks"]:
        if wanted == "benchmarks":
            report = (ROOT / "benchmarks/results.txt").read_text(encoding="utf-8")
            (FOLDER / "benchmarks.svg").write_text(plot(report), encoding="utf-8")
        elif wanted == "page":
            draw_page()
        elif wanted == "durable":
            draw_durable()
        else:
            draw(wanted, *RUNS[wanted])
