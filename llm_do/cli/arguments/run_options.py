"""`RunOptions`: what the command line of a run says, as one value; how `run` and `chat` take them is said here once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Annotated, Any, Literal

import typer

from llm_do._frozen import frozen
from llm_do.cli.arguments import parameters as p

__all__ = ["RunOptions", "with_run_options"]


@frozen
class RunOptions:
    """The arguments and options of `run` and `chat`, as they were given.

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


def with_run_options(*, prompt: str, alone: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a command take the arguments and options of a run, and its own."""
    arguments = {
        "project": ("PROJECT", f"{p.PROJECT_HELP} There, an argument that is none of these is {alone}."),
        "prompt": ("PROMPT", prompt),
    }

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        own = list(signature(command, eval_str=True).parameters.values())[1:]
        shared = signature(_options, eval_str=True).parameters

        @wraps(command)
        def called(**given: Any) -> int:
            options = _options(**{name: given.pop(name) for name in shared})
            return command(options, **given)

        first = [
            shared[name].replace(
                annotation=Annotated[str | None, typer.Argument(metavar=metavar, help=said, show_default=False)]
            )
            for name, (metavar, said) in arguments.items()
        ]
        rest = [param for name, param in shared.items() if name not in arguments]
        called.__signature__ = Signature([*first, *own, *rest])  # type: ignore[attr-defined]
        return called

    return decorate


def _options(
    project: str | None = None,
    prompt: str | None = None,
    input_json: p.InputJson = None,
    field: p.Fields = None,
    attach: p.Attach = None,
    named: p.OfProject = None,
    entry: p.Entry = None,
    model: p.Models = None,
    approve_all: p.ApproveAll = False,
    reject_all: p.RejectAll = False,
    allow: p.Allow = None,
    deny: p.Deny = None,
    thread: p.Thread = None,
    user: p.User = None,
    no_record: p.NoRecord = False,
    otel: p.Otel = False,
    max_depth: p.MaxDepth = None,
    max_steps: p.MaxSteps = None,
    budget_usd: p.BudgetUsd = None,
    timeout: p.Timeout = None,
    output: p.Output = "text",
    verbose: p.Verbose = 0,
    quiet: p.Quiet = False,
    dry_run: p.DryRun = False,
    debug: p.Debug = False,
    no_color: p.NoColor = False,
) -> RunOptions:
    return RunOptions(
        project=project,
        prompt=prompt,
        named=named,
        input_json=input_json,
        fields=tuple(field or ()),
        attach=tuple(attach or ()),
        entry=entry,
        models=tuple(model or ()),
        approve_all=approve_all,
        reject_all=reject_all,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
        thread=thread,
        user=user,
        no_record=no_record,
        otel=otel,
        max_depth=max_depth,
        max_steps=max_steps,
        budget_usd=budget_usd,
        timeout=timeout,
        output=output,
        verbosity=-1 if quiet else verbose,
        dry_run=dry_run,
        debug=debug,
        no_color=no_color,
    )
