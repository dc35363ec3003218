"""Toolsets and models of installed packages: when they are looked up, what is wrong with them, and who imports them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import pytest

from llm_do import AgentSpec, Project, RunError, Runtime, register_model_factory, run as run_agent
from llm_do._startup.code_access import closed_folders
from llm_do.errors import LinkError, ModelUnavailableError
from llm_do.linker.linker import check_project
from llm_do.models import ModelPool
from llm_do.models.catalog import available_models
from llm_do.ui.reports.checkup import checkup
from tests.cli.cli_processes import REPOSITORY, run
from tests.linker.conftest import Make, agent, codes, found, manifest
from tests.support.packages import install_package
from tests.support.scripted import call, script

TOOLSET = '''
from pydantic_ai import FunctionToolset
from llm_do import ToolFacts

TOOLS = FunctionToolset()


@TOOLS.tool_plain(metadata={"facts": ToolFacts(primary="url", hosts=["url"], reads=["url"])})
def fetch(url: str) -> str:
    """Get a page."""
    return f"the page at {url}"


def made(ctx):
    return TOOLS


A_CLASS = FunctionToolset
A_NUMBER = 3
'''
MODELS = """
from pydantic_ai.models.test import TestModel


def make(name):
    return TestModel(custom_output_text=f"I am {name}.")


A_NUMBER = 3
"""
ANSWERS = """\
- tools:
    - {name: fetch, args: {url: "https://news.example.org/today"}}
- text: "{tool}"
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    site = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("SITE", str(site))
    return lambda name, code=TOOLSET, **points: install_package(site, name, code, **points)


def desk(name: str, **keys: object) -> dict[str, object]:
    return {
        "project.json": manifest(**keys),
        "main.agent": agent("main", f"model: script:answers.yaml\ntoolsets: [{name}]"),
        "answers.yaml": ANSWERS,
    }


@pytest.mark.parametrize("attribute", ["TOOLS", "made"])
def test_a_published_toolset_has_facts_and_passes_the_policy(make: Make, install: Install, attribute: str) -> None:
    install(f"acme-{attribute.lower()}", toolsets={"lookup": attribute})
    root = make(desk("lookup"))

    refused = Runtime(Project.load(root)).run_sync("hi")
    assert [denial.tool for denial in refused.denials] == ["fetch"]

    make({"project.json": manifest(approvals={"allow": ["fetch(news.example.org)"]})})
    allowed = Runtime(Project.load(root)).run_sync("hi")
    assert allowed.output == "the page at https://news.example.org/today"

    make({"project.json": manifest(approvals={"allow": ["fetch(other.example.org)"]})})
    assert len(Runtime(Project.load(root)).run_sync("hi").denials) == 1


@pytest.mark.parametrize("attribute", ["TOOLS", "made"])
def test_agents_in_code_have_published_toolsets_too(install: Install, attribute: str) -> None:
    name = f"code-{attribute.lower()}"
    install(f"acme-{name}", toolsets={name: attribute})
    spec = AgentSpec("main", toolsets=[name], model=script(call("fetch", url="https://news.example.org/x"), "done"))

    assert [denial.tool for denial in run_agent.sync(spec, "go").denials] == ["fetch"]
    assert run_agent.sync(spec, "go", allow=["fetch(news.example.org)"]).denials == []
    assert [tool["function"]["name"] for tool in spec.get_tool_schemas()] == (["fetch"] if attribute == "TOOLS" else [])

    runtime = Runtime(Project.load("examples/greeter"), allow=["fetch(news.example.org)"])
    late = AgentSpec("late", toolsets=[name], model=spec.model)
    runtime.register_agents({"late": late})
    assert runtime.run_sync("go", entry="late").denials == []


def test_what_agents_in_code_cannot_use_names_the_package(install: Install) -> None:
    install("acme-nothing", "raise RuntimeError('no license')", toolsets={"nothing": "A"})
    install("acme-number", toolsets={"number": "A_NUMBER"})
    install("acme-one", toolsets={"twice": "TOOLS"})
    install("acme-two", toolsets={"twice": "TOOLS"})

    for name, text in {
        "nothing": "of acme-nothing 1.0, which can't be used: its import raised RuntimeError: no license",
        "number": "of acme-number 1.0, which can't be used: it is a value of type int",
        "twice": "published by acme-one 1.0 and acme-two 1.0",
        "nobody": "'nobody', which doesn't exist",
    }.items():
        with pytest.raises(RunError, match=text):
            run_agent.sync(AgentSpec("main", toolsets=[name], model="test"), "go")


