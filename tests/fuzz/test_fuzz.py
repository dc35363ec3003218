"""The fuzz targets keep their invariants for generated inputs: a few here, many among the slow tests."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.mutation import fuzz, mutated
from tests.fuzz.targets import TARGETS, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_keeps_its_invariants_for_a_few_mutations(name: str) -> None:
    beginning = seeds(name)

    different = fuzz(TARGETS[name], beginning, Random(name), lambda tried: tried < len(beginning) + 100)

    assert different > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_a_target_keeps_its_invariants_for_many_mutations(name: str, seed: int) -> None:
    assert fuzz(TARGETS[name], seeds(name), Random(f"{name} {seed}"), lambda tried: tried < 5_000) > 20


def test_an_input_that_breaks_an_invariant_is_found_and_shown() -> None:
    def target(data: bytes) -> int:
        assert b"ab" not in data
        return len(data)

    with pytest.raises(AssertionError) as broken:
        fuzz(target, [b"a", b"b"], Random(1), lambda tried: tried < 10_000)

    (note,) = broken.value.__notes__
    assert note.startswith("the input was b'")
    assert "ab" in note


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, again, other = ([mutated(seeds("flow"), random) for _ in range(20)] for random in map(Random, (1, 1, 2)))

    assert first == again != other


def test_the_command_reports_what_it_tried_and_stops_at_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["flow", "--seconds", "0", "--seed", "1"])
    assert capsys.readouterr().out.startswith("flow: 10 inputs, of which ")

    monkeypatch.setitem(TARGETS, "flow", lambda data: 1 // (data != b"a >> b"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ZeroDivisionError) as broken:
        main(["flow", "--seconds", "0", "--seed", "7"])
    assert broken.value.__notes__ == ["the input was b'a >> b'", "flow breaks a promise, with --seed 7"]
    with pytest.raises(SystemExit):
        main(["floe"])
    assert "there is no floe; there are agent-file" in capsys.readouterr().err
