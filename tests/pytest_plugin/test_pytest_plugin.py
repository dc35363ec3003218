"""The pytest plugin: what it collects, what it shows, and what it leaves alone."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import llm_do.pytest_plugin
import llm_do.pytest_plugin.items
from llm_do.linker.test_linker import check_with_tests
from llm_do.testing.cases.case import Plan, all_cases
from llm_do.testing.cases.running import run_case

pytest_plugins = ["pytester"]

HERE = Path(__file__).parents[2]
MANIFEST = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]}
TESTS = """\
defaults: {model: "script:tests/answers.yaml"}
tests:
  - name: greets Ann
    input: Ann
    expect: {output: {contains: Ann}}
  - name: says goodbye
    input: Bob
    expect:
      output: {contains: Goodbye}
"""


def project(root: Path, tests: str = TESTS, manifest: object = MANIFEST) -> Path:
    (root / "tests").mkdir(parents=True, exist_ok=True)
    (root / "main.agent").write_text("---\nname: main\n---\nGreet the person.\n")
    (root / "project.json").write_text(json.dumps(manifest))
    (root / "tests/answers.yaml").write_text('- text: "Hello, {input}!"\n')
    (root / "tests/greets.test.yaml").write_text(tests)
    return root


@pytest.fixture(autouse=True, scope="module")
def _imported_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import what a run imports: pytester forgets all modules that are imported while it runs pytest."""
    root = project(tmp_path_factory.mktemp("first"))
    for case in all_cases(check_with_tests(root).tests):
        run_case(root, case, Plan())


@pytest.fixture(autouse=True)
def _only_named_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the environment has our entry point, only `-p` loads the plugin."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*args, plugins=[llm_do.pytest_plugin])


def test_each_case_is_an_item_and_a_failure_is_shown_as_llm_do_shows_it(pytester: pytest.Pytester) -> None:
    project(pytester.path)

    result = run(pytester, "-v")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "tests/greets.test.yaml::greets Ann PASSED*",
            "tests/greets.test.yaml::says goodbye FAILED*",
            "*_ says goodbye _*",
            "tests/greets.test.yaml:9: *",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "items.py" not in result.stdout.str()


def test_items_are_chosen_by_name_and_by_id(pytester: pytest.Pytester) -> None:
    project(pytester.path / "demo")

    run(pytester, "-k", "Ann").assert_outcomes(passed=1, deselected=1)
    run(pytester, "demo/tests/greets.test.yaml::greets Ann").assert_outcomes(passed=1)


def test_a_failed_case_is_run_again_alone(pytester: pytest.Pytester) -> None:
    root = project(pytester.path)
    run(pytester).assert_outcomes(passed=1, failed=1)
    (root / "tests/greets.test.yaml").write_text(TESTS.replace("Goodbye", "Hello"))

    run(pytester, "--lf").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "manifest",
    [
        {"name": "web", "sourceRoot": "apps/web", "projectType": "application", "targets": {"build": {}}},
        {"version": "1.0.0-*", "dependencies": {}},
        ["agent_files"],
        None,
    ],
)
def test_files_of_other_programs_are_left_alone(pytester: pytest.Pytester, manifest: object) -> None:
    root = project(pytester.path, tests="anything: [", manifest=manifest)
    if manifest is None:
        (root / "project.json").unlink()

    run(pytester).assert_outcomes()


@pytest.mark.parametrize(
    "path", ["greets.test.yaml", "other/greets.test.yaml", "tests/cassettes/greets.test.yaml", "tests/greets.yaml"]
)
def test_files_elsewhere_are_left_alone(pytester: pytest.Pytester, path: str) -> None:
    root = project(pytester.path)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / "tests/greets.test.yaml").rename(root / path)

    run(pytester).assert_outcomes()


