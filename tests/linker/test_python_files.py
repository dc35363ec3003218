from __future__ import annotations

import warnings

import pytest

from llm_do.linker.python.python_files import load_python_files, run_user_code
from tests.linker.conftest import Make


def faults(make: Make, files: dict[str, object]) -> list[tuple[str, str, int, int, str]]:
    root = make(files)
    found = load_python_files(root, sorted(root / name for name in files)).diagnostics
    return [(item.code, item.file, item.line, item.column, item.message) for item in found]


@pytest.mark.parametrize(
    ("code", "line", "column", "message"),
    [
        ("x = 1\nraise ValueError('no\\nway')", 2, 1, "the import raised ValueError: no way"),
        ("x = (\n  1 +\n  y)", 3, 3, "the import raised NameError: name 'y' is not defined"),
        ("é = 'ü' + nope", 1, 11, "the import raised NameError: name 'nope' is not defined"),
        ("def f():\n  g()\ndef g():\n  1 / 0\nf()", 4, 3, "the import raised ZeroDivisionError: division by zero"),
        ("import json\njson.loads('{')", 2, 1, "the import raised JSONDecodeError: Expecting property name"),
        ("import sys\nsys.exit(3)", 2, 1, "the import ended the program: SystemExit: 3"),
        ("raise GeneratorExit", 1, 1, "the import raised GeneratorExit"),
        ("class E(Exception):\n  def __str__(self): raise E()\nraise E()", 3, 1, "the import raised E"),
        ("import no_such_thing", 1, 1, "the import raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def f():\n  f()\nf()", 2, 3, "the import raised RecursionError: maximum recursion depth exceeded"),
        ("import sys\nsys.modules[__name__] = 5", 1, 1, "the import raised TypeError: vars() argument must have"),
        ("eval('(')", 1, 1, "the import raised SyntaxError: '(' was never closed"),
    ],
)
def test_a_file_that_raises_gives_one_diagnostic_at_its_line(
    make: Make, code: str, line: int, column: int, message: str
) -> None:
    ((code_, file, *place, text),) = faults(make, {"tools.py": code})
    assert (code_, file, place) == ("LD302", "tools.py", [line, column])
    assert text.startswith(message)


@pytest.mark.parametrize(
    ("code", "line", "column", "message"),
    [
        ("def add(a, b)\n  return a", 1, 14, "expected ':'"),
        ("x = 'é' 1", 1, 9, "invalid syntax"),
        ("x = 1\ny = = 2", 2, 5, "invalid syntax"),
        ("return 1", 1, 1, "'return' outside function"),
        ("x = (1,", 1, 5, "'(' was never closed"),
    ],
)
def test_a_syntax_error_has_its_line_and_column(make: Make, code: str, line: int, column: int, message: str) -> None:
    ((code_, file, *place, text),) = faults(make, {"tools.py": code})
    assert (code_, file, place) == ("LD301", "tools.py", [line, column])
    assert message in text


@pytest.mark.parametrize("data", [b"x = '\xff'", b"x = 1\0", b"# coding: klingon\n", b"(" * 100_000, b"\xff\xfex\0"])
def test_a_file_that_is_not_text_gives_one_diagnostic(make: Make, data: bytes) -> None:
    ((code, file, *_),) = faults(make, {"tools.py": data})
    assert (code, file) in [("LD301", "tools.py"), ("LD302", "tools.py")]


def test_a_byte_order_mark_and_windows_line_endings_are_accepted(make: Make) -> None:
    assert faults(make, {"tools.py": b"\xef\xbb\xbfx = 1\r\ny = 2\r\n"}) == []


def test_one_fault_is_reported_once_however_many_files_import_it(make: Make) -> None:
    found = faults(
        make, {"a.py": "import bad", "b.py": "from bad import x", "bad.py": "x = 1\n1 / 0", "c.py": "import a"}
    )
    assert found == [("LD302", "bad.py", 2, 1, "the import raised ZeroDivisionError: division by zero")]


def test_a_broken_file_is_run_once(make: Make) -> None:
    root = make(
        {"a.py": "import bad", "bad.py": "import sys\nsys._llm_do_ran = getattr(sys, '_llm_do_ran', 0) + 1\n1 / 0"}
    )
    import sys

    try:
        load_python_files(root, [root / "a.py", root / "bad.py"])
        assert vars(sys)["_llm_do_ran"] == 1
    finally:
        vars(sys).pop("_llm_do_ran", None)


def test_the_location_is_the_projects_helper_and_not_the_library(make: Make) -> None:
    found = faults(
        make,
        {
            "tools.py": "from lib import helper\nhelper.go()",
            "lib/helper.py": "import json\ndef go():\n    json.loads('')",
        },
    )
    assert [(file, line) for _, file, line, *_ in found] == [("lib/helper.py", 3)]


def test_an_interrupt_while_importing_is_not_swallowed(make: Make) -> None:
    root = make({"tools.py": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        load_python_files(root, [root / "tools.py"])


def test_warning_filters_are_restored_after_threads_ran_project_code() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        first, second = run_user_code(), run_user_code()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert warnings.filters[0][0] == "default"
        second.__exit__(None, None, None)
        assert warnings.filters == before


def test_the_hint_for_a_missing_library_shows_what_to_do(make: Make) -> None:
    root = make({"tools.py": "import no_such_thing.inner"})
    (item,) = load_python_files(root, [root / "tools.py"]).diagnostics
    assert item.hint == "install the package that provides 'no_such_thing' beside llm-do, or correct the name"