def test_what_the_project_or_llm_do_has_is_not_looked_up(make: Make, install: Install) -> None:
    module = install("acme-broken", "raise RuntimeError('imported')", toolsets={"own": "A", "todo": "A"})
    own = "from pydantic_ai import FunctionToolset\nown = FunctionToolset()\nTOOLSETS = {'own': own}\n"
    root = make({**desk("own, todo", python_files=["own.py"]), "own.py": own})

    assert check_project(root).diagnostics == ()
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("code", "attribute", "reason"),
    [
        ("raise RuntimeError('no license')", "A", "its import raised RuntimeError: no license"),
        ("import sys; sys.exit(3)", "A", "its import raised SystemExit: 3"),
        ("import no_such_module_at_all", "A", "its import raised ModuleNotFoundError"),
        (TOOLSET, "NOTHING", "its import raised AttributeError"),
        (TOOLSET, "A_NUMBER", ":A_NUMBER` is a value of type int"),
        (TOOLSET, "A_CLASS", ":A_CLASS` is the class FunctionToolset: export an instance"),
    ],
)
def test_a_package_that_cannot_be_used_is_an_error_where_it_is_named(
    make: Make, install: Install, code: str, attribute: str, reason: str, request: pytest.FixtureRequest
) -> None:
    install(f"acme-faulty-{request.node.callspec.indices['code']}", code, toolsets={"lookup": attribute})
    report = check_project(make(desk("lookup")))

    assert found(report) == [("LD716", "main.agent", 4, 12)]
    assert "the toolset `lookup` of acme-faulty-" in report.diagnostics[0].message
    assert reason in report.diagnostics[0].message


def test_two_packages_with_one_name_are_an_error_that_imports_neither(make: Make, install: Install) -> None:
    modules = [install(f"acme-{each}", version=each, toolsets={"lookup": "TOOLS"}) for each in ("7.1", "7.2")]
    report = check_project(make(desk("lookup")))

    assert found(report) == [("LD715", "main.agent", 4, 12)]
    assert "published by acme-7.1 7.1 and acme-7.2 7.2" in report.diagnostics[0].message
    assert not {*modules} & {*sys.modules}


def test_a_closed_folder_imports_nothing_of_a_package(make: Make, install: Install) -> None:
    tools = install("acme-closed", toolsets={"lookup": "TOOLS"})
    models = install("acme-closed-models", MODELS, models={"acmeclosed": "make"})
    files = desk("lookup", approvals={"allow": ["fetch(news.example.org)"]}, model="acmeclosed:a")
    root = make(files)

    with closed_folders("looks"):
        report = check_project(root)
    assert report.diagnostics == ()
    assert report.left_out is not None
    assert report.left_out.packages == (
        "the toolset `lookup` of acme-closed 1.0",
        "the models `acmeclosed:` of acme-closed-models 1.0",
    )
    assert not {tools, models} & {*sys.modules}
    assert check_project(root).diagnostics == ()
    assert {tools, models} <= {*sys.modules}


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--text-only"], []])
def test_a_look_at_an_untrusted_folder_says_what_it_left_out(make: Make, install: Install, options: list[str]) -> None:
    install("acme-look", "raise SystemExit('imported')", toolsets={"lookup": "TOOLS"})
    root = make(desk("lookup"))
    env = {"PYTHONPATH": f"{os.environ['SITE']}{os.pathsep}{REPOSITORY}", "LLM_DO_TRUST": None}
    ended = run("check", *options, cwd=root, env=env)

    assert ended.code == 0, ended.err
    assert "the toolset `lookup` of acme-look 1.0 was not imported" in ended.err
    trusted = run("check", "--trust", cwd=root, env=env)
    assert trusted.code == 3
    assert "error[LD716]" in trusted.out + trusted.err


def test_a_frozen_run_has_the_locked_versions(make: Make, install: Install) -> None:
    install("acme-locked", version="1.2", toolsets={"lookup": "TOOLS"})
    root = make(desk("lookup"))

    with pytest.raises(LinkError, match=r"acme-locked: new package, version 1\.2"):
        Runtime(Project.load(root), frozen=True)
    make({"llm-do.lock": json.dumps({"version": 1, "packages": {"acme-locked": "1.1"}})})
    with pytest.raises(LinkError, match=r"acme-locked: version 1.2 instead of 1.1") as raised:
        Runtime(Project.load(root), frozen=True)
    assert "llm-do lock" in (raised.value.hint or "")
    Runtime(Project.load(root))
    make({"llm-do.lock": json.dumps({"version": 1, "packages": {"acme-locked": "1.2", "acme-unused": "1"}})})
    Runtime(Project.load(root), frozen=True)


