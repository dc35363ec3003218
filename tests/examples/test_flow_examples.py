"""The examples of flows: workflows, a conversation that is handed over, a team."""

from __future__ import annotations

from collections.abc import Callable

from llm_do import Project, Runtime

Load = Callable[[str], Project]


def test_the_newsroom_checks_facts_and_style_in_parallel_and_prints_a_headline(example: Load) -> None:
    result = Runtime(example("newsroom")).run_sync()

    assert str(result.output).startswith("A DRILL FOR THE WEEKEND\n\nWhoever needs a drill")
    assert sorted(record.path for record in result.calls) == [
        "article/1/researcher",
        "article/2/fact_checker",
        "article/2/stylist",
        "article/3/writer",
        "article/4/headline",
    ]
    assert result.steps == 4


def test_the_guest_book_judges_each_entry_and_repeats_the_letter_until_it_is_approved(example: Load) -> None:
    result = Runtime(example("guest_book")).run_sync()

    assert str(result.output).startswith("HOTEL AT THE HARBOUR\n\nDear guests of room 4 and room 9")
    assert sorted(record.path.removeprefix("answer/") for record in result.calls) == [
        "1/entries",
        "2/1/judge",
        "2/2/judge",
        "2/3/judge",
        "3/tally",
        "4/1/1/1/manager",
        "4/1/1/2/proofread",
        "4/1/2/1/manager",
        "4/1/2/2/proofread",
        "4/2/print_letter",
    ]


def test_support_hands_over_asks_before_paying_and_stays_with_the_last_agent(example: Load) -> None:
    runtime = Runtime(example("support_handoff"), allow=["refund"])

    first = runtime.run_sync()
    second = runtime.run_sync("And which lamp is good for reading?", execution_context=first.execution_context)

    assert first.output == "You were charged twice. Here is what I did: refunded 49.90 euros for order 1207"
    assert first.execution_context.active_agent == "billing"
    assert [record.path for record in second.calls] == ["support/1/billing", "support/2/triage", "support/3/sales"]
    assert str(second.output).startswith("The brass one.")


def test_support_pays_nothing_without_approval_and_says_so(example: Load) -> None:
    result = Runtime(example("support_handoff")).run_sync()

    assert [denial.agent_path for denial in result.denials] == ["support/2/billing"]
    assert "refund is denied" in str(result.output)


def test_the_desk_calls_two_agents_in_parallel_and_assembles_the_page(example: Load) -> None:
    result = Runtime(example("desk_team")).run_sync()

    assert "goose under an umbrella" in str(result.output)
    assert [record.path for record in result.calls] == [
        "desk/1/editor/reporter",
        "desk/1/editor/photographer",
        "desk/1/editor",
    ]
