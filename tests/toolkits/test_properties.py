"""Random machines and random batches against a small model: what is available, what runs, and what state is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from llm_do import Toolkit, Update
from llm_do.project.gates import Gate, analyse
from tests.support.scripted import call
from tests.toolkits.kits import Played, play

STATES = ("s", "t", "u")
KEYS = ("k", "l")
Do = Literal["ok", "pair", "raise", "fail"]

gates = st.builds(
    Gate,
    requires=st.lists(st.sampled_from(STATES), max_size=2, unique=True).map(tuple),
    forbids=st.lists(st.sampled_from(STATES), max_size=1).map(tuple),
    needs=st.lists(st.sampled_from(KEYS), max_size=1).map(tuple),
    enables=st.lists(st.sampled_from(STATES), max_size=2, unique=True).map(tuple),
    disables=st.lists(st.sampled_from(STATES), max_size=1).map(tuple),
)
machines = st.lists(gates, min_size=1, max_size=4).map(lambda found: {f"t{i}": gate for i, gate in enumerate(found)})
calls = st.tuples(
    st.sampled_from(["a", "b", "plain"]),
    st.integers(0, 3),
    st.sampled_from(["ok", "ok", "ok", "pair", "pair", "raise", "fail", "invalid", "denied", "unknown"]),
    st.sampled_from(KEYS),
)
batches = st.lists(st.lists(calls, min_size=1, max_size=6), min_size=1, max_size=25)


@dataclass
class Reference:
    """What a machine must do, written as plainly as possible."""

    gates: dict[str, Gate]
    states: set[str] = field(default_factory=set)
    keys: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def available(self, tool: str) -> bool:
        gate = self.gates[tool]
        return (
            set(gate.requires) <= self.states
            and not set(gate.forbids) & self.states
            and all(key in self.keys for key in gate.needs)
        )

    def visible(self) -> set[str]:
        return {tool for tool in self.gates if self.available(tool)}

    def batch(self, requested: list[tuple[str, str, str]]) -> list[str]:
        """The statuses of one response's calls to it: tool, what it does, the key it writes."""
        ends: list[str] = []
        stopped = False
        for tool, do, key in requested:
            if do in ("invalid", "unknown") or stopped or not self.available(tool):
                end = "refused"
            elif do == "denied":
                end = "denied"
            elif do in ("raise", "fail"):
                end = "failed"
            else:
                end = "success"
                self.writes += 1
                self.keys[key] = self.writes
                self.states |= set(self.gates[tool].enables)
                self.states -= set(self.gates[tool].disables)
            ends.append(end)
            # A name that nothing has belongs to no toolkit, so it stops none.
            stopped = stopped or (end != "success" and do != "unknown")
        return ends


def build(name: str, gates: dict[str, Gate]) -> Toolkit:
    kit = Toolkit(name)
    for tool, gate in gates.items():

        def run(ctx: Any, do: Do, key: str) -> Any:
            """Do what the arguments ask for."""
            if do == "raise":
                raise RuntimeError("boom")
            ctx.state.set("attempt", do)
            if do == "fail":
                return Update.failed("no")
            writes = ctx.state.get("writes", 0) + 1
            changes = {key: writes, "writes": writes}
            return ("ok", changes) if do == "pair" else Update("ok", **changes)

        kit.tool(
            name=tool,
            required_states=gate.requires,
            forbidden_states=gate.forbids,
            required_context=gate.needs,
            enables_states=gate.enables,
            disables_states=gate.disables,
        )(run)
    return kit


def plain(do: str, key: str) -> str:
    """A plain tool."""
    if do in ("raise", "fail"):
        raise RuntimeError("boom")
    return "plain"


def response(turn: int, requested: list[tuple[str, int, str, str]], sizes: dict[str, int]) -> list[Any]:
    made = []
    for number, (where, index, do, key) in enumerate(requested):
        name = "plain" if where == "plain" else f"{where}_t{index % sizes[where]}"
        args: dict[str, Any] = {"do": do if do != "denied" else "ok", "key": key}
        if do == "denied":
            args["key"] = f"denied-{key}"
        if do == "invalid":
            args = {"do": 5, "key": [key]}
        made.append(call("nothing" if do == "unknown" else name, args, f"c{turn}-{number}"))
    return made


