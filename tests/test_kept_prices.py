"""Of the prices of all providers, a process of the command line reads those that it asks about."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from genai_prices.data import providers
from genai_prices.types import Provider

from llm_do._startup.compiled_texts import KNOWN

pytestmark = pytest.mark.skipif(sys.version_info[:2] not in KNOWN, reason="nothing is kept with this Python")

PROCESS = """
import copy, json, os, pickle, sys
from decimal import Decimal
sys.pycache_prefix = sys.argv[1]
from llm_do._startup.compiled_texts import keep_compiled_texts
keep_compiled_texts("models")
sys.pycache_prefix = None
from llm_do._startup.kept_prices import keep_prices
keep_prices()
keep_prices()
executed = []
sys.addaudithook(lambda event, arguments: event == "exec" and executed.append(arguments[0].co_filename))
from genai_prices import Usage, calc_price, data
from genai_prices.data import providers
from genai_prices.types import Provider

def unread():
    return [each.id for each in providers if type(each) is not Provider]

def by_id(id):
    return next(each for each in providers if each.id == id)

found = {"isinstance": all(isinstance(each, Provider) for each in providers), "unread": [len(unread())]}
exec(sys.argv[2])
found["all"] = repr(providers)
found["unread"].append(len(unread()))
found["executed"] = sum(os.path.basename(each) == "data.py" for each in executed)
print(json.dumps(found))
"""

ASK = """
price = calc_price(Usage(input_tokens=1000, output_tokens=1000), "gpt-5", provider_api_url="https://api.openai.com/v1")
found["read"] = sorted({each.id for each in providers} - set(unread()))
found["price"] = [str(price.total_price), price.provider is by_id("openai"), price.model.context_window]
"""

CHANGE = """
import dataclasses
by_id("anthropic").models.clear()
found["copies"] = [
    copy.copy(by_id("mistral")).models[0].id,
    pickle.loads(pickle.dumps(by_id("groq"))) == by_id("groq"),
    dataclasses.replace(by_id("azure"), name="other").models == by_id("azure").models,
    copy.deepcopy(by_id("cohere")) == by_id("cohere"),
]
by_id("google").models = []
found["assigned"] = [by_id("google").models, by_id("google").extractors is not None]
found["names"] = [data.Provider is Provider, data.Decimal is Decimal, data.__all__, hasattr(data, "other")]
"""

CLOSE = "os.closerange(3, 200)"

REFUSE = """
from genai_prices import types
def refuse(*arguments, **named):
    if sys._getframe(1).f_code.co_filename == "<prices>":
        raise TypeError("another version takes other arguments")
    return made(*arguments, **named)
made, types.UsageExtractor = types.UsageExtractor, refuse
"""


def _provider(id: str) -> Provider:
    return next(each for each in providers if each.id == id)


def _ran(folder: Path, code: str) -> dict[str, Any]:
    command = [sys.executable, "-bb", "-W", "error", "-c", PROCESS, str(folder), code]
    environment = {"PATH": "", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_price_is_the_same_and_only_its_provider_is_read(tmp_path: Path) -> None:
    first, second = (_ran(tmp_path, ASK) for _ in range(2))

    assert (first["unread"], second["unread"]) == ([0, 0], [len(providers), 0])
    assert (first["executed"], second["executed"]) == (1, 0)
    assert second["read"] == ["openai"]
    assert second["price"] == first["price"] == ["0.01125", True, 400000]
    assert first["all"] == second["all"] == repr(providers)
    assert second["isinstance"]


@pytest.mark.parametrize("change", [CLOSE, REFUSE])
def test_what_cannot_be_read_comes_from_the_module_itself(tmp_path: Path, change: str) -> None:
    _ran(tmp_path, "")
    found = _ran(tmp_path, change)

    assert found == {"isinstance": True, "unread": [len(providers), 0], "executed": 1, "all": repr(providers)}


def test_what_code_changes_is_not_kept_for_other_processes(tmp_path: Path) -> None:
    first, second = (_ran(tmp_path, CHANGE) for _ in range(2))
    third = _ran(tmp_path, "")

    assert first == {**second, "unread": [0, 0]}
    assert first["all"] != third["all"] == repr(providers)
    assert third["unread"] == [len(providers), 0]
    assert second["copies"] == [_provider("mistral").models[0].id, True, True, True]
    assert second["assigned"] == [[], True]
    assert second["names"] == [True, True, ["providers"], False]
