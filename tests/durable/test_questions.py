"""Questions of durable runs: kept until a person answers, in whichever process, for exactly what was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_do import ApprovalDecision, ApprovalRequest, Project, RunApprovalPolicy, RunResult, Runtime, tool
from llm_do.errors import SuspendedError, UsageError
from llm_do.runtime.record.stored_records import Filter
from llm_do.runtime.session.runtime_config import RuntimeConfig
from llm_do.threads import SqliteStore
from llm_do.threads.postgres.postgres_store import PostgresStore
from tests.durable.scenarios import effects_of, runtime_for
from tests.durable.test_resumed_runs import store_path
from tests.support.history import results_of
from tests.support.runs import agent, project_of
from tests.support.scripted import call, script

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore
    from tests.support.postgres import Server

ONCE = ApprovalDecision("once")


def shop(root: Path, *turns: Any, **fields: Any) -> Project:
    """A project whose agent may pay, which needs approval."""

    def pay(amount: int) -> str:
        """Pay."""
        with (root / "effects").open("a") as file:
            file.write(f"{amount}\n")
        return f"paid {amount}"

    main = agent("main", script(*turns, "answer"), tools=["pay"], toolsets=["ask_user"])
    return project_of([main], root=root, tools={"pay": pay}, **fields)


def pay(amount: int, id: str = "p") -> Any:
    return call("pay", {"amount": amount}, f"{id}{amount}")


class Session:
    """Attempts at the run `r` of one project, each with a runtime of its own, as in processes of their own."""

    def __init__(self, store: SqlStore, project: Callable[[], Project]) -> None:
        self.store, self.project = store, project

    def runtime(self, **options: Any) -> Runtime:
        project = self.project()
        options = {"durable": True, "store": self.store, **options}
        return Runtime(project, config=RuntimeConfig.of(project, **options))

    async def run(self, **options: Any) -> RunResult:
        return await self.runtime(**options).execute("go", run_id="r")

    async def answer(self, number: int, answer: Any = ONCE, **options: Any) -> None:
        await self.runtime().answer(f"r.{number}", answer, **options)

    async def asked(self) -> list[str]:
        return [each.call for each in await self.runtime().pending()]

    async def journal(self) -> list[Any]:
        return [each.data for each in await self.store.observations(Filter(run_id="r"))]


Check = Callable[[Callable[[], Project], Callable[[Session], Awaitable[None]]], None]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SqlStore:
    """A store of each kind: what is asked and answered is the same on both."""
    if request.param == "sqlite":
        return SqliteStore(store_path(tmp_path))
    server: Server = request.getfixturevalue("postgres")
    return PostgresStore(server.url())


@pytest.fixture
def check(store: SqlStore) -> Check:
    """Take the steps of a test in sessions on the store."""

    def carry_out(project: Callable[[], Project], steps: Callable[[Session], Awaitable[None]]) -> None:
        async def work() -> None:
            try:
                await steps(Session(store, project))
            finally:
                await store.aclose()

        asyncio.run(work())

    return carry_out


def test_a_run_waits_with_nothing_running_until_all_is_answered(check: Check, tmp_path: Path) -> None:
    question = call("ask_user", {"question": "Which?", "choices": ["red", "blue"]}, "u")

    async def steps(session: Session) -> None:
        result = await session.run()
        assert (result.status, result.exit_code, effects_of(tmp_path)) == ("suspended", 5, [])
        assert isinstance(result.error, SuspendedError)
        assert [each.id for each in result.error.questions] == ["r.1", "r.2"]
        assert str(result.error).startswith("2 answers are needed; nothing is running now")
        assert [each["id"] for each in result.to_dict()["questions"]] == ["r.1", "r.2"]
        with pytest.raises(SuspendedError):
            await session.runtime().resume("r")
        await session.answer(1)
        await session.answer(2, ApprovalDecision("deny", note="too much"))
        result = await session.run()
        assert (result.status, effects_of(tmp_path), await session.asked()) == (
            "suspended",
            ["7"],
            ['ask_user(question=Which?, choices=["red","blue"])'],
        )
        await session.answer(3, "2", by="ann")
        result = await session.run()
        assert (result.status, result.output, result.questions, await session.asked()) == (
            "completed",
            "answer",
            [],
            [],
        )
        assert [text for _, _, text in results_of(result.messages)] == [
            "paid 7",
            "a person denied pay: too much. Do not retry this call.",
            "blue",
        ]
        kept = await session.journal()
        assert [each["seq"] for each in kept] == list(range(len(kept)))
        assert [each["type"] for each in kept].count("approval_requested") == 2
        resolved = {each["tool_call_id"]: each["decision"] for each in kept if each["type"] == "approval_resolved"}
        assert resolved == {"p7": "allow", "p8": "deny"}  # in any order

    check(lambda: shop(tmp_path, [pay(7), pay(8)], question), steps)


def test_what_cannot_be_answered_is_refused_and_says_why(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.run()
        runtime = session.runtime()
        refused: dict[str, tuple[str, Any]] = {
            "there is no question 'r.9'": ("r.9", ONCE),
            "there is no question 'x.1'": ("x.1", ONCE),
            "there is no question 'nonsense'": ("nonsense", ONCE),
            "can't be answered with 'all'": ("r.1", ApprovalDecision("all")),
            "can't be answered with 'unanswered'": ("r.1", ApprovalDecision("unanswered")),
            "can't be answered with 'yes please'": ("r.1", "yes please"),
            "is no rule": ("r.1", ApprovalDecision("session", pattern="pay(((")),
        }
        for why, (id, answer) in refused.items():
            with pytest.raises(UsageError, match=why.replace("(", r"\(")):
                await runtime.answer(id, answer)
        await runtime.answer("r.1", ONCE, by="ann")
        with pytest.raises(UsageError, match=r"r.1 has been answered already: allow, by ann at "):
            await runtime.answer("r.1", ApprovalDecision("deny"))
        await session.store.drop_run("r")
        with pytest.raises(UsageError, match=r"question r.2 is closed: its run has ended \(interrupted\)"):
            await runtime.answer("r.2", ONCE)
        with pytest.raises(UsageError, match="no run has the id 'nobody'"):
            await runtime.pending("nobody")
        assert await runtime.pending("r") == []
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        other = Runtime(shop(elsewhere), durable=True, store=SqliteStore(store_path(elsewhere)))
        with pytest.raises(UsageError, match=r"there is no question 'r.2' in .*elsewhere"):
            await other.answer("r.2", ONCE)
        await other.aclose()

    check(lambda: shop(tmp_path, [pay(7), pay(8)]), steps)


def test_a_rule_that_denies_meanwhile_holds(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.run()
        await session.answer(1)
        result = await session.run(deny=["pay"])
        assert (result.status, effects_of(tmp_path)) == ("completed", [])
        assert "denied" in results_of(result.messages)[0][2]

    check(lambda: shop(tmp_path, pay(7)), steps)


def test_an_answer_for_the_session_holds_as_long_as_the_run_lasts_and_for_no_other_run(
    check: Check, tmp_path: Path
) -> None:
    question = call("ask_user", {"question": "Ready?"}, "u")

    async def steps(session: Session) -> None:
        await session.run()
        await session.answer(1, ApprovalDecision("session"))
        assert await session.asked() == []
        assert (await session.run()).status == "suspended"  # it has paid and asks; its session has ended
        await session.answer(2, "yes")
        result = await session.run()
        assert (result.status, effects_of(tmp_path)) == ("completed", ["7", "7"])
        other = await session.runtime().execute("go", run_id="other")
        assert other.status == "suspended"

    check(lambda: shop(tmp_path, pay(7), question, pay(7, "again")), steps)


def test_a_rule_as_answer_holds_for_later_calls_of_the_run(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.run()
        await session.answer(1, ApprovalDecision("session", pattern="pay(amount=*)"))
        result = await session.run()
        assert (result.status, effects_of(tmp_path)) == ("completed", ["7", "8"])

    check(lambda: shop(tmp_path, pay(7), pay(8)), steps)


def test_a_change_that_was_shown_otherwise_is_asked_about_again(check: Check, tmp_path: Path) -> None:
    write = call("write_file", {"path": "notes.txt", "content": "new\n"}, "w")
    notes = tmp_path / "notes.txt"
    notes.write_text("old\n")

    def project() -> Project:
        return project_of([agent("main", script(write, "answer"), toolsets=["filesystem_project"])], root=tmp_path)

    async def steps(session: Session) -> None:
        await session.run()
        assert "-old" in (await session.runtime().pending())[0].request["diff"]
        await session.answer(1)
        notes.write_text("other\n")
        result = await session.run()
        assert (result.status, notes.read_text()) == ("suspended", "other\n")
        assert [each.id for each in result.questions] == ["r.2"]
        assert "-other" in result.questions[0].request["diff"]
        await session.answer(2)
        assert (await session.run()).status == "completed"
        assert notes.read_text() == "new\n"
        kept = await session.journal()
        asked = [each["type"] for each in kept if each["type"].startswith("approval_")]
        assert asked == ["approval_requested", "approval_resolved"] * 2

    check(project, steps)


def test_a_question_about_content_that_has_changed_is_withdrawn(check: Check, tmp_path: Path) -> None:
    write = call("write_file", {"path": "notes.txt", "content": "new\n"}, "w")
    notes = tmp_path / "notes.txt"
    notes.write_text("old\n")

    def project() -> Project:
        return project_of([agent("main", script(write, "answer"), toolsets=["filesystem_project"])], root=tmp_path)

    async def steps(session: Session) -> None:
        await session.run()
        notes.write_text("other\n")
        await session.run()
        with pytest.raises(UsageError, match=r"question r\.1 is no longer asked"):
            await session.answer(1)
        await session.answer(2, ApprovalDecision("deny"))
        assert (await session.run()).status == "completed"

    check(project, steps)


def test_other_branches_finish_before_a_run_is_suspended(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        result = await session.run()
        assert (result.status, [each.call for each in result.questions]) == ("suspended", ["pay(amount=7)"])
        assert sorted(effects_of(tmp_path)) == ["s1", "s2", "s3"]
        await session.answer(1)
        result = await session.run()
        assert (result.status, len(effects_of(tmp_path))) == ("completed", 4)

    def project() -> Project:
        found = shop(tmp_path, pay(7))

        @tool(approval="allow")
        async def slowly(item: str) -> str:
            """Work for a while."""
            await asyncio.sleep(0.2)
            with (tmp_path / "effects").open("a") as file:
                file.write(f"{item}\n")
            return item

        turns = [call("slowly", {"item": f"s{number}"}, f"s{number}") for number in (1, 2, 3)]
        slow = agent("slow", script(*turns, "slow's"), tools=["slowly"])
        both = [call("main", {"input": "x"}, "c1"), call("slow", {"input": "y"}, "c2")]
        lead = agent("lead", script(both, "led"), toolsets=["main", "slow"])
        specs = [lead, slow, found.registry["main"].value]
        tools = {"pay": found.registry["pay"].value, "slowly": slowly}
        return project_of(specs, root=tmp_path, tools=tools)

    check(project, steps)


def test_an_answer_for_all_identical_calls_is_given_once(check: Check, tmp_path: Path) -> None:
    calls = [call("pay", {"amount": 7}, f"p{number}") for number in range(3)]

    async def steps(session: Session) -> None:
        await session.run()
        assert len(await session.asked()) == 3
        await session.answer(2, ApprovalDecision("all"))
        assert await session.asked() == []
        assert (await session.run()).status == "completed"
        assert effects_of(tmp_path) == ["7", "7", "7"]

    check(lambda: shop(tmp_path, calls), steps)


def test_no_one_who_answers_leaves_the_question_open(check: Check, tmp_path: Path) -> None:
    async def unanswered(request: ApprovalRequest) -> ApprovalDecision:
        assert request.kept
        return ApprovalDecision("unanswered", note="they are at lunch")

    async def fails(question: Any) -> str:
        raise TimeoutError

    async def steps(session: Session) -> None:
        result = await session.run(approvals=unanswered, ask_user=fails)
        assert (result.status, len(result.questions), result.denials) == ("suspended", 2, [])

    check(lambda: shop(tmp_path, [pay(7), call("ask_user", {"question": "?"}, "u")]), steps)


def test_the_first_answer_counts_also_where_a_person_is_asked(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do.runtime.steps.run_questions.POLL", 0.02)
    withdrawn: list[str] = []
    notices: list[str] = []

    async def steps(session: Session) -> None:
        async def ask(request: ApprovalRequest) -> ApprovalDecision:
            try:  # the answer may be noticed before the call that gives it has returned
                await session.runtime().answer(request.id, ApprovalDecision("deny", note="no"), by="ann")
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                withdrawn.append(request.id)
                raise
            return ONCE

        async def late(request: ApprovalRequest) -> ApprovalDecision:
            await session.runtime().answer(request.id, ApprovalDecision("deny", note="no"), by="ann")
            return ONCE

        result = await session.run(approvals=ask, notice=notices.append)
        assert (result.status, effects_of(tmp_path), withdrawn) == ("completed", [], ["r.1"])
        assert notices == ["pay(amount=7) was answered elsewhere: deny, by ann"]
        result = await session.runtime(approvals=late).execute("go", run_id="other")
        assert (result.status, effects_of(tmp_path)) == ("completed", [])

    check(lambda: shop(tmp_path, pay(7)), steps)


def test_a_thread_whose_run_is_suspended_takes_no_other_run(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.runtime().execute("go", run_id="r", thread_id="t")
        with pytest.raises(UsageError, match="run r on thread 't' waits to be resumed") as caught:
            await session.runtime().execute("go", thread_id="t")
        assert "llm-do resume r" in str(caught.value.hint)

    check(lambda: shop(tmp_path, pay(7)), steps)


def test_a_call_that_was_running_is_a_question_without_an_attempt_to_resume(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        runtime = session.runtime(approvals="approve_all")
        runtime.on("tool_call", lambda event: asyncio.get_running_loop().call_later(0.05, runtime.interrupt))
        assert (await runtime.execute("go", run_id="r")).status == "interrupted"
        (question,) = await session.runtime().pending()
        assert (question.kind, question.call, question.answers) == (
            "in_flight",
            "wait(item=a)",
            ("repeat", "done", "fail"),
        )
        with pytest.raises(UsageError, match="can't be answered with 'once'"):
            await session.answer(1)
        await session.answer(1, "done")
        result = await session.run()
        assert (result.status, effects_of(tmp_path)) == ("completed", ["a"])
        assert "a person has made sure that it was carried out" in results_of(result.messages)[0][2]

    def project() -> Project:
        async def wait(item: str) -> str:
            """Wait."""
            (tmp_path / "effects").write_text(f"{item}\n")
            await asyncio.sleep(30)
            return item

        main = agent("main", script(call("wait", {"item": "a"}, "w"), "answer"), tools=["wait"])
        return project_of([main], root=tmp_path, tools={"wait": wait})

    check(project, steps)


def test_what_allowed_a_call_of_an_agent_is_kept_for_its_replay(tmp_path: Path, store: SqlStore) -> None:
    """Its steps are replayed though no one is there to allow the call again."""

    async def steps() -> None:
        first = runtime_for("approvals", tmp_path, store=store, ask_user=None, allow=["clerk"])
        result = await first.execute("go", run_id="r")
        assert [each.kind for each in result.questions] == ["ask"]
        again = runtime_for("approvals", tmp_path, store=store, approvals="prompt", ask_user=None)
        await again.answer(result.questions[0].id, "1")
        result = await again.execute_again("r")
        assert (result.status, sorted(effects_of(tmp_path))) == ("completed", ["c1", "m1", "w1"])
        await store.aclose()

    asyncio.run(steps())


def test_secrets_in_questions_are_sealed(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-0123456789")

    def project() -> Project:
        def send(text: str) -> str:
            """Send."""
            (tmp_path / "effects").write_text(text)
            return "sent"

        main = agent("main", script(call("send", {"text": "key sk-acme-0123456789"}, "s"), "answer"), tools=["send"])
        return project_of([main], root=tmp_path, tools={"send": send})

    async def steps(session: Session) -> None:
        (question,) = (await session.run()).questions
        assert question.call == "send(text=key [ACME_API_KEY])"
        await session.answer(1)
        assert (await session.run()).status == "completed"
        assert (tmp_path / "effects").read_text() == "key sk-acme-0123456789"

        tables = "runs", "events", "steps", "questions"
        kept = await session.store._read(lambda db: [db.execute(f"SELECT * FROM {each}").fetchall() for each in tables])
        assert "ACME_API_KEY" in str(kept)
        assert "sk-acme-0123456789" not in str(kept)

    check(project, steps)
    folder = tmp_path / ".llm-do"
    files = [file.read_bytes() for file in folder.iterdir() if file.is_file()] if folder.exists() else []
    assert b"sk-acme-0123456789" not in b"".join(files)


def test_a_policy_that_remembers_nothing_accepts_no_lasting_answer(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        policy = RunApprovalPolicy("prompt", answers=("once", "session", "deny"), remember=False)
        result = await session.run(approvals=policy)
        assert result.questions[0].answers == ("once", "deny")
        with pytest.raises(UsageError, match="can't be answered with 'session'"):
            await session.answer(1, ApprovalDecision("session"))

    check(lambda: shop(tmp_path, pay(7)), steps)


def test_abort_ends_the_run(check: Check, tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.run()
        await session.answer(1, ApprovalDecision("abort"))
        result = await session.run()
        assert (result.status, effects_of(tmp_path), "a person ended the run" in str(result.error)) == (
            "failed",
            [],
            True,
        )

    check(lambda: shop(tmp_path, pay(7)), steps)
