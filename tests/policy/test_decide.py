"""The precedence table, row by row, and the ways a question is answered without a person."""

from __future__ import annotations

from llm_do.policy.decision import Mode, answer_automatically, decide, deny_without_approver
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.rules import Policy, build_policy, option_rules
from llm_do.policy.values import Decision, Effect, Source, ToolCallInfo, ToolKind
from tests.support.tables import each_row

CALL = ToolCallInfo("write_file", {"path": "a.md"}, primary="path", resolved={"path": "a.md"})
ALLOW, ASK, BLOCKED = Decision("allow", "inside"), Decision("ask", "it writes"), Decision("deny", "a secret")
PERSON = Decision("ask", "project.json is the project itself", person_only=True)


def rules(**approvals: object) -> Policy:
    policy, faults = build_policy(approvals, lambda path: f"project.json:{len(path)}")
    assert not faults
    return policy


EVERYTHING = {"allow": ["*", "write_file(a.md)"], "default": "allow"}


@each_row(
    "approvals, metadata, toolset, function, effect, source",
    [
        # 1. blocked or deny from any source
        (EVERYTHING, "allow", BLOCKED, "allow", "deny", "blocked"),
        ({**EVERYTHING, "deny": ["write_file"]}, "allow", ALLOW, "allow", "deny", "deny"),
        (EVERYTHING, "allow", ALLOW, "deny", "deny", "policy"),
        (EVERYTHING, "deny", ALLOW, "allow", "deny", "metadata"),
        ({"deny": ["write_file"], "ask": ["*"]}, None, PERSON, "ask", "deny", "deny"),
        # 2. ask from a rule or the policy function, or a question only a person can answer
        ({**EVERYTHING, "ask": ["write_file"]}, "allow", ALLOW, "allow", "ask", "ask"),
        (EVERYTHING, "allow", ALLOW, "ask", "ask", "policy"),
        (EVERYTHING, "allow", PERSON, "allow", "ask", "toolset"),
        # 3. allow from a rule, the policy function, metadata
        ({"allow": ["write_file"], "default": "deny"}, "ask", ASK, None, "allow", "allow"),
        ({"default": "deny"}, "ask", ASK, "allow", "allow", "policy"),
        ({"default": "deny"}, "allow", ASK, None, "allow", "metadata"),
        # 4. the tool's own question, then the toolset's verdict
        ({"default": "allow"}, "ask", ALLOW, None, "ask", "metadata"),
        ({"default": "deny"}, None, ALLOW, None, "allow", "toolset"),
        ({"default": "allow"}, None, ASK, None, "ask", "toolset"),
        # 5. the default
        ({"default": "allow"}, None, None, None, "allow", "default"),
        ({"default": "ask"}, None, None, None, "ask", "default"),
        ({"default": "deny"}, None, None, None, "deny", "default"),
        ({}, None, None, None, "ask", "default"),
    ],
)
def test_the_first_row_that_applies_decides(
    approvals: dict[str, object],
    metadata: Effect | None,
    toolset: Decision | None,
    function: Effect | None,
    effect: Effect,
    source: Source,
) -> None:
    decision = decide(CALL, rules(**approvals), metadata=metadata, toolset=toolset, function=function)
    assert (decision.effect, decision.source) == (effect, source)
    assert decision.reason.startswith("write_file ")
    assert decision.person_only is (source == "toolset" and toolset is PERSON)


@each_row("kind", ["agent", "flow", "handoff", "builtin"])
def test_calls_of_this_kind_are_allowed_by_default_unless_the_project_asks(kind: ToolKind) -> None:
    call = ToolCallInfo("analyst", {}, kind=kind)
    assert decide(call, Policy()).effect == "allow"
    assert decide(call, Policy(), calls_require_approval=True).effect == "ask"
    assert decide(call, Policy("allow"), calls_require_approval=True).effect == "ask"
    assert decide(call, Policy("deny"), calls_require_approval=True).effect == "deny"
    assert decide(call, rules(allow=["analyst"]), calls_require_approval=True).effect == "allow"


@each_row("kind", ["function", "toolset", "toolkit", "mcp"])
def test_the_projects_own_tools_need_approval_by_default(kind: ToolKind) -> None:
    assert decide(ToolCallInfo("send", {}, kind=kind), Policy()) == Decision(
        "ask", "send needs approval by default: no rule covers it", source="default"
    )


