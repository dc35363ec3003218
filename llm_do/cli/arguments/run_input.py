"""The input of a run, from the command line or stdin. The input model validates it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, PrivateAttr

from llm_do._startup.frozen import frozen
from llm_do.cli.arguments.input_fields import read_fields
from llm_do.cli.arguments.target import user_path
from llm_do.cli.process import stdin
from llm_do.errors import InputError, UsageError
from llm_do.project.inputs import Attachment, PromptContent, PromptInput, describe_input, input_names, to_input
from llm_do.text.strict_json import parse_strictly

if TYPE_CHECKING:
    from llm_do.cli.arguments.run_options import InputOptions
    from llm_do.project.project import Project

__all__ = ["attach_files", "entry_model", "first_message", "gather_input", "require_text_input"]

READ_LIMIT = 20 * 1024 * 1024 + 1
"""Bytes read of an attachment: one more than the runtime accepts, so that it reports a file that is too large."""


class _PromptWithData(PromptInput):
    """A prompt with attachments read in advance, since a run may not read files outside the project."""

    _data: dict[str, bytes] = PrivateAttr(default_factory=dict[str, bytes])

    def prompt_messages(self) -> list[PromptContent]:
        return [self.input, *(Attachment(path, self._data.get(path)) for path in self.attachments)]

    @classmethod
    def of(cls, value: PromptInput, data: Mapping[str, bytes]) -> _PromptWithData:
        made = cls(input=value.input, attachments=value.attachments)
        made._data = dict(data)
        return made


@frozen
class _Attached:
    """Attachments by their names in the input, and the bytes of those outside the project."""

    names: list[str]
    data: dict[str, bytes]


def entry_model(project: Project, entry: str | None) -> type[BaseModel] | None:
    """The entry's input model."""
    if entry is None:
        return project.entry.input_model or PromptInput
    spec = project.registry.agent(entry)
    return (spec.input_model or PromptInput) if spec is not None else None


def gather_input(
    project: Project, options: InputOptions, prompt: str | None, entry: str | None, notice: Callable[[str], None]
) -> object:
    """Find the input: prompt, `--input-json` and `--field`, and stdin; None is the entry's default."""
    model = entry_model(project, entry)
    value = _from_arguments(options, prompt, model)
    if value is not None:
        _refuse(project, "a prompt or an input")
    if _takes_stdin(options, value, model):
        piped = stdin.read_text(notice)
        if piped is not None:
            _refuse(project, "stdin")
            value = _with_stdin(value, piped)
    if not options.attach:
        return value
    _refuse(project, "an attachment")
    if value is None:
        value = project.entry.args if entry is None else None
    return _with_attachments(value, model, _read_attachments(options.attach, project.root, notice))


def _takes_stdin(options: InputOptions, value: object, model: type[BaseModel] | None) -> bool:
    """Whether stdin belongs to the input: `--input-json` is all of it, and `--field` all but a missing `input`."""
    if options.input_json is not None or "-" in options.attach:
        return False
    if value is None:
        return stdin.is_data()
    if isinstance(value, str):
        return stdin.is_unread()
    field = model.model_fields.get("input") if model is not None else None
    lacks_text = field is not None and field.is_required() and "input" not in cast("dict[str, Any]", value)
    return lacks_text and stdin.is_unread()


def _with_stdin(value: object, piped: str) -> object:
    """An input with the text of stdin.

    Example:
        >>> print(_with_stdin("Sum up.", "one\\ntwo\\n"))
        Sum up.
        <BLANKLINE>
        <stdin>
        one
        two
        </stdin>
    """
    if value is None:
        return piped
    if not isinstance(value, str):
        return {**cast("dict[str, Any]", value), "input": piped}
    mark = "stdin"
    while f"</{mark}>" in piped:  # the text must not look as if it ended early
        mark += "-"
    return f"{value}\n\n<{mark}>\n{piped.removesuffix(chr(10))}\n</{mark}>"


def first_message(project: Project, options: InputOptions, prompt: str | None, entry: str | None) -> object:
    """A chat's first message, from its arguments; those on stdin follow."""
    if "-" in options.attach:
        raise UsageError("a chat reads its messages from stdin, so --attach - can't", hint="Attach a file.")
    return _from_arguments(options, prompt, entry_model(project, entry))