def played(a: dict[str, Gate], b: dict[str, Gate], requested: list[Any], **options: Any) -> Played:
    sizes = {"a": len(a), "b": len(b)}
    from tests.support.runs import agent

    spec = agent("x", None)
    spec.add_toolkit("a", build("a", a))
    spec.add_toolkit("b", build("b", b))
    return play(
        *(response(turn, batch, sizes) for turn, batch in enumerate(requested)),
        "done",
        kits=spec.toolsets,
        tools=[plain],
        max_steps=99,
        loop_threshold=0,
        options={"deny": ["*(key=denied*)"]},
        run_timeout=60,
        **options,
    )


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck))
@given(machines, machines, batches, st.sampled_from(["hide", "refuse"]))
def test_a_run_does_what_the_model_of_it_does(
    a: dict[str, Gate], b: dict[str, Gate], requested: list[Any], gate: str
) -> None:
    models = {"a": Reference(a), "b": Reference(b)}
    run = played(a, b, requested, gate=gate)
    assert run.result.status == "completed", run.result.error
    ended = {event.tool_call_id: event.status for event in run.ear.of("tool_result")}
    for turn, batch in enumerate(requested):
        visible = {f"{name}_{tool}" for name, model in models.items() for tool in model.visible()} | {"plain"}
        everything = {f"{name}_{tool}" for name, model in models.items() for tool in model.gates} | {"plain"}
        assert set(run.shown[turn]) == (visible if gate == "hide" else everything)
        expected: dict[int, str] = {}
        for name, model in models.items():
            own = [(n, each) for n, each in enumerate(batch) if each[0] == name and each[2] != "unknown"]
            ends = model.batch([(f"t{each[1] % len(model.gates)}", each[2], each[3]) for _, each in own])
            expected |= dict(zip((n for n, _ in own), ends, strict=True))
        for number, (where, _, do, _) in enumerate(batch):
            if do == "unknown":
                expected[number] = "refused"
            elif where == "plain":
                words = {"invalid": "refused", "denied": "denied", "raise": "failed", "fail": "failed"}
                expected[number] = words.get(do, "success")
        got = {number: ended[f"c{turn}-{number}"] for number in range(len(batch))}
        assert got == expected
    for name, model in models.items():
        state = run.result.toolkits[name]
        assert state.unlocked_states == model.states
        assert {key: value for key, value in state.context.items() if key in KEYS} == model.keys
        assert state.context.get("attempt") in (None, "ok", "pair")


@given(machines, st.sets(st.sampled_from(STATES)))
def test_the_analysis_finds_what_trying_everything_finds(machine: dict[str, Gate], initial: set[str]) -> None:
    found = analyse(machine, initial)
    seen, waiting = {frozenset(initial)}, [frozenset(initial)]
    while waiting:
        states = waiting.pop()
        for gate in machine.values():
            if set(gate.requires) <= states and not set(gate.forbids) & states:
                after = frozenset((states | set(gate.enables)) - set(gate.disables))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    ever = {tool for tool, gate in machine.items() for states in seen if gate.opens(states)}
    assert set(found.never) == machine.keys() - ever
    stuck = {states for states in seen if not any(gate.opens(states) for gate in machine.values())}
    assert bool(found.dead_ends) == bool(stuck)
    for end in found.dead_ends:
        states = frozenset(initial)
        for tool in end.path:
            assert machine[tool].opens(states)
            states = machine[tool].after(states)
        assert states == end.unlocked
        assert states in stuck
    enabled = set(initial).union(*(gate.enables for gate in machine.values()))
    assert set(found.unreached) == {state for gate in machine.values() for state in gate.requires} - enabled


def test_a_machine_too_large_to_walk_through_is_still_judged() -> None:
    names = [f"s{number}" for number in range(40)]
    machine = {f"on_{name}": Gate(enables=(name,)) for name in names} | {"never": Gate(requires=("x", names[0]))}
    found = analyse(machine)
    assert not found.complete
    assert found.never == ("never",)
    assert dict(found.unreached) == {"x": ("never",)}


@pytest.mark.sample(6)
@pytest.mark.parametrize(("first", "second"), list(product(["ok", "raise", "fail", "denied", "invalid"], repeat=2)))
def test_no_arrangement_of_failures_waits_for_ever(first: str, second: str) -> None:
    open_machine = {"t0": Gate(), "t1": Gate()}
    batch = [
        ("a", 0, first, "k"),
        ("b", 0, second, "k"),
        ("a", 1, second, "l"),
        ("b", 1, first, "l"),
        ("a", 0, "ok", "k"),
    ]
    run = played(open_machine, open_machine, [batch, batch])
    assert run.result.status == "completed"
    assert len(run.statuses) == 10