def test_a_decision_names_the_rule_its_location_and_its_reason() -> None:
    policy = rules(deny=["read_file", {"rule": "write_file(*.md)", "why": "notes are the people's"}])
    decision = decide(CALL, policy)
    assert decision.rule == "write_file(*.md)"
    assert decision.place == "project.json:4"
    assert decision.reason == (
        "write_file is denied by the rule write_file(*.md) (project.json:4): notes are the people's"
    )


def test_a_deny_option_is_a_rule_that_nothing_overrides() -> None:
    policy = rules(allow=["*"]).plus(option_rules("deny", ["write_file(a.*)"]))
    decision = decide(CALL, policy, metadata="allow", function="allow")
    assert (decision.effect, decision.place) == ("deny", "--deny")
    allowed = [parse_pattern("*")]
    assert answer_automatically(decision, remembered=True, options=allowed, mode="approve_all", call=CALL) is decision


def test_rules_allow_a_pipeline_together_and_one_stage_denies_it() -> None:
    pipeline = (("git", "log"), ("head", "-3", "notes.txt"))
    call = ToolCallInfo("shell", {"command": "..."}, primary="command", resolved={"command": pipeline})
    decision = decide(call, rules(allow=["shell(ls *)", "shell(head *)", "shell(git log *)"]))
    assert (decision.effect, decision.rule) == ("allow", "shell(head *), shell(git log *)")
    assert decide(call, rules(allow=["shell(git log *)"])).effect == "ask"
    assert decide(call, rules(allow=["shell(*)"], deny=["shell(head *)"])).effect == "deny"


def test_a_command_that_could_not_be_parsed_is_never_allowed_by_a_rule() -> None:
    call = ToolCallInfo("shell", {"command": "git log; x"}, primary="command", resolved={"command": None})
    assert decide(call, rules(allow=["*", "shell", "shell(*)", "shell(git log *)"])).effect == "ask"
    denied = decide(call, rules(deny=["shell(rm *)"]))
    assert denied.effect == "deny"
    assert "could not be resolved" in denied.reason


@each_row(
    "remembered, options, mode, effect, source",
    [
        (True, ["write_file"], "reject_all", "allow", "remembered"),
        (False, ["write_file"], "reject_all", "allow", "option"),
        (False, ["write_file(b.md)"], "approve_all", "allow", "mode"),
        (False, [], "reject_all", "deny", "mode"),
    ],
)
def test_a_question_is_answered_in_order(
    remembered: bool, options: list[str], mode: Mode, effect: Effect, source: Source
) -> None:
    question = decide(CALL, Policy())
    patterns = [parse_pattern(text) for text in options]
    answered = answer_automatically(question, remembered=remembered, options=patterns, mode=mode, call=CALL)
    assert answered is not None
    assert (answered.effect, answered.source) == (effect, source)


def test_an_unanswered_question_goes_to_a_person() -> None:
    assert answer_automatically(decide(CALL, Policy()), remembered=False, options=[], mode="prompt", call=CALL) is None


def test_a_question_for_a_person_only_can_be_answered_otherwise_only_by_a_denial() -> None:
    question = decide(CALL, Policy(), toolset=PERSON)
    everything = [parse_pattern("*")]
    for mode in ("prompt", "approve_all"):
        assert answer_automatically(question, remembered=True, options=everything, mode=mode, call=CALL) is None
    denied = answer_automatically(question, remembered=True, options=everything, mode="reject_all", call=CALL)
    assert denied is not None
    assert (denied.effect, denied.source) == ("deny", "mode")


def test_options_allow_a_pipeline_together() -> None:
    pipeline = (("git", "log"), ("tee",))
    call = ToolCallInfo("shell", {"command": ""}, primary="command", resolved={"command": pipeline})
    question = decide(call, Policy())
    options = [parse_pattern("shell(git log *)"), parse_pattern("shell(tee)")]
    granted = answer_automatically(question, remembered=False, options=options, mode="prompt", call=call)
    assert granted is not None
    assert granted.effect == "allow"
    assert answer_automatically(question, remembered=False, options=options[:1], mode="prompt", call=call) is None


def test_final_decisions_are_not_changed_by_answers() -> None:
    allowed = decide(CALL, rules(allow=["*"]))
    assert answer_automatically(allowed, remembered=False, options=[], mode="reject_all", call=CALL) is allowed


