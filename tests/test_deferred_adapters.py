"""Type adapters of PydanticAI's modules are built at their first use, and are what they would have been."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCRIPT = """
import gc, json, sys
if sys.argv[1] == "deferred":
    from llm_do._startup.process import defer_adapters
    defer_adapters(); defer_adapters()
from pydantic import TypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
adapters = [each for each in gc.get_objects() if isinstance(each, TypeAdapter)]
unbuilt = sum(not each.pydantic_complete for each in adapters)
schemas = {}
for each in adapters:
    try:
        schemas[repr(each)] = each.json_schema(mode="serialization")
    except Exception as error:
        schemas[repr(each)] = type(error).__name__
wrong = "none"
try:
    TypeAdapter("list[Nothing]").validate_python([])
except Exception as error:
    wrong = type(error).__name__
own = [TypeAdapter(list[int]).pydantic_complete, wrong]
print(json.dumps({"unbuilt": unbuilt, "schemas": schemas, "own": own}))
"""


def _seen(way: str) -> Any:
    return json.loads(subprocess.run([sys.executable, "-c", SCRIPT, way], capture_output=True, check=True).stdout)


def test_adapters_of_pydantic_ai_are_built_when_they_are_used() -> None:
    eager, deferred = _seen("eager"), _seen("deferred")
    assert deferred["schemas"] == eager["schemas"]
    assert len(eager["schemas"]) > 8
    assert deferred["unbuilt"] >= eager["unbuilt"] + 6
    assert deferred["own"] == eager["own"]
    assert eager["own"][0] is True
