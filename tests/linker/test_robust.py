"""Whatever a project's files contain, linking ends, with diagnostics at locations that exist."""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from llm_do.formats.syntax.flow_expression import parse_flow
from llm_do.linker.checks.flow_checks import find_flow_faults
from llm_do.linker.linker import LinkReport, check_project
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.inputs import PromptInput
from llm_do.project.registry import Registered
from tests.linker.conftest import Make, agent, manifest

LOOSE = settings(suppress_health_check=list(HealthCheck))

AGENT = "---\nname: main\ndescription: 'Helps: a lot'\ntools: [add]\ntoolsets:\n  - main: {prefix: x}\n---\nHelp.\n"
MANIFEST = json.dumps(manifest(approvals={"allow": ["main(input=*)"]}, runtime={"max_depth": 3}))


def link(**files: bytes) -> LinkReport:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, data in files.items():
            (root / name.replace("_", ".")).write_bytes(data)
        report = check_project(root)
        for item in report.diagnostics:
            assert item.line >= 1
            assert item.column >= 1
            assert item.end is None or item.end >= (item.line, item.column)
        return report


@LOOSE
@given(st.binary(max_size=200))
def test_any_bytes_in_an_agent_file_link_or_give_diagnostics(data: bytes) -> None:
    assert link(main_agent=data).diagnostics


@LOOSE
@given(st.binary(max_size=200))
def test_any_bytes_in_a_manifest_link_or_give_diagnostics(data: bytes) -> None:
    assert link(project_json=data, main_agent=AGENT.encode()).diagnostics


@pytest.mark.slow
@LOOSE
@given(st.integers(0, len(AGENT)), st.integers(0, 6), st.text(max_size=4))
def test_any_small_change_to_an_agent_file_links_or_gives_diagnostics(at: int, cut: int, put: str) -> None:
    link(main_agent=(AGENT[:at] + put + AGENT[at + cut :]).encode("utf-8", "surrogatepass"))


@pytest.mark.slow
@LOOSE
@given(st.integers(0, len(MANIFEST)), st.integers(0, 6), st.text(max_size=4))
def test_any_small_change_to_a_manifest_links_or_gives_diagnostics(at: int, cut: int, put: str) -> None:
    text = MANIFEST[:at] + put + MANIFEST[at + cut :]
    link(project_json=text.encode("utf-8", "surrogatepass"), main_agent=AGENT.encode())


@LOOSE
@given(st.sampled_from(["deny", "ask", "allow"]), st.text(min_size=1, max_size=30))
def test_any_text_is_a_rule_or_is_reported_inside_its_text(effect: str, rule: str) -> None:
    document = json.dumps(manifest(approvals={effect: [rule]}))
    start = document.index(json.dumps(rule), document.index(effect))
    for item in link(project_json=document.encode(), main_agent=b"---\nname: main\n---\n").diagnostics:
        assert item.code.startswith("LD6") or item.code in ("LD103", "LD124")
        assert start < item.column <= start + len(json.dumps(rule))


def test_exponential_aliases_are_refused_immediately(make: Make) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 11)]
    root = make({"main.agent": agent("main", "output:\n  " + "\n  ".join(lines))})
    tracemalloc.start()
    start = time.process_time()
    found = check_project(root).diagnostics
    spent, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [item.code for item in found] == ["LD113"]
    assert spent < 2
    assert peak < 20_000_000


def test_many_unknown_names_are_reported_quickly(make: Make) -> None:
    names = [f"step_{n}" for n in range(1000)]
    root = make(
        {
            "project.json": manifest(
                python_files=["broken.py"],
                flows={"all": {"mode": "workflow", "flow": " >> ".join(names)}},
            ),
            "main.agent": agent("main", f"tools: [{', '.join(names)}]"),
            "broken.py": f"({'some words ' * 20_000}",
        }
    )
    start = time.process_time()
    found = check_project(root).diagnostics
    assert time.process_time() - start < 4
    assert [item.code for item in found].count("LD201") == 2000


def test_flows_that_share_members_are_visited_once_each() -> None:
    class Counted(dict[str, Registered]):
        asked = 0

        def get(self, name: str, default: Any = None) -> Any:
            self.asked += 1
            return super().get(name, default)

    layers = 12
    names = Counted(main=Registered("main", "agent", AgentSpec("main")))
    for layer in range(layers):
        below = "main" if layer == 0 else f"a{layer - 1} | b{layer - 1}"
        for side in "ab":
            flow = FlowSpec(f"{side}{layer}", tree=parse_flow(below))
            names[flow.name] = Registered(flow.name, "flow", flow)
    top: FlowSpec = names[f"a{layers - 1}"].value
    assert list(find_flow_faults(top, names)) == []
    assert top.input_model(names) is PromptInput
    assert names.asked < 20 * layers


@pytest.mark.slow
def test_many_agents_that_list_each_other_link_in_linear_time(make: Make) -> None:
    def link_time(count: int) -> float:
        root = make({f"n{count}/a{n}.agent": agent(f"a{n}", f"toolsets: [a{(n + 1) % count}]") for n in range(count)})
        (root / f"n{count}" / "project.json").write_text(json.dumps(manifest("a0")))
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            assert [each.code for each in check_project(root / f"n{count}").diagnostics] == ["LD422"]
            times.append(time.process_time() - start)
        return min(times)

    few, many = link_time(100), link_time(1000)
    assert many < few * 30
