"""The options of a run, each declared once, for `Runtime(...)`, `run(...)` and the command line.

An `Option` describes a key and its command line flags, if it has any. Nothing heavy is imported, since
`llm-do run --help` reads this too.
"""

# Without `from __future__ import annotations`: the command line reads the types that are not in quotes.

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from llm_do._startup.frozen import frozen
from llm_do.formats.parts.least_counts import LEAST
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from llm_do.messages import Message
    from llm_do.runtime.approval.broker import ApprovalCallback, ApprovalMode, RunApprovalPolicy
    from llm_do.runtime.context.user_questions import AskUser
    from llm_do.runtime.record.results import ExecutionContext
    from llm_do.runtime.record.thread_store import ThreadStore
    from llm_do.runtime.record.transport import Transport
    from llm_do.runtime.session.entries import Entry

__all__ = ["ApprovalOptions", "EntryOptions", "Option", "PlayOptions", "RunOptions", "RuntimeOptions", "check_options"]


@frozen
class Option:
    """An option's help text and its command line flags.

    Args:
        help: A sentence, for the command's help and the reference page.
        flags: Its names on the command line; empty for an option of Python only.
        metavar: The name of its value in the command's help.
        minimum: The smallest value that the command line accepts.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    minimum: float | None = None


class ApprovalOptions(TypedDict, total=False):
    """Who answers what a session asks about."""

    approvals: Annotated[
        "ApprovalMode | ApprovalCallback | RunApprovalPolicy | None",
        Option(
            "`prompt`, `approve_all`, `reject_all`, a callback, or a `RunApprovalPolicy`. In mode `prompt`"
            " without a callback, a call that needs approval is denied."
        ),
    ]


class PlayOptions(TypedDict, total=False):
    """The options of a session that a test's `play` takes too; one that is None leaves the project's setting."""

    model: Annotated[
        "str | Sequence[str] | Model | None", Option("The model of every agent, by name or as a PydanticAI model.")
    ]
    models: Annotated[
        "Mapping[str, str | Model] | None",
        Option("The models of single agents, by agent name, each by its name or as a PydanticAI model."),
    ]
    allow: Annotated[
        Sequence[str] | None,
        Option("Allow calls that match these patterns without asking.", ("--allow",), "PATTERN"),
    ]
    deny: Annotated[
        Sequence[str] | None,
        Option("Deny calls that match these patterns, whatever else allows them.", ("--deny",), "PATTERN"),
    ]
    max_depth: Annotated[
        int | None, Option("Maximum depth of nested calls.", ("--max-depth",), "N", minimum=LEAST["max_depth"])
    ]
    max_steps: Annotated[
        int | None,
        Option(
            "Maximum number of model requests in one agent's run.", ("--max-steps",), "N", minimum=LEAST["max_steps"]
        ),
    ]
    max_retries: Annotated[
        int | None, Option("Maximum number of retries when a model request fails for a transient reason.")
    ]
    loop_threshold: Annotated[
        int | None, Option("Number of identical batches of tool calls that end an agent's run; 0 turns this off.")
    ]
    run_timeout: Annotated[float | None, Option("Seconds that a run may take.", ("--timeout",), "TIME", minimum=0.001)]
    env_file: Annotated[
        str | None,
        Option(
            "File with keys and variables for `${NAME}`, read in addition to the project's `.env`; the environment has"
            " precedence.",
            ("--env-file",),
            "FILE",
        ),
    ]
    record: Annotated[bool | None, Option("Whether runs are recorded; None records those with a thread or a user.")]
    store: Annotated[
        "ThreadStore | Path | str | None",
        Option("Where threads and records are kept: a store, a SQLite file or a URL; None is the project's store."),
    ]
    transport: Annotated[
        "Transport | None", Option("Records model requests, or answers them without a model: see `llm_do.testing`.")
    ]
    ask_user: Annotated[
        "AskUser | None",
        Option("Callback that puts an agent's question (`ask_user`) to a person and returns the answer."),
    ]


class RuntimeOptions(ApprovalOptions, PlayOptions, total=False):
    """The options of a session."""

    frozen: Annotated[
        bool | None,
        Option(
            "Let `llm-do.lock` alone answer approval questions, and use only servers that are as it has them.",
            ("--frozen",),
        ),
    ]

    durable: Annotated[
        bool | None,
        Option("Keep each step of a run on disk, so that a run that was stopped can be resumed.", ("--durable",)),
    ]


class EntryOptions(TypedDict, total=False):
    """What one run calls, what it continues, and whose it is."""

    entry: Annotated[
        "str | Entry | None",
        Option(
            "Run another agent, flow or function of the project instead of its entry.", ("--entry", "--agent"), "NAME"
        ),
    ]
    messages: Annotated[
        "Sequence[ModelMessage | Message | Mapping[str, Any]] | None",
        Option(
            "The conversation so far, for an agent or a flow: messages of PydanticAI or of `llm_do.messages`, or"
            " dicts in OpenAI's format."
        ),
    ]
    execution_context: Annotated[
        "ExecutionContext | None",
        Option("Continue from the `execution_context` of an earlier result, which isn't changed."),
    ]
    thread_id: Annotated[str | None, Option("Continue this conversation, or start it.", ("--thread",), "ID")]
    user_id: Annotated[str | None, Option("The user whose run this is.", ("--user",), "ID")]
    run_id: Annotated[
        str | None,
        Option(
            "The run's id; a durable run that has it already is continued, or its result returned.", ("--run-id",), "ID"
        ),
    ]
    deps: Annotated[
        object,
        Option(
            "Dependencies for the agents that declare their type (`deps_type`), whose tools get them as `ctx.deps`."
            " They are never stored: a run that is resumed needs them again."
        ),
    ]


class RunOptions(RuntimeOptions, EntryOptions, total=False):
    """The options of `run`: those of its session and those of its run."""

    provider: Annotated[
        "Provider[Any] | Model | None",
        Option("A PydanticAI provider, with `model` the name of its model; or a model."),
    ]


def check_options(function: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise `TypeError`, as Python does, for an unknown keyword."""
    for name in names:
        if name not in known:
            if name in RuntimeOptions.__annotations__:
                raise TypeError(
                    f"{function} has no option {name!r}: it is one of the session, Runtime(..., {name}=...)"
                )
            hint = did_you_mean(name, known) or f"options are {', '.join(known)}"
            raise TypeError(f"{function} has no option {name!r}; {hint}")
