"""A run is named by its id or by its beginning; where none or several match, the error says which of the two it is."""

from __future__ import annotations

import asyncio

import pytest

from llm_do.errors import UsageError
from llm_do.runtime.approval.question_answers import find_question
from llm_do.runtime.record.run_names import named_run, run_by_name
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


def test_no_run_is_meant_by_an_empty_name_though_every_id_begins_with_it(store: ThreadStore) -> None:
    async def scenario() -> None:
        await store.begin_run(RunRecord("only", "running", "main", None, None, 1.0), ThreadConfig())

        with pytest.raises(UsageError, match="the run's id is empty") as refused:
            await named_run(store, "")
        assert refused.value.hint
        with pytest.raises(UsageError, match=r"there is no question '\.1'"):
            await find_question(store, ".1")

    asyncio.run(scenario())


def test_a_question_of_several_runs_is_refused_with_their_ids(store: ThreadStore) -> None:
    async def scenario() -> None:
        for number, id in enumerate(["ab1", "ab2"]):
            await store.begin_run(RunRecord(id, "running", "main", None, None, float(number)), ThreadConfig())

        with pytest.raises(UsageError, match="begin with 'ab': ab2, ab1"):
            await find_question(store, "ab.1")

    asyncio.run(scenario())


def test_runs_of_other_users_make_no_name_ambiguous(store: ThreadStore) -> None:
    async def scenario() -> None:
        for number, (id, user) in enumerate([("ab1", "ann"), ("ab2", "bob"), ("ab", "bob"), ("c", "bob")]):
            await store.begin_run(RunRecord(id, "running", "main", None, user, float(number)), ThreadConfig())

        async def found(name: str, user: str) -> str | None:
            run = await run_by_name(store, name, user)
            return run.id if run is not None else None

        assert [await found(name, "ann") for name in ("ab", "ab2", "c")] == ["ab1", None, None]
        assert [await found(name, "bob") for name in ("ab", "ab2", "c")] == ["ab", "ab2", "c"]

    asyncio.run(scenario())
