"""Whether an output, or the text of a file, is what a test expects."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import run_blocking
from llm_do.linker.checks.case_checks import check_file
from llm_do.linker.python.python_files import load_python_files
from llm_do.text.canonical_json import canonical_json
from llm_do.text.exception_text import exception_text
from llm_do.text.json_paths import JsonPathError, parse_json_path, value_at

if TYPE_CHECKING:
    from llm_do.formats.case_file import ContentFile

__all__ = ["Content", "Finding", "check_content", "shown"]

_MOST = 200
_MOST_LINES = 40


@frozen
class Content:
    """What is compared.

    Args:
        name: What it is, such as `the output`.
        text: It as text.
        data: It as JSON data; of text, the text.
    """

    name: str
    text: str
    data: object

    @property
    def json(self) -> object:
        """It as data that a path or a schema is about: text is read as JSON.

        Raises:
            ValueError: It is text that isn't JSON.
        """
        return json.loads(self.data) if isinstance(self.data, str) else self.data


@frozen
class Finding:
    """One part of an expectation that isn't met.

    Args:
        key: Its path in the expectation, such as `("json", "$.total")`.
        what: What is wrong, as a sentence.
        expected: What was expected.
        got: What was there.
        block: Lines that explain it.
    """

    key: tuple[str | int, ...]
    what: str
    expected: str | None = None
    got: str | None = None
    block: str | None = None


def check_content(expected: ContentFile, content: Content, root: Path, source: Path, run: object) -> Iterator[Finding]:
    """Compare a content with what is expected of it.

    Args:
        expected: What is expected.
        content: The content.
        root: The project's folder.
        source: The test file.
        run: What a `python` check may look at besides.
    """
    name, text = content.name, content.text
    for each, key in _texts(expected.contains, "contains"):
        if each not in text:
            yield Finding(key, f"{name} doesn't contain the text", _line(each), _line(text), _lines_of(text))
    for each, key in _texts(expected.lacks, "lacks"):
        if each in text:
            yield Finding(
                key, f"{name} contains a text that it must not", f"without {_line(each)}", block=_lines_of(text)
            )
    if "equals" in expected.model_fields_set and (finding := _compare(expected.equals, content)) is not None:
        yield finding
    if expected.matches is not None and re.search(expected.matches, text, re.MULTILINE) is None:
        what = f"{name} doesn't match the pattern"
        yield Finding(("matches",), what, expected.matches, _line(text), _lines_of(text))
    if expected.json_schema is not None or expected.json_values is not None:
        yield from _check_data(expected, content)
    if expected.python is not None:
        yield from _call_check(expected.python, content, root, source, run)


def _texts(texts: str | Sequence[str] | None, key: str) -> list[tuple[str, tuple[str | int, ...]]]:
    if texts is None or isinstance(texts, str):
        return [(texts, (key,))] if texts is not None else []
    return [(each, (key, index)) for index, each in enumerate(texts)]


def _compare(expected: object, content: Content) -> Finding | None:
    what = f"{content.name} isn't what was expected"
    if isinstance(expected, str):
        if expected == content.text:
            return None
        # YAML's block texts end with a line break, which most outputs don't have.
        diff = _diff(expected.splitlines(), content.text.splitlines())
        return Finding(("equals",), what, _line(expected), _line(content.text), diff)
    if _same(expected, content.data):
        return None
    before, after = (
        json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) for data in (expected, content.data)
    )
    return Finding(
        ("equals",), what, shown(expected), shown(content.data), _diff(before.splitlines(), after.splitlines())
    )


def _diff(before: Sequence[str], after: Sequence[str]) -> str | None:
    """A diff, where there is more than one line to compare."""
    if len(before) < 2 and len(after) < 2:
        return None
    lines = list(difflib.unified_diff(before, after, "expected", "got", lineterm="", n=2))
    return _cut(lines) if lines else "they differ in line ends only"


def _same(one: object, other: object) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true aren't."""
    return canonical_json(_numbers(one)) == canonical_json(_numbers(other))


def _numbers(data: object) -> object:
    if isinstance(data, float) and data.is_integer():
        return int(data)
    if isinstance(data, dict):
        return {key: _numbers(value) for key, value in cast("dict[str, object]", data).items()}
    return [_numbers(value) for value in cast("list[object]", data)] if isinstance(data, list) else data


