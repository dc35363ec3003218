"""A run is named by its id or by its beginning; where none or several match, the error says which of the two it is."""

from __future__ import annotations

import asyncio

import pytest

from llm_do.errors import UsageError
from llm_do.runtime.record.run_names import named_run
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads import ThreadConfig, ThreadStore


def test_a_name_is_that_of_one_run_or_refused_with_the_reason(store: ThreadStore) -> None:
    async def scenario() -> None:
        for number, id in enumerate(["ab1", "ab2", "abc", "abc-1", "b", *(f"many{each}" for each in range(9))]):
            await store.begin_run(RunRecord(id, "running", "main", None, None, float(number)), ThreadConfig())

        assert [(await named_run(store, name)).id for name in ("abc", "abc-", "b")] == ["abc", "abc-1", "b"]
        with pytest.raises(UsageError, match=r"^no run has the id 'c'\n"):
            await named_run(store, "c")
        with pytest.raises(UsageError, match=r"begin with 'ab': abc-1, abc, ab2, ab1\n") as several:
            await named_run(store, "ab")
        assert several.value.hint == "Write more of the id."
        with pytest.raises(UsageError, match=r"begin with 'many': many8, many7, many6, many5, many4 and more\n"):
            await named_run(store, "many")

    asyncio.run(scenario())
