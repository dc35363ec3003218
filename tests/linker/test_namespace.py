from __future__ import annotations

import gc
import sys
import threading
import types
import warnings
from pathlib import Path

import pytest

from llm_do.linker.linker import link
from llm_do.linker.python.python_files import PythonFiles, load_python_files
from tests.linker.conftest import Make, agent, manifest, write_files


def load(root: Path, *names: str) -> PythonFiles:
    return load_python_files(root, [root / name for name in names])


def value(files: PythonFiles, label: str, name: str) -> object:
    assert files.diagnostics == []
    file = files.by_label(label)
    assert file is not None
    return file.namespace[name]


def call(files: PythonFiles, label: str, name: str) -> object:
    function = value(files, label, name)
    assert isinstance(function, types.FunctionType)
    return function()


def test_siblings_are_imported_by_their_bare_names(make: Make) -> None:
    root = make({"tools.py": "import schemas\nfrom schemas import X\nY = schemas.X + X", "schemas.py": "X = 1"})
    assert value(load(root, "schemas.py", "tools.py"), "tools.py", "Y") == 2


def test_an_imported_sibling_need_not_be_listed(make: Make) -> None:
    root = make({"tools.py": "from helpers.text import SHOUT", "helpers/text.py": "SHOUT = 'HI'"})
    assert value(load(root, "tools.py"), "tools.py", "SHOUT") == "HI"


def test_every_importer_gets_the_same_module(make: Make) -> None:
    root = make(
        {
            "lib/state.py": "COUNT = []",
            "lib/a.py": "import state\nSTATE = state",
            "b.py": "import lib.state\nSTATE = lib.state",
            "c.py": "from lib import state\nSTATE = state",
        }
    )
    files = load(root, "b.py", "c.py", "lib/a.py", "lib/state.py")
    states = [value(files, label, "STATE") for label in ("b.py", "c.py", "lib/a.py")]
    assert states[0] is states[1] is states[2]


def test_two_files_may_import_each_other(make: Make) -> None:
    root = make(
        {
            "a.py": "import b\nNAME = 'a'\ndef other():\n    return b.NAME",
            "b.py": "import a\nNAME = 'b'\ndef other():\n    return a.NAME",
        }
    )
    files = load(root, "a.py", "b.py")
    assert (call(files, "a.py", "other"), call(files, "b.py", "other")) == ("b", "a")


def test_packages_with_relative_imports_work(make: Make) -> None:
    root = make(
        {
            "kit/__init__.py": "from .core import CORE\nfrom . import extra",
            "kit/core.py": "from ..shared import BASE\nCORE = BASE + 1",
            "kit/extra.py": "import kit.core\nEXTRA = kit.core.CORE + 1",
            "shared.py": "BASE = 1",
            "tools.py": "import kit.extra as e\nfrom kit import CORE\nfrom kit.core import *\nALL = (CORE, e.EXTRA)",
        }
    )
    files = load(root, "kit/__init__.py", "tools.py")
    assert value(files, "tools.py", "ALL") == (2, 3)


def test_siblings_take_precedence_over_modules_at_the_root(make: Make) -> None:
    root = make(
        {
            "schemas.py": "WHERE = 'root'",
            "inner/schemas.py": "WHERE = 'inner'",
            "inner/tools.py": "from schemas import WHERE",
            "other/tools.py": "from schemas import WHERE",
        }
    )
    files = load(root, "inner/tools.py", "other/tools.py")
    assert value(files, "inner/tools.py", "WHERE") == "inner"
    assert value(files, "other/tools.py", "WHERE") == "root"


def test_files_of_one_name_in_different_folders_are_different_modules(make: Make) -> None:
    root = make({"a/tools.py": "NAME = 'a'", "b/tools.py": "NAME = 'b'", "tools.py": "NAME = 'root'"})
    files = load(root, "a/tools.py", "b/tools.py", "tools.py")
    assert [file.namespace["NAME"] for file in files.files] == ["a", "b", "root"]


def test_unusual_file_names_can_be_listed(make: Make) -> None:
    names = ["my-tools.py", "v1.2/my.tools.py", "50%.py", "with space.py", "a.py", "a/x.py", "b.py", "b/__init__.py"]
    root = make({name: f"NAME = {name!r}" for name in names})
    files = load(root, *names)
    assert files.diagnostics == []
    assert [file.namespace["NAME"] for file in files.files] == names


def test_an_import_inside_a_function_works_when_it_is_called_later(make: Make) -> None:
    root = make(
        {
            "tools.py": """
                def late():
                    import late_one
                    from lib.late_two import TWO
                    return late_one.ONE + TWO
                """,
            "late_one.py": "from lib import late_two\nONE = late_two.TWO - 1",
            "lib/late_two.py": "TWO = 2",
        }
    )
    files = load(root, "tools.py")
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call(files, "tools.py", "late")))
    thread.start()
    thread.join()
    assert results == [3]