def test_cases_are_replayed_if_asked(pytester: pytest.Pytester) -> None:
    root = project(
        pytester.path, 'tests:\n  - {name: greets, input: Ann, model: "script:tests/answers.yaml", expect: {}}\n'
    )
    (root / "main.py").write_text(
        "import time\nasync def main(input, ctx):\n    return await ctx.call('main', f'at {time.time_ns()}')\n"
    )
    (root / "project.json").write_text(
        json.dumps({**MANIFEST, "entry": {"function": "main.py:main"}, "python_files": ["main.py"]})
    )

    run(pytester).assert_outcomes(passed=1)
    result = run(pytester, "--llm-do-replay")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["main.py:3: its replay differs: it calls main with another input than before"])
    result = run(pytester, "--llm-do-replay", "--llm-do-record")
    result.stderr.fnmatch_lines(["*--llm-do-record and --llm-do-replay exclude each other*"])


def test_folders_below_tests_are_collected(pytester: pytest.Pytester) -> None:
    root = project(pytester.path)
    (root / "tests/deep").mkdir()
    (root / "tests/greets.test.yaml").rename(root / "tests/deep/greets.test.yaml")

    run(pytester).assert_outcomes(passed=1, failed=1)


def test_a_project_that_does_not_link_is_an_error_with_its_place(pytester: pytest.Pytester) -> None:
    root = project(pytester.path)
    (root / "main.agent").write_text("---\nname: main\ntools: [serch]\n---\nHelp.\n")

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*main.agent:3:9: error[[]LD201]: *", "*3 | tools: [[]serch]*"])
    assert "Traceback" not in result.stdout.str()


def test_a_broken_manifest_is_an_error_too(pytester: pytest.Pytester) -> None:
    root = project(pytester.path)
    (root / "project.json").write_text('{"version": 1, "agent_files": [}')

    run(pytester).assert_outcomes(errors=1)


def test_a_broken_test_file_concerns_no_other(pytester: pytest.Pytester) -> None:
    root = project(pytester.path)
    (root / "tests/broken.test.yaml").write_text("tests:\n  - nam: x\n")

    result = run(pytester, "--continue-on-collection-errors")

    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*tests/broken.test.yaml:2:5: error*"])


def test_other_tests_and_their_configuration_are_undisturbed(pytester: pytest.Pytester) -> None:
    project(pytester.path / "demo")
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers --import-mode=importlib\n")
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n")
    pytester.makepyfile(test_other="def test_one(one):\n    assert one == 1\n")
    before = Path.cwd()

    run(pytester).assert_outcomes(passed=2, failed=1)
    assert Path.cwd() == before


def test_recording_says_first_what_it_asks_for(pytester: pytest.Pytester) -> None:
    project(pytester.path)

    result = run(pytester, "--llm-do-record")

    result.stdout.fnmatch_lines(["llm-do: recording 2 tests for the first time: *", "*greets*"])


def test_nothing_heavy_is_imported_where_there_is_nothing_to_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_other="def test_one():\n    pass\n")
    heavy = ("pydantic", "pydantic_ai", "typer", "yaml", "llm_do.linker", "llm_do.runtime", "llm_do.testing")
    pytester.makeconftest(
        f"import sys\n\ndef pytest_sessionfinish():\n    found = [name for name in {heavy!r} if name in sys.modules]\n"
        "    assert not found, found\n"
    )

    result = pytester.runpytest_subprocess("-p", "llm_do.pytest_plugin")

    result.assert_outcomes(passed=1)
    assert result.ret == 0


@pytest.mark.slow
def test_cases_run_in_several_processes(pytester: pytest.Pytester) -> None:
    project(pytester.path)

    result = pytester.runpytest_subprocess("-p", "llm_do.pytest_plugin", "-p", "xdist", "-n", "2", "-v")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*tests/greets.test.yaml:9: *"])


def test_the_package_says_where_the_plugin_is() -> None:
    data = tomllib.loads((HERE / "pyproject.toml").read_text())

    (name,) = data["project"]["entry-points"]["pytest11"].values()

    assert import_module(name).pytest_collect_file
