"""Assertions about permissions: what is proved, what breaks them, and what keeps them from being proved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from llm_do import AgentSpec
from llm_do.linker.analysis.inventory import Inventory
from llm_do.linker.analysis.permissions import call_of, decide_about
from llm_do.linker.checks.assertion_checks import prove_assertions
from llm_do.linker.linker import check_project
from llm_do.linker.proofs.assertion_proofs import Proof, Prover
from llm_do.linker.proofs.call_graph import CallGraph
from llm_do.policy.assertions import Never, parse_assertion
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.project.project import Project
from tests.linker.conftest import Check, Make, agent, manifest
from tests.linker.test_permissions import project
from tests.support.tables import each_row

AGENTS = {
    "main.agent": agent("main", "toolsets: [web, writer, dynamic_agents, filesystem_project_ro]"),
    "web.agent": agent("web", "toolsets: [helper]\nserver_side_tools: [{tool_type: web_search}]\nhandoffs: [writer]"),
    "helper.agent": agent("helper", "tools: [add]"),
    "writer.agent": agent("writer", "toolsets: [filesystem_project, term, dynamic_agents]"),
    "tools.py": "def add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\nTOOLS = [add]\n",
}


def proofs(make: Make, texts: list[str], /, files: Mapping[str, object] | None = None, **keys: Any) -> list[Proof]:
    """What is known about assertions in a project of four agents, with more files and keys of the manifest."""
    keys.setdefault("toolsets", {"term": {"type": "shell"}})
    made = manifest(python_files=["*.py"], generated_agents_dir="made", **keys)
    linked = check_project(make({"project.json": made, **AGENTS, **(files or {})}))
    assert linked.project is not None, linked.diagnostics
    prover = Prover(CallGraph(linked.project))
    found: list[Proof] = []
    for text in texts:
        assertion = parse_assertion(text)
        assert isinstance(assertion, Never)
        found.append(prover.prove(assertion))
    return found


@each_row(
    "text, approvals, outcome, chain",
    [
        ("never web -> write_file", {}, "broken", "web hands over to writer; writer calls write_file(x)"),
        ("never web -> write_file unless asked", {}, "holds", ""),
        ("never web -> write_file", {"deny": ["web:transfer_to_writer"]}, "holds", ""),
        ("never web -> write_file", {"deny": ["write_file"]}, "holds", ""),
        ("never web -> write_file", {"deny": ["main:write_file"]}, "broken", "writer calls write_file(x)"),
        ("never web -> files.write(src/**) unless asked", {"allow": ["write_file(src/gen/**)"]}, "broken", "src/gen/"),
        ("never web -> files.write(src/**) unless asked", {"allow": ["write_file(out/**)"]}, "holds", ""),
        (
            "never files.write(src/**) unless asked",
            {"allow": ["write_file"], "deny": ["files.write(src/**)"]},
            "holds",
            "",
        ),
        (
            "never files.write(src/**) unless asked",
            {"allow": ["write_file"], "ask": ["write_file(src/*)"]},
            "broken",
            "(src)",
        ),
        (
            "never files.write(src/**) unless asked",
            {"allow": ["write_file"], "deny": ["files.write(SRC/**)"]},
            "holds",
            "",
        ),
        ("never main -> writer", {}, "broken", "main calls writer"),
        ("never main -> writer", {"deny": ["main:writer"]}, "broken", "web hands over to writer"),
        ("never main -> writer", {"deny": ["writer", "transfer_to_writer"]}, "holds", ""),
        ("never main -> writer -> shell", {}, "broken", "main calls writer; writer calls shell(x)"),
        ("never web -> helper -> shell", {}, "holds", ""),
        ("never web_search -> write_file", {}, "broken", "web calls web_search (and reads the result)"),
        ("never helper -> *", {}, "broken", "helper calls add"),
        ("never add -> shell", {}, "holds", ""),
        ("never web_search unless asked", {}, "broken", "web calls web_search"),
        ("never writer:shell(git push *) unless asked", {"allow": ["shell(git *)"]}, "broken", "git push"),
        ("never shell(git push *) unless asked", {"allow": ["shell(git log *)", "shell(make)"]}, "holds", ""),
        ("never shell(git push *) unless asked", {"allow": ["shell(env *)"]}, "unproved", "writer calls shell"),
        ("never shell(grep *) unless asked", {"allow": ["shell(git log *)"]}, "unproved", "writer calls shell"),
        ("never shell(grep *)", {"allow": ["shell(git log *)"], "deny": ["shell(grep *)"]}, "holds", ""),
        ("never shell(git push *)", {"deny": ["shell(git push *)"]}, "holds", ""),
        ("never shell(git push --force)", {"deny": ["shell(git push *)"]}, "holds", ""),
        ("never shell(git push *)", {"deny": ["shell(git push origin)"]}, "broken", "git push"),
        ("never net", {"deny": ["shell"]}, "holds", ""),
        ("never files.read(keys/**) unless asked", {"deny": ["files.read(keys/**)"]}, "holds", ""),
        ("never shell from generated agents", {}, "broken", "an agent that writer generates calls shell"),
        ("never shell from generated agents", {"deny": ["writer:shell"]}, "holds", ""),
        ("never shell from generated agents", {"deny": ["agent_call"]}, "holds", ""),
        (
            "never generated agents -> write_file unless asked",
            {"allow": ["maid:write_file"]},
            "broken",
            "generates calls",
        ),
        ("never write_file unless asked", {"allow": ["main/writer:write_file"]}, "broken", "main calls writer"),
        ("never web -> write_file unless asked", {"allow": ["main/writer:write_file"]}, "broken", "web hands over"),
        ("never write_file unless asked", {"allow": ["web/writer:write_file"]}, "holds", ""),
        ("never web -> write_file unless asked", {"allow": ["main/web/writer:write_file"]}, "holds", ""),
        ("never add(a=1) unless asked", {"allow": ["add(a=2)"]}, "holds", ""),
        ("never add(a=1) unless asked", {"allow": ["add(a=?)"]}, "broken", "a=1"),
        ("never add", {"default": "deny"}, "holds", ""),
        ("never writer", {"deny": ["main:*", "web:transfer_*"]}, "holds", ""),
    ],
)
def test_an_assertion_is_decided_by_calls_and_rules(
    make: Make, text: str, approvals: dict[str, Any], outcome: str, chain: str
) -> None:
    (proof,) = proofs(make, [text], approvals=approvals)
    shown = "; ".join(map(str, proof.chain))
    assert proof.outcome == outcome, f"{shown}: {proof.reason}"
    assert chain in shown


def test_the_mode_answers_questions(make: Make) -> None:
    texts = ["never write_file unless asked", "never write_file"]
    outcomes = {
        mode: [proof.outcome for proof in proofs(make, texts, runtime={"approval_mode": mode})]
        for mode in ("prompt", "approve_all", "reject_all")
    }
    assert outcomes == {
        "prompt": ["holds", "broken"],
        "approve_all": ["broken", "broken"],
        "reject_all": ["holds", "holds"],
    }


CODE = """
from llm_do import CallContext
from pydantic_ai import RunContext
async def known(ctx: RunContext[CallContext], text: str) -> str:
    return await inner(1, ctx)
