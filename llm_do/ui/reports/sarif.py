"""Diagnostics as SARIF 2.1.0, the format that code scanning services and editors read.

Every rule of the report comes from the table of codes, so it says what `check --explain` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from llm_do.diagnostics.codes.code import Code
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.diagnostics.known_codes import CODES
from llm_do.text.sanitizer import escape_controls

__all__ = ["render_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BASE = "%SRCROOT%"
"""By SARIF's convention the root of the working copy, which whoever reads the report knows."""


def render_sarif(
    diagnostics: Iterable[Diagnostic], version: str, file: str, more: Mapping[str, object] | None = None
) -> str:
    """Show diagnostics as one SARIF log.

    Args:
        diagnostics: The diagnostics, with paths relative to the current folder.
        version: The version of llm-do.
        file: The file that findings about the project as a whole are shown at: services refuse those without a place.
        more: Properties of the run, such as what `--bounds` computes.

    Example:
        >>> from llm_do.diagnostics.codes.shape import unknown_key
        >>> from llm_do.diagnostics.diagnostic import Location
        >>> found = unknown_key("modle", "", ["model"]).at(Location("my agents/a.agent", 2, 1, 2, 6))
        >>> (run,) = json.loads(render_sarif([found], "0.5", "project.json"))["runs"]
        >>> place = run["results"][0]["locations"][0]["physicalLocation"]
        >>> run["results"][0]["ruleId"], place["artifactLocation"]["uri"], place["region"]["endColumn"]
        ('LD120', 'my%20agents/a.agent', 6)
    """
    found = list(diagnostics)
    codes = sorted({item.code for item in found})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "llm-do",
                "version": version,
                "rules": [_rule(CODES[code]) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, codes.index(item.code), file) for item in found],
    }
    if more:
        run["properties"] = dict(more)
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: Code) -> dict[str, Any]:
    text = f"{code.explanation}\n\nWrong:\n{code.wrong}\n\nRight:\n{code.right}\n\nTo fix it: {code.fix}"
    wrong, right = _fenced(code.wrong), _fenced(code.right)
    markdown = f"{code.explanation}\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n\nTo fix it: {code.fix}"
    return {
        "id": code.id,
        "shortDescription": {"text": f"{code.title}."},
        "fullDescription": {"text": code.explanation},
        "help": {"text": _lines(text), "markdown": _lines(markdown)},
        "defaultConfiguration": {"level": code.severity},
    }


def _fenced(text: str) -> str:
    return f"```\n{text}\n```"


def _lines(text: str) -> str:
    return "\n".join(escape_controls(line) for line in text.split("\n"))


def _result(item: Diagnostic, index: int, file: str) -> dict[str, Any]:
    parts = [item.message, item.hint, item.block]
    region = {"startLine": item.line, "startColumn": item.column}
    if item.end is not None:
        region |= {"endLine": item.end[0], "endColumn": item.end[1]}
    place = {"artifactLocation": _artifact(item.file or file), "region": region}
    return {
        "ruleId": item.code,
        "ruleIndex": index,
        "level": item.severity,
        "message": {"text": _lines("\n".join(part for part in parts if part is not None))},
        "locations": [{"physicalLocation": place}],
    }


def _artifact(file: str) -> dict[str, str]:
    """A file as a URI: relative to the current folder, unless it is outside of it."""
    path = Path(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix(), errors="surrogateescape"), "uriBaseId": _BASE}
