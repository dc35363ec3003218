"""The report as JSON."""

from __future__ import annotations

import json

from llm_do import __version__
from llm_do.testing.cases.results import SuiteResult
from llm_do.text.surrogates import replace_surrogates_in_data

__all__ = ["VERSION", "to_json"]

VERSION = 1
"""The version of the format: fields may be added to it, and none is removed or changes its meaning."""


def to_json(suite: SuiteResult) -> str:
    """The report's text, which ends with a line break."""
    data = {"report": VERSION, "llm_do": __version__, **suite.to_dict()}
    return json.dumps(replace_surrogates_in_data(data), indent=1, ensure_ascii=False) + "\n"
