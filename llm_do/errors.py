"""Every error llm-do raises, and what each means to a caller and to a shell.

    LlmDoError
    ├── UsageError                   the request itself is wrong               invalid
    │   ├── InputError               the input does not fit the entry's model
    │   └── ToolkitError             a toolkit is put together or used wrongly
    ├── LinkError                    the project does not link                 invalid
    ├── ToolError                    raised by a tool: a failed result with this text
    │   └── ContextValidationError   a value doesn't fit its schema in a toolkit's context
    ├── StoreError                   local state (answers, weights, threads) can't be read or written
    └── RunError                     a run ended early; carries what was done so far
        ├── EntryError               the project's own code raised             failed
        ├── GuardError               a guard refused an agent's input or output
        ├── HookError                a hook raised what is no `Exception`
        ├── ToolFailedError          a tool failed under `on_tool_error: raise`
        ├── AbortedError             a person aborted the run
        ├── RunInterruptedError      a signal or `Runtime.interrupt` ended it        interrupted
        ├── PermissionDeniedError    a denial under `return_permission_errors: false`: denied, for lack of a person
        ├── ThreadConflict           another run has continued the thread meanwhile
        ├── LimitError               a limit was reached                       limited
        │   ├── StepLimitError
        │   ├── LoopError
        │   ├── DepthLimitError
        │   ├── HandoffLimitError
        │   ├── BudgetError
        │   └── RunTimeoutError
        └── ModelError               the model or its provider                 provider_failed
            ├── ModelUnavailableError    no such model, no key, no weights
            ├── ProviderError            the provider failed for good
            ├── ModelBehaviourError      it kept answering invalidly
            └── CassetteMissError        a replayed cassette has no answer for a request

An error's text is one sentence of what failed and why; `hint` says what to do. Where it happened
travels as data (`agent_path`, `file`, `line`), so that a terminal, a JSON document and a log can each
say it their own way. This module imports nothing heavy: the command line needs it before anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from llm_do._needed_answers import NeededAnswer
    from llm_do.diagnostics.diagnostic import Diagnostic

__all__ = [
    "EXIT_CODES",
    "AbortedError",
    "BudgetError",
    "CassetteMissError",
    "ContextValidationError",
    "DepthLimitError",
    "EntryError",
    "GuardError",
    "HandoffLimitError",
    "HookError",
    "InputError",
    "LimitError",
    "LinkError",
    "LlmDoError",
    "LoopError",
    "ModelBehaviourError",
    "ModelError",
    "ModelUnavailableError",
    "PermissionDeniedError",
    "ProviderError",
    "ReplayError",
    "RunError",
    "RunInterruptedError",
    "RunTakenError",
    "RunTimeoutError",
    "Status",
    "StepLimitError",
    "StoreError",
    "SuspendedError",
    "ThreadConflict",
    "ToolError",
    "ToolFailedError",
    "ToolkitError",
    "UsageError",
]

Status = Literal["completed", "failed", "invalid", "denied", "suspended", "limited", "provider_failed", "interrupted"]
"""How a run ended. One per exit code of the command line, except that `invalid` is 2 or 3."""

EXIT_CODES: dict[Status, int] = {
    "completed": 0,
    "failed": 1,
    "invalid": 2,
    "denied": 4,
    "suspended": 5,
    "limited": 6,
    "provider_failed": 7,
    "interrupted": 130,
}
"""A status to the exit code of the command line; 3 is that of a project that doesn't link."""


class LlmDoError(Exception):
    """The root of every error llm-do raises on purpose.

    Args:
        message: What failed and why, one sentence without a line break.
        hint: What to do about it.
        file: The file the fault is in, if it is in one.
        line: The line in that file, from 1.
        agent_path: The call path of the agent concerned, such as `main/analyst`.
        block: Lines to show as they are after the message, such as a diff.
    """

    status: Status = "failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
        agent_path: str | None = None,
        block: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self._hint: str | None = None
        self.hint = hint
        self.file = file
        self.line = line
        self.agent_path = agent_path
        self.block = block

    @property
    def hint(self) -> str | None:
        """What to do about it; a traceback shows it below the message."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        notes: list[str] = [note for note in getattr(self, "__notes__", ()) if note != _note(self._hint)]
        self._hint = hint
        self.__notes__ = [*notes, *([_note(hint)] if hint else [])]

    @property
    def exit_code(self) -> int:
        """The exit code with which the command line ends for this error."""
        return EXIT_CODES[self.status]

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are copied and sent to other processes by calling the class again, which needs more than the text.
        return _again, (type(self), self.args), self.__dict__


def _note(hint: str | None) -> str:
    return f"hint: {hint}"


def _again(kind: type[LlmDoError], args: tuple[object, ...]) -> LlmDoError:
    return kind.__new__(kind, *args)


class UsageError(LlmDoError):
    """The request itself is wrong: a path, an option, a combination of them."""

    status = "invalid"


class InputError(UsageError):
    """The input does not fit the input model of what was called."""


class ToolkitError(UsageError):
    """A toolkit is put together or used wrongly: an unknown filter, a tool twice, a context only for reading."""


class LinkError(LlmDoError):
    """The project does not link; `diagnostics` has everything that was found, warnings included."""

    status = "invalid"

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.diagnostics = tuple(diagnostics)

    @property
    def exit_code(self) -> int:
        return 3


class ToolError(LlmDoError):
    """Raised by a tool to give the model a failed result with this text.

    Example:
        >>> def divide(a: float, b: float) -> float:
        ...     if b == 0:
        ...         raise ToolError("cannot divide by zero")
        ...     return a / b
    """


class ContextValidationError(ToolError):
    """A value doesn't fit its schema in a toolkit's context; `key` is whose, `rule` the keyword it breaks."""

    def __init__(self, message: str, *, key: str, rule: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.rule = rule


class StoreError(LlmDoError):
    """Local state can't be read or written: remembered answers, weights, threads."""


