"""Filling `{{name}}` in instructions with fields of the input: once, as text, never rendered again."""

from __future__ import annotations

import re

from pydantic import BaseModel

from llm_do.errors import RunError
from llm_do.text.output_text import output_text

__all__ = ["render_template"]

_FIELD = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def render_template(text: str, values: BaseModel) -> str:
    """Fill a template with an input's fields."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in type(values).model_fields:
            known = ", ".join(type(values).model_fields)
            raise RunError(f"the template uses {name!r}, which the input lacks", hint=f"It has: {known}.")
        return output_text(getattr(values, name))

    return _FIELD.sub(value, text)
