"""Assertions of an order, such as `deploy only after tested`: proved over what gates allow in every situation."""

from __future__ import annotations

from tests.linker.conftest import Check, agent, codes, manifest
from tests.support.tables import each_row

GATES = """
from llm_do import tool
def test() -> str:
    "Test."
    return ""
def stage() -> str:
    "Stage."
    return ""
def deploy() -> str:
    "Deploy."
    return ""
TOOLS = [test, stage, deploy]
"""


@each_row(
    "states, text, outcome, chain",
    [
        ("{test: {enables: [ok]}, deploy: {requires: [ok]}}", "deploy only after ok", "holds", ""),
        ("{test: {enables: [ok]}, deploy: {requires: [ok]}}", "deploy only after test", "holds", ""),
        ("{test: {enables: [ok]}, deploy: {requires: [ok]}}", "stage only after ok", "broken", "stage (no gate)"),
        (
            "{test: {enables: [ok]}, stage: {enables: [ok2]}, deploy: {requires: [ok2]}}",
            "deploy only after ok",
            "broken",
            "calls stage; main calls deploy",
        ),
        (
            "{test: {enables: [ok]}, stage: {requires: [ok], enables: [up]}, deploy: {requires: [up]}}",
            "deploy only after ok",
            "holds",
            "",
        ),
        (
            "{test: {enables: [ok]}, stage: {disables: [ok]}, deploy: {forbids: [ok]}}",
            "deploy only after ok",
            "broken",
            "from the beginning",
        ),
    ],
)
def test_an_order_is_proved_over_every_situation(
    check_files: Check, states: str, text: str, outcome: str, chain: str
) -> None:
    files: dict[str, object] = {
        "project.json": manifest(python_files=["tools.py"], permissions={"assert": [text]}),
        "main.agent": agent("main", f"tools: [test, stage, deploy]\nstates: {states}"),
        "tools.py": GATES,
    }
    found = [item for item in check_files(files).diagnostics if item.code.startswith("LD61")]
    assert [item.code for item in found] == ([] if outcome == "holds" else ["LD611"])
    assert all(chain in item.message for item in found)


def test_an_order_holds_for_no_agent_without_gates_and_for_no_code(check_files: Check) -> None:
    states = "{test: {enables: [ok]}, deploy: {requires: [ok]}}"
    files: dict[str, object] = {
        "project.json": manifest(python_files=["tools.py"], permissions={"assert": ["deploy only after ok"]}),
        "main.agent": agent("main", f"tools: [test, deploy]\ntoolsets: [other]\nstates: {states}"),
        "other.agent": agent("other", "tools: [deploy]"),
        "tools.py": GATES,
    }
    (found,) = check_files(files).diagnostics
    assert "main calls other; other calls deploy (no gate)" in found.message
    code = "async def go(input, ctx):\n    return await ctx.call('deploy', {})\n"
    files["tools.py"] = GATES.replace("TOOLS = [", f"{code}TOOLS = [go, ")
    files["other.agent"] = agent("other", "tools: [go]")
    (found,) = [item for item in check_files(files).diagnostics if item.code == "LD611"]
    assert "go calls deploy (tools.py:12, without a gate)" in found.message


def test_a_toolkit_keeps_its_order_under_a_prefix(check_files: Check) -> None:
    kit = """
        from llm_do import Toolkit, tool
        desk = Toolkit("desk")
        @desk.tool(enables_states=["in"])
        def login() -> str:
            "Log in."
            return ""
        @desk.tool(required_states=["in"])
        def read() -> str:
            "Read."
            return ""
        """
    texts = ["d_read only after in", "d_read only after d_login", "d_login only after in"]
    files: dict[str, object] = {
        "project.json": manifest(python_files=["kit.py"], permissions={"assert": texts}),
        "main.agent": agent("main", "toolsets: [{desk: {prefix: d}}]"),
        "kit.py": kit,
    }
    report = check_files(files)
    assert codes(report) == ["LD611"], report.diagnostics
    assert "d_login only after in" in report.diagnostics[0].message