def _check_data(expected: ContentFile, content: Content) -> Iterator[Finding]:
    try:
        data = content.json
    except ValueError as error:
        key = ("schema",) if expected.json_schema is not None else ("json",)
        yield Finding(
            key, f"{content.name} is not JSON: {error}", got=_line(content.text), block=_lines_of(content.text)
        )
        return
    if expected.json_schema is not None:
        yield from _check_schema(expected.json_schema, data, content.name)
    for path, value in (expected.json_values or {}).items():
        key = ("json", path)
        try:
            found = value_at(data, parse_json_path(path))
        except JsonPathError as error:
            yield Finding(key, f"{content.name} has no {path}: {error}", shown(value), shown(data))
            continue
        if not _same(found, value):
            yield Finding(key, f"{path} of {content.name} isn't what was expected", shown(value), shown(found))


def _check_schema(schema: dict[str, Any], data: object, name: str) -> Iterator[Finding]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    validator: Any = validator_for(schema, default=Draft202012Validator)(schema)
    errors: list[Any] = sorted(validator.iter_errors(data), key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        lines = [f"{error.json_path}: {error.message.splitlines()[0]}" for error in errors]
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        what = f"{name} doesn't fit the schema: {lines[0][:_MOST]}{more}"
        yield Finding(("schema",), what, got=shown(data), block=_cut(lines) if len(lines) > 1 else None)


def _call_check(reference: str, content: Content, root: Path, source: Path, run: object) -> Iterator[Finding]:
    """Call a function of the project with the content, and with the run if it takes a second argument."""
    file, (_, _, name) = check_file(reference, root, source), reference.partition(":")
    if file is None:
        yield Finding(("python",), f"there is no file for the check {reference}")
        return
    loaded = load_python_files(root, [file])
    check = loaded.files[0].namespace.get(name) if loaded.files else None
    if loaded.diagnostics:
        fault = loaded.diagnostics[0]
        yield Finding(("python",), f"the check {reference} can't be imported: {fault.message} ({fault.place})")
    elif not callable(check):
        yield Finding(("python",), f"the check {reference} is not a function")
    else:
        try:
            passed = _call(check, content.data, run)
        except Exception as error:  # noqa: BLE001 (a check fails by raising, whatever it raises)
            what = f"the check {reference} failed: {exception_text(error)}"
            yield Finding(("python",), what.partition("\n")[0], got=_line(content.text), block=_frame(error, root))
        else:
            if passed is False:
                yield Finding(("python",), f"the check {reference} returned False", got=_line(content.text))
    if loaded.space is not None:
        loaded.space.forget()


def _call(check: Callable[..., object], data: object, run: object) -> object:
    arguments = (data, run) if _takes_two(check) else (data,)
    passed = check(*arguments)
    if inspect.iscoroutine(passed):
        coroutine = passed
        return run_blocking(lambda: coroutine)
    return passed


def _takes_two(check: Callable[..., object]) -> bool:
    try:
        inspect.signature(check).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _frame(error: BaseException, root: Path) -> str | None:
    """Where in the project a check failed, and what it says."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_relative_to(root)]
    if not frames:
        return None
    last = frames[-1]
    place = f"{Path(last.filename).relative_to(root).as_posix()}:{last.lineno}: {last.line}"
    return "\n".join([place, *exception_text(error).splitlines()[1:]])


def shown(data: object) -> str:
    """A value in a line."""
    return _line(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False))


def _line(text: str) -> str:
    """A text in a line, quoted if it has several."""
    line = (
        text if len(text.splitlines()) < 2 and text == text.strip() and text else json.dumps(text, ensure_ascii=False)
    )
    return line if len(line) <= _MOST else f"{line[: _MOST - 1]}…"


def _lines_of(text: str) -> str | None:
    """A text of several lines as a block; None for one that is shown in a line."""
    lines = text.splitlines()
    return _cut([f"│ {line}" for line in lines]) if len(lines) > 1 or len(text) > _MOST else None


def _cut(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([f"… {more} more lines"] if more > 0 else [])])
