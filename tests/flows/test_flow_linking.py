"""Flows in files: which ones link, and where the faults of the others are located."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do import LinkError, Project, Runtime
from llm_do.linker.linker import LinkReport, check_project
from llm_do.ui.reports.diagnostic_text import render_text

Link = Callable[..., LinkReport]


@pytest.fixture
def link(tmp_path: Path) -> Link:
    """Links a project of these agents (name to frontmatter) and flows."""

    def linked(
        flows: dict[str, Any], agents: dict[str, str] | None = None, python: str = "", **keys: Any
    ) -> LinkReport:
        names = agents if agents is not None else dict.fromkeys("abc", "")
        for name, front in names.items():
            text = f"---\nname: {name}\n{front}\n---\nHelp.\n".replace("\n\n---", "\n---")
            (tmp_path / f"{name}.agent").write_text(text, encoding="utf-8")
        (tmp_path / "tools.py").write_text(textwrap.dedent(python), encoding="utf-8")
        manifest = {"version": 1, "entry": {"flow": next(iter(flows), "f")}, "agent_files": ["*.agent"], "flows": flows}
        if python:
            manifest["python_files"] = ["tools.py"]
        (tmp_path / "project.json").write_text(json.dumps({**manifest, **keys}), encoding="utf-8")
        return check_project(tmp_path)

    return linked


def flow(text: str, **keys: Any) -> dict[str, Any]:
    return {"f": {"mode": "workflow", "flow": text, **keys}}


def findings(report: LinkReport) -> list[tuple[str, str]]:
    """Return each finding's code and the text it is located at."""
    shown: list[tuple[str, str]] = []
    for item in report.diagnostics:
        line = (report.root / item.file).read_text(encoding="utf-8").splitlines()[item.line - 1]
        end = item.end[1] - 1 if item.end is not None else None
        shown.append((item.code, line[item.column - 1 : end]))
    return shown


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        (flow("a >> b >> c"), []),
        (flow("a >> (b | c)"), []),
        ({"f": {"mode": "workflow", "agents": ["a", "b", "c"]}}, []),
        ({"f": {"mode": "team", "lead": "a", "workers": ["b", "c"]}}, []),
        (flow("a >> x >> b | c"), [("LD501", "|")]),
        (flow("a >> (b | c"), [("LD501", "(")]),
        (flow("a >> (b | ) >> c"), [("LD501", ")")]),
        (flow("a >> () >> b >> c"), [("LD501", "()")]),
        (flow("a >> bb >> c"), [("LD201", "bb")]),
        (flow("a >> b >> c >> b"), [("LD502", "b")]),
        (flow("a >> b >> f >> c"), [("LD503", "f")]),
        ({"f": {"mode": "workflow"}}, [("LD504", '"f"')]),
        (flow("a >> b", agents=["a", "b", "c"]), [("LD505", '"c"')]),
        (flow("a >> b >> c", agents=["a", "a"]), [("LD502", '"a"')]),
        ({"f": {"mode": "workflow", "agents": ["a", "b", "x"]}}, [("LD201", '"x"')]),
        ({"f": {"mode": "team", "lead": "a", "workers": ["b", "c", "b"]}}, [("LD502", '"b"')]),
        ({"f": {"mode": "team", "lead": "g", "workers": ["a"]}, "g": flow("b >> c")["f"]}, [("LD204", '"g"')]),
        ({"f": {"mode": "handoff", "agents": ["a", "b", "c"]}}, [("LD505", '"b"'), ("LD505", '"c"')]),
    ],
)
def test_a_fault_in_a_flow_is_located_in_its_expression(
    link: Link, flows: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    report = link(flows)

    relevant = [item for item in findings(report) if item[0] != "LD801"]
    assert relevant == expected
    errors = [code for code, _ in expected if code != "LD505"]
    assert (report.project is None) == bool(errors)


def test_the_caret_points_at_the_fault(link: Link) -> None:
    report = link(flow("a >> bb >> c"))

    shown = render_text(report.diagnostics, lambda file: (report.root / file).read_text(encoding="utf-8"))
    source, caret = next(
        (shown.splitlines()[index], shown.splitlines()[index + 1])
        for index, line in enumerate(shown.splitlines())
        if "a >> bb >> c" in line
    )
    assert source[caret.index("^") : caret.rindex("^") + 1] == "bb"


def test_escapes_in_the_manifest_do_not_move_the_caret(link: Link, tmp_path: Path) -> None:
    link(flow("a >> b"))
    path = tmp_path / "project.json"
    path.write_text(path.read_text().replace("a >> b", "a \\u003e> bb \\u003e> c"), encoding="utf-8")

    assert findings(check_project(tmp_path)) == [("LD201", "bb")]


def test_flows_that_run_each_other_are_reported_with_the_cycle(link: Link) -> None:
    report = link({"f": flow("a >> g")["f"], "g": flow("b >> h")["f"], "h": flow("c >> g")["f"]})

    assert [(item.code, item.message) for item in report.diagnostics] == [
        ("LD503", "the flow runs itself: g -> h -> g"),
        ("LD503", "the flow runs itself: h -> g -> h"),
    ]


def test_handoffs_stay_in_the_flow_and_reach_every_member(link: Link) -> None:
    handoff = {"f": {"mode": "handoff", "agents": ["a", "b"]}}

    assert findings(link(handoff, {"a": "handoffs: [b]", "b": ""})) == []
    assert findings(link(handoff, {"a": "handoffs: [b]", "b": "handoffs: [c]", "c": ""})) == [("LD506", '"b"')]
    assert findings(link(handoff, {"a": "handoffs: [x, b]", "b": ""})) == [("LD201", "x"), ("LD506", '"a"')]


def test_a_tool_with_the_name_of_a_flows_own_tool_is_refused(link: Link) -> None:
    python = """
        def delegate_to_b(text: str) -> str:
            "Do it."
            return text
        def transfer_to_b(text: str) -> str:
            "Do it."
            return text
        TOOLS = [delegate_to_b, transfer_to_b]
    """
    team = {"f": {"mode": "team", "lead": "a", "workers": ["b"]}}
    agents = {"a": "tools: [delegate_to_b]", "b": "", "c": "tools: [transfer_to_b]\nhandoffs: [b]"}

    report = link(team, agents, python)

    assert [(item.code, item.file) for item in report.diagnostics if item.code != "LD801"] == [
        ("LD507", "a.agent"),
        ("LD507", "c.agent"),
    ]


def test_a_name_too_long_for_its_tool_is_refused(link: Link) -> None:
    long = "b" * 60

    report = link({"f": {"mode": "team", "lead": "a", "workers": [long]}}, {"a": "", long: ""})

    assert [item.code for item in report.diagnostics] == ["LD403"]


def test_a_flow_reaches_its_agents_and_an_agent_its_flows(link: Link) -> None:
    assert findings(link(flow("a >> b"), {"a": "", "b": "", "c": ""})) == [("LD801", "c")]
    assert findings(link(flow("a >> b"), {"a": "toolsets: [c]", "b": "", "c": ""})) == []
    assert findings(link(flow("b >> c"), {"a": "toolsets: [f]", "b": "", "c": ""}, entry={"agent": "a"})) == []


def test_an_entry_takes_what_the_flow_takes(link: Link) -> None:
    report = link(flow("a"), {"a": ""}, entry={"flow": "f", "args": {"inpt": "x"}})

    assert [item.code for item in report.diagnostics] == ["LD213"]


def test_an_entry_that_is_not_a_flow_is_reported(link: Link) -> None:
    assert findings(link(flow("a"), {"a": ""}, entry={"flow": "a"})) == [("LD204", '"a"')]


def test_an_aggregate_is_a_function_of_the_project(link: Link) -> None:
    python = """
        def both(outputs):
            return " and ".join(outputs)
        def none():
            return ""
    """
    assert findings(link(flow("a | b", aggregate="tools.py:both"), {"a": "", "b": ""}, python)) == []
    report = link(flow("a | b", aggregate="tools.py:none"), {"a": "", "b": ""}, python)
    assert findings(report) == [("LD212", '"tools.py:none"')]


PYTHON_FLOWS = """
    from llm_do import AgentSpec, CallContext, Swarm

    def shorten(text: str) -> str:
        "Shorten."
        return text[:3]

    async def loud(input: str, ctx: CallContext) -> str:
        return input.upper()

    def quiet(input, ctx):
        return input.input.lower()

    TOOLS = [shorten, loud, quiet]
    FLOWS = [Swarm(["shorten", "loud", AgentSpec("own", model="test")], name="short")]
"""


def test_a_flow_that_python_exports_is_registered_and_runs(link: Link) -> None:
    report = link({"f": flow("quiet >> short")["f"]}, {}, PYTHON_FLOWS, agent_files=[])

    assert findings(report) == []
    assert report.project is not None
    result = Runtime(report.project).run_sync("ABCDEF")
    assert [record.path for record in result.calls] == [
        "f/1/quiet",
        "f/2/short/1/shorten",
        "f/2/short/2/loud",
        "f/2/short/3/own",
        "f/2/short",
    ]
    assert result.messages[0].parts[0].content == "ABC"


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("FLOWS = [Swarm]", "LD305"),
        ("FLOWS = [3]", "LD305"),
        ("FLOWS = {'y': Swarm(['a'], name='x')}", "LD308"),
        ("FLOWS = [Swarm(['zz'], name='x')]", "LD201"),
        ("FLOWS = [Swarm([AgentSpec('q', tools=['zz'])], name='x')]", "LD201"),
        ("FLOWS = [Swarm(['a'], flow='a >>', name='x')]", "LD302"),
        ("FLOWS = [Swarm(['a'], name='a')]", "LD202"),
    ],
)
def test_a_fault_in_an_exported_flow_is_reported_in_its_file(link: Link, written: str, code: str) -> None:
    report = link(flow("a"), {"a": ""}, f"from llm_do import AgentSpec, Swarm\n{written}\n")

    assert [(item.code, item.file) for item in report.diagnostics if item.code[:3] != "LD8"] == [(code, "tools.py")]


