"""A machine is drawn as text, for Markdown and for Graphviz; `llm-do graph --states` draws an agent's."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from llm_do import Project, UsageError
from llm_do.linker.checks.machine_checks import machines_data
from llm_do.project.gates import Gate
from llm_do.ui.reports.machine_diagrams import draw, draw_data
from tests.toolkits.test_declared_states import project

GATES = {
    "login": Gate(forbids=("in",), enables=("in",)),
    "edit": Gate(requires=("in",), needs=("project",)),
    "logout": Gate(requires=("in",), disables=("in",)),
    "help": Gate(),
}


def test_gates_are_lines_of_text() -> None:
    assert draw(GATES, initial=["new"], name="toolkit desk") == snapshot(
        """\
toolkit desk:
         in the beginning: new
login    not in in; unlocks in
edit     needs in; needs in the context project
logout   needs in; locks in
help     always
"""
    )


def test_gates_are_a_mermaid_diagram() -> None:
    assert draw(GATES, "mermaid") == snapshot(
        """\
flowchart LR
  t0["login"]
  t1["edit"]
  t2["logout"]
  t3["help"]
  s0(("in"))
  s0 -. not .-x t0
  t0 ==> s0
  s0 --> t1
  s0 --> t2
  t2 -. locks .-> s0
"""
    )


def test_gates_are_a_graphviz_diagram() -> None:
    assert draw({'say "hi"': Gate(requires=("in",))}, "dot", initial=["in"], name="desk") == snapshot(
        """\
digraph "desk" {
  rankdir=LR
  "tool say \\"hi\\"" [shape=box, label="say \\"hi\\""]
  "state in" [shape=ellipse, label="in", penwidth=2]
  "state in" -> "tool say \\"hi\\""
}
"""
    )


def test_the_states_of_an_agent_are_drawn_by_its_name(tmp_path: Path) -> None:
    linked = Project.load(project(tmp_path))
    assert draw_data(machines_data(linked, "main")) == snapshot(
        """\
agent main:
inspect   unlocks seen
change    needs seen
"""
    )
    with pytest.raises(UsageError, match="no agent called 'mian'"):
        machines_data(linked, "mian")
    assert draw_data([]) == "no states\n"


def test_names_are_drawn_so_that_they_can_be_read_and_do_nothing() -> None:
    gates = {"close": Gate(requires=("geöffnet", "a\nb"), enables=('"\x1b[2J',))}
    drawn = [draw(gates, form, initial=["a\nb"], name="büro\n") for form in ("text", "mermaid", "dot")]  # type: ignore[arg-type]
    for text in drawn:
        assert all(line.isprintable() for line in text.splitlines())
        assert "geöffnet" in text
        assert "büro" in text
    assert 'needs geöffnet, a\\nb; unlocks "\\x1b[2J\n' in drawn[0]
    assert 'digraph "büro' in drawn[2]