def test_two_projects_never_see_each_others_modules(tmp_path: Path) -> None:
    code = "import schemas\ndef late():\n    import schemas, only_{0}\n    return schemas.WHO + only_{0}.WHO"
    loaded: dict[str, PythonFiles] = {}
    for who in ("one", "two"):
        root = write_files(
            tmp_path / who,
            {"tools.py": code.format(who), "schemas.py": f"WHO = '{who}'", f"only_{who}.py": f"WHO = '!{who}'"},
        )
        loaded[who] = load(root, "schemas.py", "tools.py")
    assert call(loaded["one"], "tools.py", "late") == "one!one"
    assert call(loaded["two"], "tools.py", "late") == "two!two"
    stranger = load(write_files(tmp_path / "three", {"x.py": "import only_one"}), "x.py")
    assert [(item.code, item.message) for item in stranger.diagnostics] == [
        ("LD302", "the import raised ModuleNotFoundError: No module named 'only_one'")
    ]


def test_nothing_is_left_in_global_import_state(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    root = make(
        {
            "tools.py": """
                import sys, os, importlib
                sys.path.insert(0, os.path.dirname(__file__))
                import unlikely_sibling_name
                importlib.import_module("unlikely_other_name")
                """,
            "unlikely_sibling_name.py": "",
            "unlikely_other_name.py": "",
        }
    )
    path, modules = list(sys.path), set(sys.modules)
    assert load(root, "tools.py").diagnostics == []
    assert sys.path == path
    assert {name for name in set(sys.modules) - modules if not name.startswith("_llm_do_project_")} == set()
    # What a file imports by itself is cached by Python as usual; files that we import leave nothing.
    assert {file.name.partition(".")[0] for file in root.rglob("*.pyc")} <= {"unlikely_other_name"}


def test_a_file_named_like_a_standard_module_does_not_affect_other_code(make: Make) -> None:
    root = make(
        {
            "types.py": "from types import SimpleNamespace\nimport json\nMINE = True",
            "tools.py": "import types, json, email.message\nfrom types import MINE\nOK = json.dumps([1])",
        }
    )
    files = load(root, "tools.py", "types.py")
    assert value(files, "tools.py", "OK") == "[1]"
    import types as standard

    assert not hasattr(standard, "MINE")


def test_an_unlisted_file_or_a_folder_of_data_does_not_hide_a_library(make: Make) -> None:
    root = make({"tools.py": "import random, yaml\nOK = random.random, yaml.dump", "random.py": "", "yaml/x.txt": ""})
    assert value(load(root, "tools.py"), "tools.py", "OK")


def test_a_listed_file_in_a_folder_named_like_a_library_is_found(make: Make) -> None:
    root = make({"tools.py": "from yaml.mine import X", "yaml/mine.py": "X = 1"})
    assert value(load(root, "tools.py", "yaml/mine.py"), "tools.py", "X") == 1


def test_modules_behave_normally_with_libraries(make: Make) -> None:
    root = make(
        {
            "schemas.py": """
                from __future__ import annotations
                import dataclasses, inspect, pickle, sys, typing
                from pydantic import BaseModel
                class Parent(BaseModel):
                    child: Child | None = None
                class Child(BaseModel):
                    parent: Parent | None = None
                @dataclasses.dataclass
                class Point:
                    x: int
                def f(point: Point) -> Child: ...
                Parent(child={"parent": {}})
                HINTS = typing.get_type_hints(f)
                COPY = pickle.loads(pickle.dumps(Point(1))) == Point(1)
                SOURCE = inspect.getsource(f)
                SELF = sys.modules[__name__].f is f
                """
        }
    )
    files = load(root, "schemas.py")
    assert value(files, "schemas.py", "COPY") is True
    assert value(files, "schemas.py", "SELF") is True
    assert value(files, "schemas.py", "SOURCE") == "def f(point: Point) -> Child: ...\n"
    assert value(files, "schemas.py", "HINTS") == {
        "point": value(files, "schemas.py", "Point"),
        "return": value(files, "schemas.py", "Child"),
    }


def test_each_load_runs_every_file_once(make: Make) -> None:
    root = make(
        {
            "log.py": "import builtins\nLOG = builtins.__dict__.setdefault('_test_log', [])",
            "a.py": "from log import LOG\nLOG.append('a')\nimport b",
            "b.py": "from log import LOG\nLOG.append('b')\nimport a",
        }
    )
    import builtins

    try:
        load(root, "a.py", "b.py", "log.py")
        assert vars(builtins)["_test_log"] == ["a", "b"]
        (root / "a.py").write_text("from log import LOG\nLOG.append('c')\nimport b\n")
        load(root, "a.py", "b.py", "log.py")
        assert vars(builtins)["_test_log"] == ["a", "b", "c", "b"]
    finally:
        vars(builtins).pop("_test_log", None)


@pytest.mark.slow
def test_modules_are_freed_with_their_project_and_when_linking_fails(make: Make) -> None:
    before = {name for name in sys.modules if name.startswith("_llm_do_project_")}
    root = make(
        {
            "project.json": manifest(python_files=["tools.py"]),
            "main.agent": agent("main", "tools: [late]"),
            "tools.py": "def late():\n    import schemas\n    return schemas.X\nTOOLS = [late]",
            "schemas.py": "X = 1",
        }
    )
    project = link(root)
    late = project.registry["late"].value
    assert late() == 1
    del project
    gc.collect()
    assert {name for name in sys.modules if name.startswith("_llm_do_project_")} <= before
    assert late() == 1


def test_a_module_with_an_impossible_file_name_is_reported_as_missing(make: Make) -> None:
    (item,) = load(make({"tools.py": f"import {'x' * 300}"}), "tools.py").diagnostics
    assert "the import raised ModuleNotFoundError: No module named" in item.message


def test_modules_can_be_freed_while_another_thread_imports(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Importing(str):
        """A module's name that makes another thread import something, when it is compared or searched."""

        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            self.compare()
            return str.__eq__(self, other)

        def __contains__(self, part: object) -> bool:
            self.compare()
            return str.__contains__(self, part)

        def compare(self) -> None:
            monkeypatch.setitem(sys.modules, "imported_meanwhile", types.ModuleType("imported_meanwhile"))

    monkeypatch.setitem(sys.modules, Importing("importing"), types.ModuleType("importing"))
    root = make({"project.json": manifest(python_files=["tools.py"]), "tools.py": "import schemas", "schemas.py": ""})
    before = {name for name in sys.modules if name.startswith("_llm_do_project_")}
    files = load(root, "tools.py")
    assert {name for name in sys.modules if name.startswith("_llm_do_project_")} > before
    assert files.space is not None

    files.space.forget()

    assert {name for name in sys.modules if name.startswith("_llm_do_project_")} == before
    assert "imported_meanwhile" in sys.modules


def test_a_module_that_code_has_registered_itself_is_freed_with_the_others(make: Make) -> None:
    code = "import sys, types\nsys.modules[__name__ + '.aliased'] = types.ModuleType('aliased')\n"
    root = make({"project.json": manifest(python_files=["tools.py"]), "tools.py": code})
    before = {name for name in sys.modules if name.startswith("_llm_do_project_")}
    files = load(root, "tools.py")
    assert any(name.endswith(".aliased") for name in sys.modules)
    assert files.space is not None

    files.space.forget()

    assert {name for name in sys.modules if name.startswith("_llm_do_project_")} == before


def test_a_failed_late_import_is_retried(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def late():\n    import config\n    return config.KEY"
    files = load(make({"tools.py": code, "config.py": "import os\nKEY = os.environ['UNLIKELY_KEY']"}), "tools.py")
    monkeypatch.delenv("UNLIKELY_KEY", raising=False)
    with pytest.raises(KeyError):
        call(files, "tools.py", "late")
    monkeypatch.setenv("UNLIKELY_KEY", "x")
    assert call(files, "tools.py", "late") == "x"


def test_a_missing_project_module_is_reported_by_its_own_name(make: Make) -> None:
    root = make({"tools.py": "import lib.gone", "lib/x.py": ""})
    (item,) = load(root, "tools.py").diagnostics
    assert item.message == "the import raised ModuleNotFoundError: No module named 'lib.gone'"


def test_a_name_missing_from_a_sibling_is_reported_without_internal_names(make: Make) -> None:
    root = make({"tools.py": "from schemas import gone", "schemas.py": ""})
    (item,) = load(root, "tools.py").diagnostics
    assert item.message.startswith("the import raised ImportError: cannot import name 'gone' from 'schemas'")


def test_an_import_warning_stays_a_warning_where_warnings_are_errors(make: Make) -> None:
    root = make({"tools.py": "import warnings\nwarnings.warn('old', DeprecationWarning)\nX = 'a' is None"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        assert load(root, "tools.py").diagnostics == []
        assert [item.category for item in caught] == [SyntaxWarning, DeprecationWarning]
        assert warnings.filters[0][0] == "error"
