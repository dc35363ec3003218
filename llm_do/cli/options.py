"""`RunOptions`: what the command line of `llm-do run` says, as one value."""

from __future__ import annotations

from typing import Literal

from llm_do._frozen import frozen

__all__ = ["RunOptions"]


@frozen
class RunOptions:
    """The arguments and options of `run`, as they were given.

    Args:
        project: The first argument: a project or, in a project's folder, the prompt.
        prompt: The second one.
        named: What `--project` names; then the first argument is the prompt.
        input_json: The input as JSON text.
        fields: `NAME=VALUE` each.
        attach: Files that go with the input; `-` is stdin.
        entry: The callable to run instead of the project's entry.
        models: `MODEL` or `NAME=MODEL` each.
        approve_all: What is asked is allowed.
        reject_all: What is asked is denied.
        allow: Patterns of calls that are allowed.
        deny: Patterns of calls that are denied.
        thread: The conversation that it continues.
        user: Whose run it is.
        no_record: Nothing of it is kept on disk.
        otel: Spans are sent to where the environment says.
        max_depth: Deepest nested call.
        max_steps: Model requests in one agent run.
        budget_usd: US dollars.
        timeout: Seconds.
        output: The form of what stdout gets.
        verbosity: -1 for errors only, 0, 1 for lines, 2 for text too.
        dry_run: Show what would run.
        debug: Show tracebacks.
        no_color: No colours.
    """

    project: str | None = None
    prompt: str | None = None
    named: str | None = None
    input_json: str | None = None
    fields: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    entry: str | None = None
    models: tuple[str, ...] = ()
    approve_all: bool = False
    reject_all: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    thread: str | None = None
    user: str | None = None
    no_record: bool = False
    otel: bool = False
    max_depth: int | None = None
    max_steps: int | None = None
    budget_usd: float | None = None
    timeout: float | None = None
    output: Literal["text", "json", "events"] = "text"
    verbosity: int = 0
    dry_run: bool = False
    debug: bool = False
    no_color: bool = False
