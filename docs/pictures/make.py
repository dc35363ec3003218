"""Makes the pictures of the README from real runs in a pseudo-terminal: `make pictures`.

`receipts` needs the local model's weights (`llm-do models pull`).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).parents[2]
COLUMNS = 96
ROWS = 60
SECONDS = 300


def run(command: str, answers: dict[str, str]) -> pyte.Screen:
    """Run `llm-do ...` in a terminal of its own and answer what it asks.

    Args:
        command: The words behind `llm-do`.
        answers: A regular expression of what is asked to what is typed, in order.

    Returns:
        The screen as it is in the end.
    """
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples", ignore=shutil.ignore_patterns("out"))
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        terminal = pexpect.spawn(
            sys.executable,
            ["-m", "llm_do.cli", *command.split()],
            cwd=folder,
            env={**environment, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
            dimensions=(ROWS, COLUMNS),
            encoding="utf-8",
            timeout=SECONDS,
        )
        for asked, typed in answers.items():
            terminal.expect(asked)
            stream.feed(f"{terminal.before}{terminal.after}")
            terminal.sendline(typed)
        stream.feed(terminal.read())
        terminal.close()
    if terminal.exitstatus != 0:
        raise SystemExit(f"llm-do {command} ended with {terminal.exitstatus}:\n" + "\n".join(screen.display))
    return screen


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
            line.append(char.data, Style(color=colour, bold=char.bold or None, italic=char.italics or None))
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def draw(name: str, command: str, answers: dict[str, str]) -> None:
    """Write `NAME.svg`: the command and what it shows."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    console.print(Text(f"$ llm-do {command}", style="bold"))
    console.print(styled(run(command, answers)))
    picture = console.export_svg(title="llm-do", theme=SVG_EXPORT_THEME, unique_id=name)
    # The picture loads nothing from elsewhere: its letters are the reader's own.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    picture = picture.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono").replace(
        "<!-- Generated with Rich https://www.textualize.io -->", ""
    )
    picture = "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"
    (Path(__file__).parent / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    draw("approval", "run examples/approvals", {"allow\\?.*: ": "y"})
    draw("receipts", "run examples/receipts", {})
