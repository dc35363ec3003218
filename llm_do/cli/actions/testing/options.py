"""The options of `llm-do test` as a value, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.text.sanitizer import shell_words

__all__ = ["TestOptions"]


@frozen
class TestOptions:
    """The options of `llm-do test`.

    Args:
        project: The project as it was named.
        text: What the name or the file of a test has to contain.
        record: Record all.
        record_missing: Record what is missing.
        live: Ask models.
        replay: Replay each run at once.
        repeat: How many times each test is run live.
        models: The values of `--model`.
        matrix: Run in the columns of the matrix.
        form: The format of the report.
        output: The file of the report.
        processes: How many tests run at once.
        watch: Run again what a changed file can reach.
        base: The JSON report to compare with.
        run: The recorded run to make a test of.
        store: Where that run was recorded; None for the project's store.
        seconds: Seconds that importing one Python file may take.
        no_color: Don't use colours.
        trust: Trust the project's folder.
        env_file: A file with keys and variables.
    """

    __test__ = False

    project: str | None = None
    text: str | None = None
    record: bool = False
    record_missing: bool = False
    live: bool = False
    replay: bool = False
    repeat: int | None = None
    models: tuple[str, ...] = ()
    matrix: bool = False
    form: Literal["text", "json", "junit", "markdown"] = "text"
    output: str | None = None
    processes: int | None = None
    watch: bool = False
    base: str | None = None
    run: str | None = None
    store: str | None = None
    seconds: float = 30.0
    no_color: bool = False
    trust: bool = False
    env_file: str | None = None

    def check(self) -> None:
        """Refuse options that exclude each other.

        Raises:
            UsageError: They do.
        """
        modes = {"--record": self.record, "--record-missing": self.record_missing, "--live": self.live}
        if self.run is not None:
            self._check_alone(modes)
        elif self.store is not None:
            raise UsageError("--store is for --from: tests keep no record", hint="Leave it out, or add --from RUN.")
        chosen = [name for name, is_set in modes.items() if is_set]
        if len(chosen) > 1:
            raise UsageError(f"{' and '.join(chosen)} exclude each other", hint="Keep one of them.")
        if self.repeat is not None and not self.live:
            raise UsageError(
                "--repeat is for --live: a recording answers alike each time", hint="Add --live, or leave --repeat out."
            )
        recording = next((name for name in chosen if name != "--live"), None)
        if self.replay and recording is not None:
            raise UsageError(
                f"--replay and {recording} exclude each other: what is recorded is a run, not its replay",
                hint=f"Record with {recording} first, then run the tests with --replay.",
            )
        if self.models and (self.record or self.record_missing):
            raise UsageError(
                "--model and --record exclude each other: the recordings would be those of another model",
                hint="Name the model in the test file, with `model`, or use --live.",
            )

        self._check_report()

    def _check_alone(self, modes: Mapping[str, bool]) -> None:
        others = {**modes, "-k": self.text, "--model": self.models, "--matrix": self.matrix, "--watch": self.watch}
        others |= {
            "--replay": self.replay,
            "--repeat": self.repeat,
            "--output": self.output,
            "--format": self.form != "text",
        }
        named = next((name for name, value in others.items() if value), None)
        if named is not None:
            raise UsageError(f"--from and {named} exclude each other", hint="Make the test first, then run it.")

    def _check_report(self) -> None:
        if self.base is not None and self.form != "markdown":
            raise UsageError("--base is for --format markdown", hint="Add --format markdown, or leave --base out.")
        modes = {"--record": self.record, "--record-missing": self.record_missing, "--live": self.live}
        asking = next((name for name, is_set in modes.items() if is_set), None)
        if self.watch and asking is not None:
            raise UsageError(
                f"--watch and {asking} exclude each other: every change would ask the models",
                hint=f"Run {asking} in another terminal; --watch notices new recordings.",
            )
        if self.watch and self.form != "text" and self.output is None:
            raise UsageError(
                f"--watch reports many times, and --format {self.form} is one report",
                hint="Name a file with --output, or leave --format out.",
            )

    @property
    def again(self) -> str:
        """The command that records what is missing."""
        words = ["llm-do", "test"]
        words += [self.project] if self.project is not None else []
        words += ["-k", self.text] if self.text is not None else []
        words += ["--matrix"] if self.matrix else []
        return shell_words([*words, "--record-missing"])