HOOKS = """
    def begin(agent): ...
    def wrong(agent): ...
    async def after(**data): ...
    LIMIT = 3
"""


def test_hooks_in_files_are_functions_with_matching_parameters(link: Link) -> None:
    hooks = {"start": ["tools.py:begin"], "post_tool_call": ["tools.py:after"]}
    assert findings(link(flow("a"), {"a": "hooks: {error: ['tools.py:after']}"}, HOOKS, hooks=hooks)) == []

    wrong = {"error": ["tools.py:wrong"], "start": ["tools.py:LIMIT"], "finished": ["tools.py:nothing"]}
    assert findings(link(flow("a"), {"a": "hooks: {pre_llm_call: ['tools.py:begin']}"}, HOOKS, hooks=wrong)) == [
        ("LD212", "'tools.py:begin'"),
        ("LD212", '"tools.py:wrong"'),
        ("LD212", '"tools.py:LIMIT"'),
        ("LD211", '"tools.py:nothing"'),
    ]


def test_hooks_of_the_manifest_come_before_an_agents_own_and_are_called_for_all(link: Link) -> None:
    python = """
        SEEN = []
        def everybody(agent): SEEN.append(f"everybody {agent.name}")
        async def mine(agent): SEEN.append(f"mine {agent.name}")
        def seen() -> str:
            "Say what was seen."
            return ", ".join(SEEN)
        TOOLS = [seen]
    """
    report = link(
        flow("a >> b >> seen"),
        {"a": "model: test", "b": "model: test\nhooks: {start: ['tools.py:mine']}"},
        python,
        hooks={"start": ["tools.py:everybody"]},
    )

    assert report.project is not None, report.diagnostics
    steps = Runtime(report.project)
    with pytest.raises(Exception, match="can't take the output of the previous step"):
        steps.run_sync("go")  # `seen` takes no argument
    from_python = Runtime(report.project).registry["seen"].value
    assert from_python() == "everybody a, everybody b, mine b"


@pytest.mark.slow
def test_a_project_with_flows_links_without_pydantic_ai(link: Link, tmp_path: Path) -> None:
    link(flow("a >> (b | c)"))
    code = (
        "import sys\nfrom pathlib import Path\nfrom llm_do.linker.linker import check_project\n"
        "linked = check_project(Path(sys.argv[1])).project is not None\n"
        "print(linked, 'pydantic_ai' in sys.modules, 'llm_do.flows' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "False", "False"]


def test_linking_a_wrong_flow_raises_with_every_diagnostic(link: Link, tmp_path: Path) -> None:
    link(flow("a >> b | c"))

    with pytest.raises(LinkError, match="meet without parentheses") as raised:
        Project.load(tmp_path)
    assert raised.value.hint == "say which belong together: `a >> (b | c)` or `(a >> b) | c`"
