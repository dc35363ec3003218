"""Warnings that are suppressed on purpose, among those of a program."""

from __future__ import annotations

import warnings

from llm_do._warnings import suppress_warning


def test_another_warning_is_shown_once_however_often_several_are_suppressed() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            suppress_warning("One thing", UserWarning)
            suppress_warning("Something else", UserWarning)
            for message in ("One thing is odd", "Something else is, too", "This is the program's"):
                warnings.warn(message, UserWarning, stacklevel=1)
    assert [str(each.message) for each in shown] == ["This is the program's"]
