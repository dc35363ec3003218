"""Conditional and repeated steps in files: where faults are located, what is drawn, proved and bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel

from llm_do import LinkError, Project, Swarm
from llm_do.linker.linker import check_project
from llm_do.linker.proofs.worst_case import worst_case
from llm_do.ui.reports.diagnostic_text import render_text
from llm_do.ui.reports.graph_languages import dot, mermaid
from llm_do.ui.reports.project_graph import graph_data, tree
from tests.flows.flow_runs import run_flow, saying

STEPS: list[Any] = [
    "classify",
    {"when": "output.kind == 'refund'", "then": "refunds", "else": "answers"},
    {"repeat": "draft", "until": "output.approved", "at_most": 4},
]
OUTPUT = (
    "output: {type: object, properties: {kind: {type: string}, approved: {type: boolean}, "
    "items: {type: array, items: {type: string}}}}"
)


def project(root: Path, steps: object, **keys: Any) -> Path:
    """Write a project whose entry is a workflow with these steps."""
    for name in ("classify", "refunds", "answers", "draft"):
        front = f"{OUTPUT}\n" if name in ("classify", "draft") else ""
        (root / f"{name}.agent").write_text(f"---\nname: {name}\n{front}---\nHelp.\n", encoding="utf-8")
    flow = {"mode": "workflow", "steps": steps, **keys.pop("flow", {})}
    manifest = {"version": 1, "entry": {"flow": "f"}, "agent_files": ["*.agent"], "flows": {"f": flow}, **keys}
    (root / "project.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return root


def test_steps_of_a_manifest_link(tmp_path: Path) -> None:
    assert check_project(project(tmp_path, STEPS, model="test")).diagnostics == ()


@pytest.mark.parametrize(
    ("step", "code", "marked"),
    [
        ({"when": "output.kid == 'x'", "then": "refunds"}, "LD512", "kid"),
        ({"when": "output.kind.name", "then": "refunds"}, "LD512", "name"),
        ({"when": 'output.kind == "x"', "then": "refunds"}, "LD512", '\\"x\\"'),
        ({"when": "output.items[?nam == 'x']", "then": "refunds"}, "LD512", "nam"),
        ({"when": "output.kind == 3", "then": "refunds"}, "LD511", "3"),
        ({"when": "output.kind ==", "then": "refunds"}, "LD511", '"'),
        ({"for_each": "output.kind", "do": "refunds"}, "LD512", "output.kind"),
        ({"repeat": "draft", "until": "output.aproved", "at_most": 3}, "LD512", "aproved"),
        ({"when": "output.kind", "then": "refunds >> nobody"}, "LD201", "nobody"),
        ({"when": "output.kind", "then": ["refunds >>"]}, "LD501", ""),
        ({"when": "output.kind"}, "LD121", ""),
        ({"repeat": "draft", "until": "output.approved"}, "LD121", ""),
        ({"repeat": "draft", "until": "output.approved", "at_most": 0}, "LD124", "0"),
        ({"while": "output.kind"}, "LD121", ""),
        (7, "LD122", "7"),
    ],
)
def test_a_fault_in_a_step_is_located_in_it(tmp_path: Path, step: Any, code: str, marked: str) -> None:
    report = check_project(project(tmp_path, ["classify", step]))

    found = [
        item for item in report.diagnostics if item.code.startswith(("LD5", "LD1", "LD2")) and item.severity == "error"
    ]
    assert found, report.diagnostics
    assert (found[0].file, bool(found[0].hint)) == ("project.json", True)
    line = (tmp_path / "project.json").read_text(encoding="utf-8").splitlines()[found[0].line - 1]
    if marked:
        assert found[0].code == code
        assert line[found[0].column - 1 :].startswith(marked)
        assert "^" in render_text(report.diagnostics, lambda file: (tmp_path / file).read_text(encoding="utf-8"))


def test_steps_and_an_expression_exclude_each_other(tmp_path: Path) -> None:
    report = check_project(project(tmp_path, STEPS, flow={"flow": "classify"}))

    assert "LD513" in [item.code for item in report.diagnostics]


def test_the_graph_says_when_each_step_runs(tmp_path: Path) -> None:
    data = graph_data(Project.load(project(tmp_path, STEPS, model="test")))

    for text in (tree(data), dot(data), mermaid(data).replace("#39;", "'").replace("#61;", "=")):
        assert "when output.kind == 'refund'" in text
        assert "unless output.kind == 'refund'" in text
        assert "until output.approved" in text


def test_bounds_count_every_repetition_and_item(tmp_path: Path) -> None:
    steps = [
        "classify",
        {"for_each": "output.items", "do": {"repeat": "draft", "until": "output.approved", "at_most": 4}, "at_most": 5},
    ]
    once = worst_case(Project.load(project(tmp_path, ["classify", "draft"], model="test")))
    found = worst_case(Project.load(project(tmp_path, steps, model="test")))

    assert isinstance(once.requests, int)
    assert found.requests == once.requests // 2 * 21


def test_assertions_consider_every_branch(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    tools = {"toolsets": {"files": {"type": "filesystem", "root": "data"}}}
    steps = ["classify", {"when": "output.kind == 'x'", "then": {"for_each": "output.items", "do": "writer"}}]
    root = project(
        tmp_path,
        steps,
        permissions={"assert": ["never classify -> files.write(**)", "never writer -> files.write(**)"]},
        **tools,
    )
    (root / "writer.agent").write_text("---\nname: writer\ntoolsets: [files]\n---\nHelp.\n", encoding="utf-8")

    found = [item.message for item in check_project(root).diagnostics if item.severity == "error"]

    assert len(found) == 1
    assert "writer" in found[0]


@pytest.mark.slow
def test_a_project_without_conditions_does_not_import_their_language(tmp_path: Path) -> None:
    project(tmp_path, ["classify", "refunds"], model="test")
    code = (
        "import sys\nfrom pathlib import Path\nfrom llm_do.linker.linker import check_project\n"
        f"check_project(Path({str(tmp_path)!r}))\nprint('jmespath' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


class Made(BaseModel):
    items: list[str]
    done: bool


def make(text: str) -> Made:
    """Make something."""
    return Made(items=["a", "b"], done=len(text) > 5)


EXPRESSIONS = st.sampled_from(
    ["output", "output.items", "output.done", "output.x", "output[0]", "length(output)", "output >", "!output", "items"]
)


def bodies(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.integers(0, 3)
    return (
        st.fixed_dictionaries({"when": EXPRESSIONS, "then": inner}, optional={"else": inner})
        | st.fixed_dictionaries({"for_each": EXPRESSIONS, "do": inner}, optional={"at_most": few, "concurrency": few})
        | st.fixed_dictionaries({"repeat": inner, "until": EXPRESSIONS}, optional={"at_most": few})
        | st.lists(inner, max_size=2)
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.recursive(st.sampled_from(["NAME", "NAME >> NAME", "NAME | NAME", ">>"]), bodies, max_leaves=5), max_size=3
    )
)
def test_any_steps_are_refused_with_a_reason_or_run_to_an_end(steps: list[Any]) -> None:
    text, number = json.dumps(steps), 0
    while "NAME" in text:
        text, number = text.replace("NAME", f"s{number}", 1), number + 1

    def step(name: str) -> Any:
        def run(text: str) -> Made:
            return make(text)

        run.__name__, run.__doc__ = name, "Make something."
        return run

    members = [step(f"s{index}") for index in range(number)] or [saying("unused")]
    refused: LinkError | None = None
    flow: Swarm | None = None
    try:
        flow = Swarm(members, steps=json.loads(text))
    except LinkError as error:
        refused = error
    if flow is None:
        assert refused is not None
        assert refused.message
        assert refused.hint
        return
    result = run_flow(flow, "begin")
    assert result.status in ("completed", "limited", "failed"), result.error
    assert len(result.calls) <= 4**7
