"""Type adapters of PydanticAI's modules are built at their first use, and are what they would have been."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import gc, importlib, json, pkgutil, sys, warnings
gc.disable()
if sys.argv[1] == "deferred":
    from llm_do._startup.process import defer_adapters
    defer_adapters(); defer_adapters()
from pydantic import TypeAdapter
import pydantic_ai
warnings.simplefilter("ignore")
for name in sys.argv[2:] or [each.name for each in pkgutil.walk_packages(pydantic_ai.__path__, "pydantic_ai.")]:
    try:
        importlib.import_module(name)
    except (ImportError, SystemExit):
        pass
adapters = [each for each in gc.get_objects() if issubclass(type(each), TypeAdapter)]
unbuilt = sum(not each.pydantic_complete for each in adapters)
schemas = {}
for each in adapters:
    try:
        schemas[repr(each)] = each.json_schema(mode="serialization")
    except Exception as error:
        schemas[repr(each)] = type(error).__name__
some = {"__name__": "pydantic_ai.some", "TypeAdapter": TypeAdapter}
exec("of_body = TypeAdapter[int](int)\\ndef make(kind): return TypeAdapter[int](kind)\\nof_function = make(int)", some)
own = [TypeAdapter(int).pydantic_complete, some["of_function"].pydantic_complete, some["of_body"].pydantic_complete]
print(json.dumps({"unbuilt": unbuilt, "schemas": schemas, "own": own}))
"""


def _seen(way: str, *modules: str) -> Any:
    command = [sys.executable, "-c", SCRIPT, way, *modules]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    ("modules", "adapters"),
    [(["pydantic_ai.models.openai"], 8), pytest.param([], 30, marks=pytest.mark.slow)],
    ids=["openai", "all modules"],
)
def test_adapters_of_pydantic_ai_are_built_when_they_are_used(modules: list[str], adapters: int) -> None:
    eager, deferred = _seen("eager", *modules), _seen("deferred", *modules)
    assert deferred["schemas"] == eager["schemas"]
    assert len(eager["schemas"]) > adapters
    assert deferred["unbuilt"] >= eager["unbuilt"] + 6
    # What a project's file makes, and what a function of PydanticAI may make for it, is built at once.
    assert (eager["own"], deferred["own"]) == ([True, True, True], [True, True, False])