def require_text_input(project: Project, entry: str | None) -> None:
    """Refuse an entry that takes no text: no message of a chat could be its input."""
    model = entry_model(project, entry)
    if model is None or model.model_config.get("extra") in ("allow", "ignore"):
        return
    if "input" not in input_names(model):
        raise UsageError(
            f"a chat sends text, and the entry takes {describe_input(model)}",
            hint="Name an agent with --entry, or give fields to `llm-do run` with --field.",
        )


def attach_files(project: Project, entry: str | None, message: object, attach: Sequence[str]) -> object:
    """A message with its files: those in `attach`, and `@FILE` words if the entry takes attachments."""
    model = entry_model(project, entry)
    files = list(attach)
    if isinstance(message, str) and model is not None and "attachments" in model.model_fields:
        files += [word[1:] for word in message.split() if word.startswith("@") and os.path.isfile(user_path(word[1:]))]
    if not files:
        return message
    return _with_attachments(message, model, _read_attachments(files, project.root, lambda _: None))


def _refuse(project: Project, what: str) -> None:
    if not project.allow_cli_input:
        raise UsageError(
            f"the project takes no input from the command line, and there is {what}",
            hint="Run it without, or set `allow_cli_input` in project.json.",
        )


def _from_arguments(options: InputOptions, prompt: str | None, model: type[BaseModel] | None) -> object:
    """The input in the arguments, None if there is none."""
    if prompt is not None and options.input_json is not None:
        raise UsageError("a prompt and --input-json exclude each other", hint="Keep one of them.")
    value: object = prompt
    if options.input_json is not None:
        value = _from_json(options.input_json)
    if not options.fields:
        return value
    if isinstance(value, str):
        value = {"input": value}
    if not isinstance(value, dict | None):
        raise UsageError("--field adds to an object, and --input-json holds none", hint="Keep one of them.")
    return {**cast("dict[str, Any]", value or {}), **read_fields(options.fields, model)}


def _from_json(text: str) -> object:
    try:
        value = parse_strictly(text)
    except RecursionError as error:
        raise InputError("--input-json is nested too deeply", hint="Pass it as a file with --attach.") from error
    except ValueError as error:
        raise InputError(
            f"--input-json is not JSON: {error}", hint="""Quote it, as in '{"input": "text"}'."""
        ) from error
    if not isinstance(value, str | dict):
        raise InputError(
            f"--input-json must hold an object or a string, not {json.dumps(value)[:40]}",
            hint="""Name the field, as in '{"input": ...}'.""",
        )
    return cast("object", value)


def _read_attachments(files: Sequence[str], root: Path, notice: Callable[[str], None]) -> _Attached:
    found = _Attached([], {})
    for file in files:
        if file == "-":
            if file in found.data:
                raise UsageError("stdin can be attached only once", hint="Keep one --attach -.")
            found.names.append(file)
            found.data[file] = stdin.read_bytes(notice, limit=READ_LIMIT)
            continue
        path = user_path(file)
        resolved = Path(os.path.realpath(path))
        if resolved.is_relative_to(root) and os.path.isfile(resolved):
            found.names.append(resolved.relative_to(root).as_posix())
            continue
        name = str(path.absolute())
        try:
            with path.open("rb") as stream:
                found.data[name] = stream.read(READ_LIMIT)
        except OSError as error:
            raise InputError(
                f"can't attach {file!r}: {error.strerror or error}",
                hint="Paths are relative to the current folder; - is stdin.",
            ) from error
        found.names.append(name)
    return found


def _with_attachments(value: object, model: type[BaseModel] | None, attached: _Attached) -> object:
    if model is None or "attachments" not in model.model_fields:
        raise InputError(
            "the entry takes no attachments", hint=f"It takes {describe_input(model)}." if model is not None else None
        )
    if value is None:
        raise InputError("attachments need an input to go with", hint=f"It takes {describe_input(model)}.")
    data: dict[str, Any] = {"input": value} if isinstance(value, str) else dict(cast("Mapping[str, Any]", value))
    attachments = data.get("attachments", [])
    if not isinstance(attachments, list | tuple):
        raise InputError(
            f"the input's attachments are {json.dumps(attachments, default=str)[:40]}, and --attach adds to a list",
            hint="Write them as a list, or name every file with --attach.",
        )
    made = to_input(model, {**data, "attachments": [*cast("Sequence[Any]", attachments), *attached.names]})
    if not attached.data:
        return made
    if type(made) is not PromptInput:
        raise InputError(
            f"can't attach {next(iter(attached.data))!r}: the entry has an input model of its own, "
            "and takes files of the project only",
            hint="Put the file in the project's folder.",
        )
    return _PromptWithData.of(made, attached.data)
