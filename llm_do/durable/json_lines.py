"""Inputs as lines of JSON. A file is never in memory as a whole: it is read once to check it, and once to map it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import BinaryIO, cast

from pydantic import BaseModel

from llm_do._startup.frozen import frozen
from llm_do.errors import InputError
from llm_do.text.json_data import to_json_data
from llm_do.text.strict_json import parse_strictly

__all__ = ["LONGEST", "JsonLines", "Scan", "spooled"]

LONGEST = 64 * 1024 * 1024
"""Bytes of one line, so that a file that has no lines doesn't fill the memory."""


@frozen
class Scan:
    """What the first reading of a file finds out.

    Args:
        digest: The digest of its inputs.
        total: Their number.
    """

    digest: str
    total: int


class JsonLines:
    """A file with an input on each line: a JSON object, or a string for an entry that takes text.

    Empty lines are skipped. The file is read from its beginning each time.

    Args:
        file: The file, open for reading and seekable.
        name: Its name in messages.

    Example:
        >>> import io
        >>> lines = JsonLines(io.BytesIO(b'"one"\\n\\n{"input": "two"}\\n'), "in.jsonl")
        >>> list(lines)
        [(1, '"one"'), (3, '{"input": "two"}')]
        >>> lines.scan().total
        2
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield each input with the number of its line.

        Raises:
            InputError: The file can't be read, or isn't UTF-8, or one of its lines is too long.
        """
        number = 0
        try:
            self._file.seek(0)
            while data := self._file.readline(LONGEST + 1):
                number += 1
                if len(data) > LONGEST:
                    raise self._error(number, f"is longer than {LONGEST // 1024**2} MiB")
                if number == 1:
                    data = data.removeprefix(b"\xef\xbb\xbf")
                text = data.decode("utf-8").strip()
                if text:
                    yield number, text
        except UnicodeDecodeError as error:
            raise self._error(number, f"is not UTF-8: byte 0x{error.object[error.start]:02x}") from error
        except OSError as error:
            raise InputError(
                f"{self.name} can't be read: {error.strerror or error}", hint="Is it a file that you may read?"
            ) from error

    def scan(self) -> Scan:
        """Check every line.

        Raises:
            InputError: The file can't be read, or a line isn't an input.
        """
        digest, total = hashlib.sha256(), 0
        for number, text in self:
            fault = _fault(text)
            if fault is not None:
                raise self._error(number, fault)
            digest.update(f"{number} {text}\n".encode())
            total += 1
        return Scan(digest.hexdigest(), total)

    def _error(self, number: int, fault: str) -> InputError:
        return InputError(
            f"line {number} {fault}",
            hint="Each line is one input: a JSON object, or a JSON string. Nothing was started.",
            file=self.name,
            line=number,
        )


def _fault(text: str) -> str | None:
    """What is wrong with a line; None if it is an input."""
    try:
        value = parse_strictly(text)
    except RecursionError:
        return "is nested too deeply"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at column {error.colno}"
    except ValueError as error:
        return f"is not JSON: {error}"
    if not isinstance(value, str | dict):
        return f"must hold an object or a string, not {json.dumps(value)[:40]}"
    return None


@asynccontextmanager
async def spooled(inputs: Iterable[object] | AsyncIterable[object]) -> AsyncGenerator[JsonLines]:
    """Write inputs of Python into a temporary file, so that they are mapped as those of a file are.

    Args:
        inputs: Texts, mappings or input models.

    Raises:
        InputError: One of them isn't JSON data.
    """
    number = 0
    with tempfile.TemporaryFile() as file:
        if isinstance(inputs, AsyncIterable):
            async for value in inputs:
                number += 1
                file.write(_line(value, number))
        else:
            for value in inputs:
                number += 1
                file.write(_line(value, number))
                if number % 1000 == 0:
                    await asyncio.sleep(0)
        yield JsonLines(cast("BinaryIO", file), "the list")


def _line(value: object, number: int) -> bytes:
    if not isinstance(value, str | Mapping | BaseModel):
        raise InputError(
            f"input {number} must be text, a mapping or an input model, not a value of type {type(value).__name__}",
            hint="Nothing was started.",
        )
    return json.dumps(to_json_data(value), ensure_ascii=False).encode() + b"\n"