@pytest.mark.slow
def test_the_lock_records_packages_and_shows_what_has_changed(make: Make, install: Install) -> None:
    install("acme-versions", version="2.0", toolsets={"lookup": "TOOLS"})
    root = make(desk("lookup"))
    env = {"PYTHONPATH": f"{os.environ['SITE']}{os.pathsep}{REPOSITORY}"}

    written = run("lock", "--trust", cwd=root, env=env)
    assert (written.code, written.out) == (0, "acme-versions: new package, version 2.0\n")
    assert json.loads((root / "llm-do.lock").read_text())["packages"] == {"acme-versions": "2.0"}
    assert run("lock", "--check", "--trust", cwd=root, env=env).code == 0
    make({"llm-do.lock": json.dumps({"version": 1, "packages": {"acme-versions": "1.9", "acme-gone": "1"}})})
    changed = run("lock", "--check", "--trust", cwd=root, env=env)
    assert changed.code == 3
    assert changed.out.splitlines() == [
        "acme-gone: the package is no longer used",
        "acme-versions: version 2.0 instead of 1.9",
    ]
    frozen = run("run", "hi", "--frozen", "--trust", cwd=root, env=env)
    assert frozen.code == 3
    assert "packages aren't as llm-do.lock has them" in frozen.err


def test_published_models_are_made_by_their_prefix(make: Make, install: Install) -> None:
    module = install("acme-models", MODELS, models={"acmeone": "make", "openai": "make"})
    root = make({"main.agent": agent("main", "model: acmeone:ada")})

    project = Project.load(root)
    assert project.packages == {"acme-models": "1.0"}
    assert Runtime(project).run_sync("hi").output == "I am ada."
    assert module in sys.modules
    assert ("acmeone:NAME", True) in [(info.name, info.usable) for info in available_models({})]


def test_a_registered_prefix_comes_before_a_published_one(make: Make, install: Install) -> None:
    from pydantic_ai.models.test import TestModel

    module = install("acme-second", "raise RuntimeError", models={"acmetwo": "make"})
    register_model_factory("acmetwo", lambda name: TestModel(custom_output_text="mine"))

    assert check_project(make({"main.agent": agent("main", "model: acmetwo:a")})).diagnostics == ()
    assert ModelPool().get("acmetwo:a").model_name == "test"
    assert module not in sys.modules


def test_models_that_cannot_be_made_are_errors(make: Make, install: Install) -> None:
    install("acme-raising", "raise RuntimeError('no license')", models={"acmethree": "make"})
    install("acme-typed", MODELS, models={"acmefour": "A_NUMBER", "acmefive": "make"})
    install("acme-other", MODELS, models={"acmefive": "make"})
    report = check_project(make({"main.agent": agent("main", "model: [acmethree:a, acmefour:a, acmefive:a]")}))

    assert codes(report) == ["LD716", "LD716", "LD715"]
    for name, reason in {
        "acmethree:a": "its import raised RuntimeError: no license",
        "acmefour:a": "is a value of type int: publish a function",
        "acmefive:a": "are published by acme-other 1.0 and acme-typed 1.0",
    }.items():
        with pytest.raises(ModelUnavailableError, match=reason):
            ModelPool().get(name)


def test_an_installed_package_takes_no_alias(make: Make, install: Install) -> None:
    install("acme-alias", MODELS, models={"acmefast": "make"})

    assert (
        check_project(
            make({"project.json": manifest(models={"acmefast": "test"}), "main.agent": agent("main")})
        ).diagnostics
        == ()
    )


def test_the_doctor_lists_what_is_published(install: Install) -> None:
    install("acme-listed", "raise RuntimeError", version="3.1", toolsets={"lookup": "TOOLS", "todo": "TOOLS"})
    install("acme-again", "raise RuntimeError", models={"acmesix": "make"})
    listed = {check.name: check for check in checkup(None)}

    assert (listed["toolset lookup"].status, listed["toolset lookup"].found) == (
        "ok",
        "acme-listed 3.1 (acme_listed:TOOLS)",
    )
    assert (listed["toolset todo"].status, listed["toolset todo"].hint) == ("note", "llm-do itself has this name.")
    assert listed["models acmesix"].found == "acme-again 1.0 (acme_again:make)"
