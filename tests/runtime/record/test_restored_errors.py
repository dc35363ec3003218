"""Errors that were kept: each of llm-do's classes comes back as itself, with everything that its users read."""

from __future__ import annotations

from llm_do import errors
from llm_do.project.faults import restored_error
from llm_do.runtime.record.request_outcome import RequestFailure

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.LlmDoError) and kind is not errors.ContextValidationError
]


def test_each_class_comes_back_with_its_attributes() -> None:
    assert len(KINDS) > 25
    for kind in KINDS:
        fresh, again = kind("it broke", hint="Mend it."), restored_error(kind.__name__, "it broke", hint="Mend it.")
        assert type(again) is kind
        assert vars(again) == vars(fresh)
        assert again.status == fresh.status
    kept = restored_error("ToolError", "it broke", file="tools.py", line=3, agent_path="main")
    assert kept is not None
    assert (kept.file, kept.line, kept.agent_path) == ("tools.py", 3, "main")


def test_other_classes_are_not_taken_for_ours() -> None:
    for name in ("KeyError", "EXIT_CODES", "Any", "", "annotations", "ContextValidationErrors"):
        assert restored_error(name, "x") is None
    assert type(restored_error("ContextValidationError", "x")) is errors.ToolError


def test_a_failed_request_raises_the_same_class_when_it_is_replayed() -> None:
    raised = errors.ModelUnavailableError("no key", hint="Set one.")
    kept = RequestFailure.from_dict(RequestFailure.of(raised).to_dict()).exception()
    assert (type(kept), str(kept), kept.hint) == (type(raised), str(raised), raised.hint)  # type: ignore[attr-defined]
