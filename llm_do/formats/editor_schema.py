"""JSON Schemas of the manifest, of agents' frontmatter and of test files, for editors to complete and check them."""

from __future__ import annotations

from typing import Any, cast

from llm_do.formats.agent_file import AgentFile
from llm_do.formats.case_file import TestsFile
from llm_do.formats.manifest import ManifestFile

__all__ = ["agent_schema", "cases_schema", "project_schema"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def agent_schema() -> dict[str, Any]:
    """The JSON Schema of an `.agent` file's frontmatter.

    Example:
        >>> agent_schema()["required"]
        ['name']
    """
    schema = AgentFile.model_json_schema()
    schema["not"] = {
        "anyOf": [{"required": ["model", "compatible_models"]}, {"required": ["output", "output_model_ref"]}]
    }
    return _finished(schema)


def project_schema() -> dict[str, Any]:
    """The JSON Schema of `project.json`.

    Example:
        >>> project_schema()["required"]
        ['version', 'entry']
    """
    schema = ManifestFile.model_json_schema()
    schema["required"] = ["version", "entry"]
    entry = schema["$defs"]["EntryFile"]
    entry["oneOf"] = [{"required": [kind]} for kind in ("agent", "function", "flow")]
    return _finished(schema)


def cases_schema() -> dict[str, Any]:
    """The JSON Schema of a `*.test.yaml` file.

    Example:
        >>> cases_schema()["required"]
        ['tests']
    """
    schema = TestsFile.model_json_schema()
    schema["required"] = ["tests"]
    schema["properties"]["tests"]["minItems"] = 1
    return _finished(schema)


def _finished(schema: dict[str, Any]) -> dict[str, Any]:
    _tidy(schema)
    for holder in (schema, *schema["$defs"].values()):
        for part in holder.get("properties", {}).values():
            if "$ref" in part:  # repeated at the key: pydantic leaves it out where both would be the same
                part.setdefault("description", schema["$defs"][part["$ref"].rpartition("/")[2]]["description"])
    return {"$schema": _DIALECT, **schema}


def _tidy(part: object, names: bool = False) -> None:
    """Remove titles and null defaults that carry no information; `names` is for mappings whose keys are names."""
    if isinstance(part, list):
        for item in cast("list[object]", part):
            _tidy(item)
        return
    if not isinstance(part, dict):
        return
    schema = cast("dict[str, object]", part)
    if not names:
        if not str(schema.get("title", "")).startswith("llm-do"):
            schema.pop("title", None)
        if schema.get("default", ...) is None:
            del schema["default"]
    for key, value in schema.items():
        if names or key not in ("default", "const", "enum", "examples"):
            _tidy(value, names=not names and key in ("properties", "$defs"))
