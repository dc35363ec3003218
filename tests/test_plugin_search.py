"""Commands that only read files import pydantic without what its search for plugins needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.cli_processes import environment

READING = """
import sys
from llm_do._startup.process import hasten_reading
from llm_do._startup.stand_ins import import_plugin_search
hasten_reading(); import_plugin_search()
import pydantic
assert pydantic.TypeAdapter(list[int]).validate_python(["1"]) == [1]
assert "importlib.metadata" not in sys.modules
import importlib.metadata
assert importlib.metadata.version("pydantic") == pydantic.VERSION
print("good")
"""

SEARCHING = """
from llm_do._startup.stand_ins import import_plugin_search
import_plugin_search()
import sys, pydantic
pydantic.TypeAdapter(int)
assert sys.modules["importlib.metadata"].version("plugged") == "1.0"
print("good")
"""

PLUGIN = """
class Plugin:
    def new_schema_validator(self, *args, **named):
        return None, None, None

print("plugged")
plugin = Plugin()
"""

SEARCHED_BEFORE = """
import importlib.metadata, sys
from llm_do._startup.stand_ins import import_plugin_search
import_plugin_search()
assert sys.modules["importlib.metadata"] is importlib.metadata and "pydantic" not in sys.modules
print("good")
"""

NEEDS_MORE = """
import sys, pydantic
from llm_do._startup import stand_ins
kept = {}
pydantic.create_model = lambda name: exec(
    "import importlib.metadata as whole; from importlib.metadata import version, entry_points", kept
)
stand_ins.import_plugin_search()
import importlib.metadata
assert kept["version"] is kept["whole"].version is importlib.metadata.version
assert kept["whole"].PackageNotFoundError is importlib.metadata.PackageNotFoundError
scripts = importlib.metadata.entry_points(group="console_scripts")
assert list(kept["entry_points"](group="console_scripts")) == list(scripts)
print("good")
"""

CHECK = """
import sys
from llm_do.cli import app
code = app.run(["check"])
print(code, [name for name in ("importlib.metadata", "email", "zipfile") if name in sys.modules])
"""


def _out(code: str, folder: Path | None = None) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def test_the_search_is_imported_without_the_metadata_of_packages() -> None:
    assert _out(READING) == "good\n"


def test_a_plugin_is_found_where_plugins_are_searched_for(tmp_path: Path) -> None:
    (tmp_path / "plugged.py").write_text(PLUGIN)
    folder = tmp_path / "plugged-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:plugin\n")
    assert _out(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SEARCHING}") == "plugged\ngood\n"


def test_nothing_is_replaced_that_has_been_imported() -> None:
    assert _out(SEARCHED_BEFORE) == "good\n"


def test_whatever_else_is_taken_from_the_module_is_its_own() -> None:
    assert _out(NEEDS_MORE) == "good\n"


def test_check_does_not_import_it(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text("---\nname: main\n---\nAnswer.\n")
    assert _out(CHECK, tmp_path).splitlines()[-1] == "0 []"
