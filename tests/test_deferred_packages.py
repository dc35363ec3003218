"""Packages whose modules are imported at their first use export the same names as ever."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from llm_do._startup.deferred_packages import exported_names

LISTING = """
import importlib, json, pkgutil, sys
root = sys.argv[1]
if sys.argv[2] == "deferred":
    from llm_do._startup.deferred_packages import defer_packages
    defer_packages()
package = importlib.import_module(root)
before = len(sys.modules)
found = {}
for each in [root, *(i.name for i in pkgutil.walk_packages(package.__path__, root + ".") if i.ispkg)]:
    starred = {}
    exec(f"from {each} import *", starred)
    del starred["__builtins__"]
    starred.pop("annotations", None)  # of `from __future__ import annotations`
    module = importlib.import_module(each)
    for name, value in starred.items():
        assert getattr(module, name) is value and name in dir(module)
        if type(value).__name__ != "module":
            found[f"{each}.{name}"] = [getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))]
assert not hasattr(package, "Nothing") and not hasattr(package, "__wrapped__")
print(json.dumps([before, found]))
"""


def _listed(root: str, way: str) -> tuple[int, dict[str, list[str]]]:
    command = [sys.executable, "-c", LISTING, root, way]
    modules, names = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return modules, names


def _ends_well(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "good\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("root", ["openai.types", "anthropic.types"])
def test_a_deferred_package_has_the_same_names(root: str) -> None:
    pytest.importorskip(root.partition(".")[0])
    before, names = _listed(root, "eager")
    after, deferred = _listed(root, "deferred")
    assert deferred == names
    assert len(names) > 100
    assert after < before - 100


def test_modules_of_a_deferred_package_are_found_as_its_attributes() -> None:
    code = """
from llm_do._startup.deferred_packages import defer_packages
defer_packages(); defer_packages()
import sys, openai
assert "openai.types.batch" not in sys.modules
assert openai.types.batch.Batch is openai.types.Batch
assert isinstance(openai.types.Completion, type)
try:
    from openai.types import Nothing
except ImportError:
    print("good")
"""
    _ends_well(code)


@pytest.mark.slow
def test_to_ask_about_an_instance_of_a_class_does_not_import_it() -> None:
    code = """
import inspect, sys
from llm_do._startup.deferred_packages import asking_about, defer_packages
defer_packages()
from openai.types import responses
from openai.types.chat import ChatCompletion
from llm_do.models.providers.chat.model import OTHERS

def imported():
    return "openai.types.responses.response" in sys.modules

def ask(value):
    return isinstance(value, responses.Response), issubclass(type(value), responses.Response)

def fetch():
    return responses.Response

value = ChatCompletion.model_construct()
assert asking_about(OTHERS, ask, value) == (False, False) and not imported()
stand_in = asking_about(OTHERS, fetch)
assert asking_about(OTHERS, fetch) is stand_in
assert "Response" not in vars(responses) and not imported()
assert stand_in.model_fields and imported()
made = stand_in(id="x", created_at=1, model="m", object="response", output=[], parallel_tool_calls=True,
                tool_choice="auto", tools=[])
assert type(made) is responses.Response and isinstance(made, stand_in) and not isinstance(value, stand_in)
assert issubclass(responses.Response, stand_in)
assert asking_about(OTHERS, ask, made) == (True, True)
assert asking_about(OTHERS, fetch) is responses.Response
for name in OTHERS:
    package, _, name = name.rpartition(".")
    one = getattr(sys.modules[package], name)
    assert inspect.isclass(one) and one.__name__ == name
print("good")
"""
    _ends_well(code)


def test_other_threads_get_the_class_itself_while_it_is_asked_about() -> None:
    code = """
import sys, threading
from llm_do._startup.deferred_packages import asking_about, defer_packages
defer_packages()
from openai.types import responses
seen = []
def ask():
    thread = threading.Thread(target=lambda: seen.append(responses.Response))
    thread.start()
    thread.join()
asking_about(frozenset({"openai.types.responses.Response"}), ask)
assert seen == [responses.Response]
print("good")
"""
    _ends_well(code)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", {}),
        ("# Generated.\n\nfrom __future__ import annotations\n\nfrom .a import B as B\n", {"B": "a"}),
        ("from .a.b import (\n    B as B,\n    C as C,\n)\nfrom .d import D as D", {"B": "a.b", "C": "a.b", "D": "d"}),
        ("from .a import B\n", None),
        ("from .a import B as C\n", None),
        ("from .a import *\n", None),
        ("from a import B as B\n", None),
        ("from .a import B as B; print(B)\n", None),
        ("from .a import B as B\nB.change()\n", None),
        ("if True:\n    from .a import B as B\n", None),
        ("from .a import a as a\n", None),
        ("'''\nfrom .a import B as B\n'''\n", None),
    ],
)
def test_only_a_package_without_other_statements_is_deferred(text: str, names: dict[str, str] | None) -> None:
    assert exported_names(text) == names