class RunTakenError(StoreError):
    """Another process has taken over a durable run with a later attempt; this one has stopped."""

    status = "interrupted"


class RunError(LlmDoError):
    """A run ended early. `messages` is the entry agent's history so far, valid to continue from."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
        agent_path: str | None = None,
        block: str | None = None,
        messages: Sequence[ModelMessage] = (),
    ) -> None:
        super().__init__(message, hint=hint, file=file, line=line, agent_path=agent_path, block=block)
        self.messages = list(messages)


class EntryError(RunError):
    """The project's own code raised; the exception is `__cause__`."""


class GuardError(RunError):
    """A guard refused an agent's input or output. Guards raise it with the reason, which ends the agent's call.

    Example:
        >>> def no_numbers(text: str) -> None:
        ...     if any(letter.isdigit() for letter in text):
        ...         raise GuardError("it has numbers in it")
    """


class HookError(RunError):
    """A hook returned what can't replace a request or response, or raised what is no `Exception`, such as `SystemExit`.

    Any other exception of a hook comes out as it is; one that is no `Exception` is `__cause__`.
    """


class ToolFailedError(RunError):
    """A tool failed in a project with `on_tool_error: raise`."""


class AbortedError(RunError):
    """A person answered a question with "abort the run"."""


class RunInterruptedError(RunError):
    """The run was interrupted from outside: by a signal, or by `Runtime.interrupt`."""

    status = "interrupted"


class SuspendedError(RunError):
    """A durable run waits for a person, with nothing running; it continues when it is resumed.

    `questions` has what the person is asked: `Runtime.answer` takes the answers.
    """

    status = "suspended"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        agent_path: str | None = None,
        messages: Sequence[ModelMessage] = (),
        questions: Sequence[NeededAnswer] = (),
    ) -> None:
        super().__init__(message, hint=hint, agent_path=agent_path, messages=messages)
        self.questions = tuple(questions)


class ReplayError(RunError):
    """A durable run can't be resumed: what is run now isn't what was run before it stopped. Nothing was done.

    `difference` says what isn't the same, as a sentence without its subject, such as `it calls writer, which it didn't
    before`; `requests` has the request that was sent before, and the one that would be sent now, if that is it.
    """

    status = "invalid"
    difference: str = ""
    requests: tuple[object, object] | None = None


class PermissionDeniedError(RunError):
    """A call was denied in a project with `return_permission_errors: false`.

    `status` is `denied` where that was for lack of a person, else `failed`.
    """


class ThreadConflict(RunError):  # noqa: N818 (it is the name of what happened, and not always a fault)
    """Another run has continued the thread meanwhile; what this one did is kept as a branch of the thread."""


class LimitError(RunError):
    """A limit was reached."""

    status = "limited"


class StepLimitError(LimitError):
    """An agent used all its model requests (`max_steps`)."""


class LoopError(LimitError):
    """The model asked for the same tool calls `loop_threshold` times in a row."""


class DepthLimitError(LimitError):
    """A call would be deeper than `max_depth`."""


class HandoffLimitError(LimitError):
    """Agents handed control over more often than `max_handoffs` allows."""


class BudgetError(LimitError):
    """A request or a call would exceed the run's budget."""


class RunTimeoutError(LimitError):
    """The run took longer than `run_timeout`."""


class ModelError(RunError):
    """The model or its provider is at fault."""

    status = "provider_failed"


class ModelUnavailableError(ModelError):
    """A model can't be had: unknown, without its key, without its weights, or none was named."""


class ProviderError(ModelError):
    """The provider failed for good; `status_code` is the HTTP status where there was one."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        agent_path: str | None = None,
        messages: Sequence[ModelMessage] = (),
        status_code: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, agent_path=agent_path, messages=messages)
        self.status_code = status_code


class ModelBehaviourError(ModelError):
    """The model kept answering emptily or invalidly, beyond `retries`."""


class CassetteMissError(ModelError):
    """A replayed cassette has no answer for a request: what was sent has changed since it was recorded."""
