"""The prompt of an agent's call: its input as a model reads it, with the files that are attached."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING

from pydantic_ai import BinaryContent
from pydantic_ai.messages import UserContent

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import InputError, LlmDoError
from llm_do.files.root import Root
from llm_do.project.inputs import AgentArgs, Attachment
from llm_do.runtime.call.attached_files import attachment_guard

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

__all__ = ["ATTACHMENT_LIMIT", "make_prompt"]

ATTACHMENT_LIMIT = 20 * 1024 * 1024
"""Bytes of one attachment: the least of what the large providers accept in a request."""

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}
"""How files begin that models read, and their media types."""


async def make_prompt(input: BaseModel, root: Path) -> str | list[UserContent]:
    """The prompt of an input; attachments are read here, below the project's root only."""
    parts = input.prompt_messages() if isinstance(input, AgentArgs) else [input.model_dump_json()]
    if all(isinstance(part, str) and not part.strip() for part in parts):
        raise InputError(
            f"the prompt of {type(input).__name__} is empty", hint="Return some text from its `prompt_messages`."
        )
    prompt: list[UserContent] = [
        await run_in_worker(_read, part, root) if isinstance(part, Attachment) else part for part in parts
    ]
    return prompt[0] if len(prompt) == 1 and isinstance(prompt[0], str) else prompt


def _read(attachment: Attachment, root: Path) -> BinaryContent:
    data = attachment.data
    if data is None:
        try:
            data = Root(root).read(attachment.path, limit=ATTACHMENT_LIMIT + 1, guard=attachment_guard)
        except LlmDoError as error:
            raise InputError(
                f"can't attach {attachment.path!r}: {error.message}",
                hint="Attachments are files below the project root.",
            ) from error
    if len(data) > ATTACHMENT_LIMIT:
        raise InputError(
            f"can't attach {attachment.path!r}: it has more than {ATTACHMENT_LIMIT} bytes",
            hint="Attach a smaller file.",
        )
    return BinaryContent(data, media_type=attachment.media_type or _media_type(attachment.path, data))


def _media_type(path: str, data: bytes) -> str:
    """The media type that a file's name stands for, or else its first bytes; else text if it can be decoded as text."""
    if guessed := mimetypes.guess_type(path)[0]:
        return guessed
    # What comes from stdin has no name, and no provider takes a picture as `application/octet-stream`.
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if known := next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None):
        return known
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"
