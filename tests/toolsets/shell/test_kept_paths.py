"""What is kept from a command: all code, whatever the layout, with few mounts, and little else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from llm_do.files.code_files import CodeFiles
from llm_do.files.code_tree import CodeScan, CodeTree
from llm_do.policy.denied_effects import denied_effects
from llm_do.policy.rules import option_rules
from llm_do.policy.values import ToolCallInfo
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.toolsets.shell.sandbox import kept_paths
from llm_do.toolsets.shell.sandbox.confinement import Sight, closed_wall, command_wall
from llm_do.toolsets.shell.sandbox.kept_paths import KeptPaths, keep_paths
from tests.toolsets.shell.support import configured, run


def scan_of(code: Sequence[str], others: Sequence[str] = (), **fields: object) -> CodeScan:
    """A project with these files; folders are those of the files."""
    parents = {str(parent) for path in (*code, *others) for parent in Path(path).parents} - {"."}
    return CodeScan(dict.fromkeys(code, (0, 0, 0)), folders=tuple(sorted(parents)), **fields)  # type: ignore[arg-type]


def is_kept(plan: KeptPaths, path: str) -> bool:
    return path in plan.single or str(Path(path).parent) in plan.held or plan.is_closed(path)


def mounts(plan: KeptPaths) -> int:
    kept = (*plan.single, *plan.held, *plan.trees)
    above = {str(parent) for path in kept for parent in Path(path).parents} - {"."}
    return len(kept) + len(plan.open) + len(above)


LAYOUTS: Mapping[str, Sequence[str]] = {
    "packages": [f"src/p{one}/m{two}.py" for one in range(100) for two in range(10)],
    "a file in each folder": [f"src/p{one}/q{two}/m.py" for one in range(40) for two in range(25)],
    "two in each folder": [f"p{one}/q{two}/m{three}.py" for one in range(20) for two in range(25) for three in (1, 2)],
    "one folder": [f"lib/m{one}.py" for one in range(1000)],
    "the root": [f"m{one}.py" for one in range(1000)],
    "the root and a package": [*(f"m{one}.py" for one in range(100)), *(f"p/q{one}/m.py" for one in range(900))],
    "uneven": [*(f"a/b/m{one}.py" for one in range(500)), *(f"a/c{one}/m.py" for one in range(500))],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_thousand_files_take_few_mounts(name: str) -> None:
    code = LAYOUTS[name]
    plan = keep_paths(scan_of(code))

    assert all(is_kept(plan, path) for path in code)
    assert mounts(plan) <= kept_paths.MOST_MOUNTS + 10


def test_few_files_are_kept_one_by_one() -> None:
    code = ["project.json", "main.agent", "src/a/tools.py", "src/b/tools.py"]
    plan = keep_paths(scan_of(code, ["src/a/notes.txt"]))

    assert (sorted(plan.single), plan.trees, list(plan.held)) == (sorted(code), frozenset(), [])


def test_folders_without_code_stay_open() -> None:
    code = [f"src/p{number}/m.py" for number in range(200)]
    scan = scan_of(code, ["src/p1/static/img/x", "docs/x", "src/web/node_modules/x/y"], closed=("src/web/.git",))
    plan = keep_paths(scan)

    assert not any(
        map(plan.is_closed, ["src/p1/static/x", "src/p1/static/img/x", "docs/x", "src/web/node_modules/x/y"])
    )
    assert all(map(plan.is_closed, ["src/p1/m.py", "src/p1/new.txt", "src/web/new.txt", "src/web/.git/config"]))


def test_no_folder_is_kept_as_a_whole_that_has_a_writable_one() -> None:
    """Its mount would lie over that of the folder, and what is code in it has to be kept by itself."""
    code = [f"src/p{number}/m.py" for number in range(200)]
    plan = keep_paths(scan_of(code), ["src/p7"])

    assert "src/p7/m.py" in plan.single
    assert all(is_kept(plan, path) for path in code)
    assert not plan.is_closed("src/p7/x")


NAMES = st.sampled_from(["a", "b", "c", "lib", "static"])
FOLDERS = st.lists(NAMES, max_size=4).map("/".join)
FILES = st.tuples(FOLDERS, st.integers(0, 9)).map(lambda at: f"{at[0]}/f{at[1]}.py".lstrip("/"))


@given(
    st.lists(FILES, max_size=60, unique=True),
    st.lists(FOLDERS, max_size=20),
    st.lists(FOLDERS.filter(bool), max_size=2),
)
def test_all_code_is_kept_and_folders_without_it_are_open(code: list[str], others: list[str], apart: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_paths, "MOST_MOUNTS", 6)
        plan = keep_paths(scan_of(code, [f"{folder}/note.txt".lstrip("/") for folder in others]), apart)

    assert all(is_kept(plan, path) for path in code)
    for folder in filter(None, others):
        if not any(path.startswith(f"{folder}/") for path in code):
            assert not plan.is_closed(f"{folder}/x") or any(path.startswith(f"{folder}/") for path in apart)
    assert not any(plan.is_closed(f"{folder}/x") for folder in apart)


def test_folders_are_found_with_the_code(tmp_path: Path) -> None:
    for folder in ("src/a", "web/node_modules/x", ".git/hooks", "src/__pycache__", "venv/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").touch()
    scan = CodeTree(CodeFiles(tmp_path), lambda path: False).scan()

    assert sorted(scan.folders) == ["src", "src/a", "web", "web/node_modules"]


def test_a_command_in_a_large_project_changes_data_and_no_code(tmp_path: Path) -> None:
    files = [tmp_path / f"src/p{one}/m{two}.py" for one in range(30) for two in range(3)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n")
    (tmp_path / "src/p1/static").mkdir()
    (tmp_path / "src/p1/static/.env").write_text("KEY=1\n")
    attack = (
        "for f in src/*/*.py; do echo evil > $f; mv $f $f.old; rm -f $f; done; mv src src2; mv src/p1 src/q; "
        "mv src/p1/static src/p1/s; rm -rf src/p2; echo ok > src/p1/static/x; echo ok > data.txt; mkdir out"
    )
    run(configured(tmp_path, allow=["sh *"]), f"sh -c '{attack}'")

    assert [file.read_text() for file in files] == ["x = 1\n"] * len(files)
    assert (tmp_path / "src/p1/static/x").read_text() == (tmp_path / "data.txt").read_text() == "ok\n"
    assert (tmp_path / "out").is_dir()


def test_what_a_rule_denies_does_not_open_the_folders_above_it(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"src/p{number}").mkdir(parents=True)
        (tmp_path / f"src/p{number}/m.py").touch()
    (tmp_path / "src/p7/secret.txt").touch()
    scan = CodeTree(CodeFiles(tmp_path), lambda path: False).scan()
    wall = command_wall(tmp_path, scan, Sight(), SandboxSpec(), network=False)
    call = ToolCallInfo("shell", {})
    denied = denied_effects(option_rules("deny", ["files.read(src/p7/secret.txt)", "files.write(src/p8/x/**)"]), call)
    closed = closed_wall(wall, denied, Sight())

    assert tmp_path / "src/p7/secret.txt" in closed.hidden
    assert set(closed.writable) == set(wall.writable)