def test_without_a_person_the_denial_names_the_rule_that_would_allow_the_call() -> None:
    denied = deny_without_approver(decide(CALL, Policy()), CALL)
    assert (denied.effect, denied.source) == ("deny", "unattended")
    assert denied.reason == (
        "write_file is denied: no terminal to ask on; allow it with --allow 'write_file(a.md)' "
        "or with that rule under approvals.allow"
    )


def test_a_denial_offers_a_rule_for_similar_calls_if_it_is_narrow() -> None:
    def reason(call: ToolCallInfo) -> str:
        return deny_without_approver(decide(call, Policy()), call).reason.partition("; ")[2]

    lend = ToolCallInfo("lend", {"title": "Emma", "to": "ann"})
    assert reason(lend) == (
        "allow it with --allow 'lend(title=Emma, to=ann)', or calls like it with --allow lend, "
        "or with such a rule under approvals.allow"
    )
    path = {"path": "out/a.md"}
    assert "--allow 'write_file(out/**)'" in reason(
        ToolCallInfo("write_file", path, kind="toolset", primary="path", resolved=path)
    )
    command = {"command": (("git", "log", "-3"),)}
    assert "--allow 'shell(git log *)'" in reason(
        ToolCallInfo("shell", {"command": "git log -3"}, kind="toolset", primary="command", resolved=command)
    )
    assert "\n" not in reason(lend)


def test_a_denial_offers_no_rule_for_any_file_any_program_or_any_agent() -> None:
    def reason(call: ToolCallInfo) -> str:
        return deny_without_approver(decide(call, Policy()), call).reason

    command = {"command": (("python", "x.py"),)}
    for call in (
        CALL,
        ToolCallInfo("refresh", {}),
        ToolCallInfo("agent_create", {"name": "x"}, kind="toolset", primary="name"),
        ToolCallInfo("shell", {"command": "python x.py"}, kind="toolset", primary="command", resolved=command),
    ):
        assert "calls like it" not in reason(call)


def test_a_required_approval_is_satisfied_by_any_source_but_the_tool_itself() -> None:
    required = Decision("ask", "expensive", required=True)
    asked = decide(CALL, rules(default="allow"), metadata="allow", toolset=required)

    assert (asked.effect, asked.source, asked.reason) == ("ask", "toolset", "write_file needs approval: expensive")
    assert decide(CALL, rules(allow=["write_file"]), toolset=required).approves
    assert decide(CALL, Policy(), toolset=required, function="allow").approves
    assert decide(CALL, rules(deny=["write_file"]), toolset=required).effect == "deny"
    assert decide(CALL, Policy(), metadata="allow", toolset=Decision("ask")).effect == "allow"


@each_row(
    "decision, approves",
    [
        (Decision("allow", source="allow"), True),
        (Decision("allow", source="policy"), True),
        (Decision("allow", source="remembered"), True),
        (Decision("allow", source="option"), True),
        (Decision("allow", source="mode"), True),
        (Decision("allow", source="person"), True),
        (Decision("allow", source="default"), False),
        (Decision("allow", source="metadata"), False),
        (Decision("allow", source="toolset"), False),
        (Decision("ask", source="ask"), False),
        (Decision("deny", source="person"), False),
    ],
)
def test_a_permission_counts_as_an_approval_only_from_an_explicit_source(decision: Decision, approves: bool) -> None:
    assert decision.approves is approves


def test_a_call_allowed_by_its_kind_has_a_reason() -> None:
    listed = ToolCallInfo("todo_add", {}, kind="builtin")

    assert decide(listed, Policy()).reason.endswith("it changes nothing outside the run")
    assert decide(listed, Policy(), default_reason="it is a list").reason.endswith("allowed by default: it is a list")
    assert decide(ToolCallInfo("critic", {}, kind="agent"), Policy()).reason.endswith(
        "its own calls are decided one by one"
    )


def test_without_a_person_a_denial_proposes_only_what_would_help() -> None:
    by_rule = deny_without_approver(decide(CALL, rules(ask=["write_file"])), CALL)
    assert "--allow 'write_file(a.md)'" in by_rule.reason
    assert "approvals.allow" not in by_rule.reason
    persons = deny_without_approver(decide(CALL, Policy(), toolset=PERSON), CALL)
    assert "--allow" not in persons.reason
    assert "only a person" in persons.reason
    unparsed = ToolCallInfo("shell", {"command": "a;b"}, primary="command", resolved={"command": None})
    assert "--allow" not in deny_without_approver(decide(unparsed, Policy()), unparsed).reason
