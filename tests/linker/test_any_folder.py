"""Whatever is in a folder, linking it gives a project or diagnostics with valid locations."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from llm_do.diagnostics.known_codes import CODES
from llm_do.linker.linker import LinkReport, check_project
from tests.linker.conftest import write_files

NAMES = st.sampled_from(["main", "a", "b", "add", "kit", "filesystem_cwd", "todo", "mian", "é"])
FRONT = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "tools": st.lists(NAMES, max_size=3),
        "toolsets": st.lists(NAMES | st.dictionaries(NAMES, st.dictionaries(NAMES, NAMES), max_size=1), max_size=3),
        "model": st.text(max_size=4) | st.lists(st.text(max_size=4), max_size=2),
        "input_model_ref": st.sampled_from(["tools.A", "tools.py:A", "os.path", "sys:exit", "x.py:y", "..py:A"]),
        "output_model_ref": st.sampled_from(["tools.A", "tools.py:add", "tools.py:kit", "json.JSONDecoder"]),
        "template": st.booleans(),
    },
)
LINES = st.sampled_from(
    [
        "def add(x): return x",
        "TOOLS = [add]",
        "TOOLS = {'a': add, 5: 6}",
        "TOOLS = [[]]",
        "TOOLSETS = [add]",
        "__all__ = ['add', 'b', None]",
        "AGENTS = ['x']",
        "import tools, other",
        "from other import *",
        "from . import other",
        "import nothing.at.all",
        "raise SystemExit",
        "1 / 0",
        "class A: pass",
        "kit = lambda ctx: None",
        "TOOLSETS = [kit, kit]",
        "(",
        "é = 1",
    ]
)
MODULE = st.lists(LINES, max_size=5).map("\n".join) | st.binary(max_size=20)
ENTRY = st.fixed_dictionaries(
    {}, optional={"agent": NAMES, "function": st.sampled_from(["tools.py:add", "other.py:A", "/x.py:y"]), "args": FRONT}
)
MANIFEST = st.fixed_dictionaries(
    {"version": st.sampled_from([1, 2]), "entry": ENTRY},
    optional={
        "agent_files": st.lists(st.sampled_from(["*.agent", "a.agent", "../x", "tools.py", "sub", "**"]), max_size=3),
        "python_files": st.lists(st.sampled_from(["*.py", "./tools.py", "a.agent", "sub/**/*.py"]), max_size=3),
        "toolsets": st.dictionaries(NAMES, st.just({"type": "filesystem"}), max_size=2),
        "generated_agents_dir": st.text(max_size=4),
    },
)
FILES = st.dictionaries(
    st.sampled_from(["project.json", "a.agent", "b.agent", "tools.py", "other.py", "sub/tools.py", "sub/__init__.py"]),
    st.binary(max_size=40),
)
numbers = itertools.count()


def as_agent(front: dict[str, object]) -> str:
    import yaml

    return f"---\n{yaml.safe_dump(front, allow_unicode=True)}---\n{{{{input}}}} {{{{x}}}}"


def assert_sound(report: LinkReport, root: Path) -> None:
    assert (report.project is None) == any(item.severity == "error" for item in report.diagnostics)
    assert list(report.diagnostics) == sorted(report.diagnostics, key=lambda item: item.place)
    for item in report.diagnostics:
        assert item.code in CODES
        assert "\n" not in item.message
        assert "_llm_do_project_" not in item.message
        assert item.line >= 1
        assert item.column >= 1
        assert (root / item.file).is_file()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    manifest=MANIFEST | st.none(),
    agents=st.lists(FRONT, min_size=1, max_size=3),
    modules=st.lists(MODULE, max_size=3),
    garbage=FILES,
)
@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_nonsense_gives_only_diagnostics(
    tmp_path_factory: pytest.TempPathFactory,
    manifest: dict[str, object] | None,
    agents: list[dict[str, object]],
    modules: list[str | bytes],
    garbage: dict[str, bytes],
) -> None:
    root = tmp_path_factory.getbasetemp().resolve() / f"any{next(numbers)}"
    files: dict[str, object] = {f"{name}.agent": as_agent(front) for name, front in zip("abc", agents, strict=False)}
    files |= dict(zip(["tools.py", "other.py", "sub/tools.py"], modules, strict=False))
    if manifest is not None:
        files["project.json"] = manifest
    write_files(root, {**files, **(garbage if len(garbage) < 3 else {})})
    assert_sound(check_project(root), root)
    assert_sound(check_project(root / "a.agent"), root)