async def inner(number, context):
    return await context.deps.call("writer", {"input": "x"})
async def unknown(ctx: RunContext[CallContext], text: str) -> str:
    return await ctx.deps.call(text, {})
async def elsewhere(ctx: RunContext[CallContext], text: str) -> str:
    return await print(ctx)
Alias = RunContext[CallContext]
async def alias(whoever: Alias, text: str) -> str:
    return await whoever.deps.call("writer", {"input": text})
async def harmless(ctx: RunContext[CallContext], text: str) -> str:
    ctx.deps.warn("x")
    return ctx.deps.path
TOOLS = [known, unknown, elsewhere, harmless, alias]
"""


@each_row(
    "tool, outcome, found",
    [
        ("known", "broken", "known calls writer (code.py:6)"),
        ("unknown", "unproved", "the code of unknown (code.py:8) may call any name"),
        ("elsewhere", "unproved", "the code of elsewhere (code.py:10) may call any name"),
        ("alias", "broken", "alias calls writer (code.py:13)"),
        ("harmless", "holds", ""),
    ],
)
def test_code_calls_what_its_source_says(make: Make, tool: str, outcome: str, found: str) -> None:
    main = agent("main", "toolsets: [start]")
    files = {
        "code.py": CODE,
        "main.agent": main,
        "start.agent": agent("start", f"tools: [{tool}]"),
        "web.agent": agent("web"),
        "writer.agent": agent("writer", "toolsets: [filesystem_project]"),
    }
    (proof,) = proofs(make, ["never start -> write_file"], files=files, toolsets={})
    assert proof.outcome == outcome
    assert found in "; ".join(map(str, proof.chain)) + proof.reason


def test_providers_of_instructions_may_call_whatever_their_parameter_is_called(make: Make) -> None:
    code = "async def today(whoever):\n    return await whoever.call('writer', 'x')\n"
    files = {"today.py": code, "web.agent": agent("web", "context_providers: ['today.py:today']")}
    (proof,) = proofs(make, ["never web -> write_file"], files=files)
    assert "today calls writer (today.py:2)" in "; ".join(map(str, proof.chain))


def test_tools_that_are_only_known_in_a_run_keep_an_assertion_from_being_proved(make: Make) -> None:
    files = {
        "main.agent": agent("main", "toolsets: [web, writer, kb, made]"),
        "kit.py": "def made(ctx):\n    return None\nTOOLSETS = [made]\n",
    }
    toolsets = {"kb": {"type": "mcp", "command": ["sh"]}, "term": {"type": "shell"}}
    texts = [
        "never kb_delete",
        "never kb_delete unless asked",
        "never frobnicate unless asked",
        "never kb",
        "never net unless asked",
    ]
    found = proofs(make, texts, files=files, toolsets=toolsets)
    assert [proof.outcome for proof in found] == ["unproved", "unproved", "unproved", "unproved", "unproved"]
    assert "the tools of kb are only known in a run" in {proof.reason for proof in found}
    del files["kit.py"]
    files["main.agent"] = agent("main", "toolsets: [web, writer, kb]")
    (make({}) / "kit.py").unlink()
    found = proofs(make, texts, files=files, toolsets=toolsets)
    assert [proof.outcome for proof in found] == ["unproved", "holds", "holds", "unproved", "holds"]
    (allowed,) = proofs(make, texts[1:2], files=files, toolsets=toolsets, approvals={"allow": ["kb_*"]})
    assert allowed.outcome == "unproved"


def test_tools_that_declare_nothing_may_do_anything_with_their_texts(make: Make) -> None:
    save = (
        'from llm_do import tool\n@tool(approval="allow")\ndef save(name: str) -> str:\n    "Save."\n    return name\n'
    )
    pure = 'from llm_do import tool\n@tool(approval="allow", repeatable=True)\ndef save(name: str) -> str:\n    "S."\n'
    number = (
        'from llm_do import tool\n@tool(approval="allow")\ndef save(name: int) -> str:\n    "Save."\n    return ""\n'
    )
    told = 'from llm_do import tool\n@tool(approval="allow", primary="name", paths=["name"], writes=["name"])\n'
    told += 'def save(name: str) -> str:\n    "Save."\n    return name\n'
    helper = {"helper.agent": agent("helper", "tools: [save]")}
    outcomes: list[str] = []
    for code in (save, pure, number, told):
        files = {**helper, "tools.py": f"{code}TOOLS = [save]\n"}
        (proof,) = proofs(make, ["never helper -> files.write(**) unless asked"], files=files)
        outcomes.append(proof.outcome)
    assert outcomes == ["unproved", "holds", "holds", "broken"]


def test_an_argument_is_only_what_its_schema_lists(make: Make) -> None:
    code = 'from typing import Literal\ndef move(to: Literal["inbox", "archive"]) -> str:\n    "Move."\n    return to\n'
    files = {"helper.agent": agent("helper", "tools: [move]"), "tools.py": f"{code}TOOLS = [move]\n"}
    texts = ["never move(to=trash)", "never move(to=arch*)", "never move unless asked"]

    found = proofs(make, texts, files=files, approvals={"allow": ["move(to=inbox)"]})

    assert [proof.outcome for proof in found] == ["holds", "broken", "broken"]


def test_scopes_that_a_memory_does_not_have_are_never_used_and_the_project_s_needs_approval(make: Make) -> None:
    own = {"helper.agent": agent("helper", "toolsets: [{memory: {scopes: [thread, user]}}]")}
    every = {"helper.agent": agent("helper", "toolsets: [memory]")}
    texts = ["never remember(project)", "never forget(project) unless asked", "never remember(user) unless asked"]

    assert [proof.outcome for proof in proofs(make, texts, files=own)] == ["holds", "holds", "broken"]
    assert [proof.outcome for proof in proofs(make, texts, files=every)] == ["broken", "holds", "broken"]
    (proof,) = proofs(make, ["never helper -> files.write(**)"], files=every)
    assert proof.outcome == "holds"


def test_a_policy_function_can_allow_and_deny(make: Make) -> None:
    files = {"rules.py": "def decide(call):\n    return None\n"}
    texts = ["never write_file", "never write_file unless asked", "never delete_file"]
    approvals = {"policy": "rules.py:decide", "deny": ["delete_file"]}
    found = proofs(make, texts, files=files, approvals=approvals)
    assert [proof.outcome for proof in found] == ["unproved", "unproved", "holds"]
    assert "rules.py:decide" in found[0].reason


def test_paths_are_the_projects_whatever_a_toolsets_folder_is(make: Make) -> None:
    files = {"writer.agent": agent("writer", "toolsets: [docs]")}
    toolsets = {"docs": {"type": "filesystem", "root": "src/docs"}}
    texts = [
        "never files.write(src/**)",
        "never files.write(src/*.py)",
        "never files.write(src/docs/a)",
        "never files.write(docs/**)",
    ]
    found = proofs(make, texts, files=files, toolsets=toolsets)
    assert [proof.outcome for proof in found] == ["broken", "holds", "broken", "holds"]
    files = {"writer.agent": agent("writer", "toolsets: [filesystem_cwd]")}
    (proof,) = proofs(make, texts[1:2], files=files, toolsets={})
    assert proof.outcome == "unproved"


def test_faults_of_assertions_have_their_places_and_hints(check_files: Check) -> None:
    texts = ["never wrter -> write_file", "write_file only after tsted", "never add(c=1)", 'never "sh\\"ell" =>']
    files: dict[str, object] = {
        "project.json": manifest(python_files=["tools.py"], permissions={"assert": texts[:3]}),
        **AGENTS,
        "main.agent": agent("main", "toolsets: [writer]\ntools: [add]\nstates: {add: {enables: [tested]}}"),
        "writer.agent": agent("writer", "toolsets: [filesystem_project]"),
    }
    report = check_files(files)
    assert [(item.code, item.hint) for item in report.diagnostics if item.severity == "error"] == [
        ("LD614", "did you mean `writer`?"),
        ("LD614", "did you mean `tested`?"),
        ("LD614", "its arguments are a, b"),
    ]
    files["project.json"] = manifest(python_files=["tools.py"], permissions={"assert": texts[3:]})
    (fault,) = [item for item in check_files(files).diagnostics if item.code == "LD610"]
    assert fault.place.end_column - fault.column == len("=>")


@pytest.mark.slow
def test_a_thousand_agents_take_little_time(make: Make) -> None:
    names = [f"a{number}" for number in range(1000)]
    specs = [
        AgentSpec(name, toolsets=["filesystem_project", *(names[number + 1 : number + 4])])
        for number, name in enumerate(names)
    ]
    rules = {"allow": ["write_file(out/**)", "a7:edit_file"], "deny": ["write_file(src/**)"]}
    many = project(*specs, approvals=rules)
    prover = Prover(CallGraph(many))
    began = time.process_time()
    texts = ["never files.write(src/**) unless asked", "never a0 -> shell", "never a0 -> a999"]
    found = [prover.prove(parse_assertion(text)) for text in texts]  # pyright: ignore[reportArgumentType]
    assert [proof.outcome for proof in found] == ["broken", "holds", "broken"]
    assert len(found[2].chain) == 333
    assert time.process_time() - began < 5


PATTERNS = st.sampled_from(
    [
        "write_file",
        "write_file(a/**)",
        "write_file(a/*)",
        "files.write(a/b)",
        "files.write(**)",
        "main:write_file",
        "edit_file",
    ]
)
RULES = st.fixed_dictionaries(
    {effect: st.lists(PATTERNS, max_size=2) for effect in ("deny", "ask", "allow")},
    optional={"default": st.sampled_from(["deny", "allow"])},
)
PATHS = ["a", "a/b", "a/b/c", "A/b", "c/a", "a/x.py", "b"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    RULES, st.sampled_from(["write_file", "write_file(a/**)", "files.write(a/b)", "files.write(a/*)"]), st.booleans()
)
def test_what_is_proved_no_call_refutes(approvals: dict[str, Any], target: str, unless_asked: bool) -> None:
    main = AgentSpec("main", toolsets=["writer", "filesystem_project_ro"])
    made: Project = project(main, AgentSpec("writer", toolsets=["filesystem_project"]), approvals=approvals)
    text = f"never {target}" + (" unless asked" if unless_asked else "")
    proof = Prover(CallGraph(made)).prove(parse_assertion(text))  # pyright: ignore[reportArgumentType]
    passed = ("allow",) if unless_asked else ("allow", "ask")
    tools = Inventory(made.registry).of(made.registry.agent("writer") or main).tools
    refuted = [
        (tool.name, path)
        for tool in tools
        for path in PATHS
        if "path" in (tool.facts.arguments or ())
        for call in [call_of(tool, "main/writer", {"path": path, "content": "x"}, agent="writer")]
        if matches(parse_pattern(target), call, restrictive=True)
        and decide_about(tool, call, made.policy, made.settings).effect in passed
    ]
    entered = decide_about(
        next(iter(Inventory(made.registry).of(main).tools)),
        call_of(next(iter(Inventory(made.registry).of(main).tools)), "main", agent="main"),
        made.policy,
        made.settings,
    )
    if entered.effect == "deny":
        return
    assert proof.outcome == ("broken" if refuted or proof.outcome == "broken" else "holds")
    if proof.outcome == "broken":
        name = proof.chain[-1].what.partition("(")[0]
        assert any(tool.name == name for tool in tools)


def test_assertions_are_proved_once_for_graph_and_explain(make: Make) -> None:
    keys = {"permissions": {"assert": ["never shell"]}}
    linked = check_project(make({"project.json": manifest(**keys), "main.agent": agent("main")}))
    assert linked.project is not None
    assert [(proof.text, proof.outcome, proof.idle) for proof in prove_assertions(linked.project)] == [
        ("never shell", "holds", True)
    ]
