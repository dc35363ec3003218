"""What an agent's frontmatter may contain, and how faults in it are reported."""

from __future__ import annotations

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.agent_file import parse_agent, readable_name
from tests.support.tables import each_row

_TWICE = "{{type: object, properties: {{a: {{$ref: '#/$defs/{0}'}}, b: {{$ref: '#/$defs/{0}'}}}}}}"
CHAIN = "$defs: {" + ", ".join([*(f"'{n}': {_TWICE.format(n + 1)}" for n in range(40)), "'40': {type: string}"]) + "}"
"""Definitions that lead to each other in 2**40 ways, and not in a circle."""

FULL = """---
name: analyst
description: Reads the pitch.
model: [openai:gpt-5, test]
model_settings: {temperature: 0.2, max_tokens: 800, seed: 1, thinking: high, openai_reasoning_summary: auto}
input_model_ref: schemas.py:Pitch
output:
  type: object
  properties: {score: {type: integer}, more: {$ref: "#/$defs/more"}}
  $defs: {more: {type: string}}
tools: [search, "web::fetch"]
toolsets:
  - filesystem_project_ro
  - writer: {prefix: w, include: [write_*], exclude: [x], depth: 3}
server_side_tools:
  - {tool_type: web_search, max_uses: 3, allowed_domains: [example.org]}
  - {tool_type: code_execution}
template: true
max_steps: 5
retries: 0
tool_timeout: 1.5
loop_threshold: 0
---

Read {{input}}.
"""


def faults(frontmatter: str) -> list[tuple[str, int, int]]:
    """Code, line and column, the first line of the frontmatter being line 2."""
    parsed = parse_agent(f"---\n{frontmatter}\n---\n", "a.agent")
    return [(item.code, item.line, item.column) for item in parsed.diagnostics]


def only(frontmatter: str) -> Diagnostic:
    (item,) = parse_agent(f"---\n{frontmatter}\n---\n", "a.agent").diagnostics
    return item


def test_every_supported_key_is_read() -> None:
    parsed = parse_agent(FULL, "a.agent")
    assert parsed.diagnostics == ()
    assert parsed.ok
    value = parsed.value
    assert value is not None
    assert value.model == ["openai:gpt-5", "test"]
    assert value.model_settings == {
        "temperature": 0.2,
        "max_tokens": 800,
        "seed": 1,
        "thinking": "high",
        "openai_reasoning_summary": "auto",
    }
    assert value.output is not None
    assert value.tools == ["search", "web::fetch"]
    assert [item.tool_type for item in value.server_side_tools] == ["web_search", "code_execution"]
    assert (value.template, value.max_steps, value.retries, value.tool_timeout, value.loop_threshold) == (
        True,
        5,
        0,
        1.5,
        0,
    )
    assert parsed.body == "Read {{input}}."


def test_toolsets_have_their_options_and_locations() -> None:
    parsed = parse_agent(FULL, "a.agent")
    assert parsed.value is not None
    assert parsed.node is not None
    (first, second) = parsed.value.toolset_uses()
    assert (first[0], first[1].options) == ("filesystem_project_ro", {})
    assert (second[0], second[1].prefix, second[1].include, second[1].exclude) == ("writer", "w", ["write_*"], ["x"])
    assert second[1].options == {"depth": 3}
    assert parsed.node.key_place(first[2]).line == 13
    assert (parsed.node.key_place(second[2]).line, parsed.node.key_place(second[2]).column) == (14, 5)


def test_toolsets_may_be_a_mapping() -> None:
    parsed = parse_agent("---\nname: a\ntoolsets:\n  files: {}\n  object: {prefix: x}\n---\n", "a.agent")
    assert parsed.ok
    assert parsed.value is not None
    assert [(name, use.prefix, loc) for name, use, loc in parsed.value.toolset_uses()] == [
        ("files", None, ("toolsets", "files")),
        ("object", "x", ("toolsets", "object")),
    ]


@each_row(
    "frontmatter, expected",
    [
        ("", [("LD121", 2, 1)]),
        ("- a", [("LD122", 2, 1)]),
        ("description: x", [("LD121", 2, 1)]),
        ("nmae: a", [("LD120", 2, 1)]),
        ("name: a\nmodle: x", [("LD120", 3, 1)]),
        ("name: fact checker", [("LD125", 2, 7)]),
        ("name: 1a", [("LD125", 2, 7)]),
        ("name: " + "a" * 65, [("LD125", 2, 7)]),
        ('name: "a\\n"', [("LD125", 2, 7)]),
        ("name: é", [("LD125", 2, 7)]),
        ("name: no", [("LD115", 2, 7)]),
        ("name: 1.10", [("LD115", 2, 7)]),
        ("name: 1e3", [("LD115", 2, 7)]),
        ("name: 2024-01-02", [("LD115", 2, 7)]),
        ("name: 012", [("LD115", 2, 7)]),
        ("name: 12:30", [("LD115", 2, 7)]),
        ("name: true", [("LD115", 2, 7)]),
        ("name:", [("LD122", 2, 6)]),
        ("name: ~", [("LD122", 2, 7)]),
        ("name: [a]", [("LD122", 2, 7)]),
        ("name: a\ndescription: yes", [("LD115", 3, 14)]),
        ("name: a\ntools: [no, ok, 1.10]", [("LD115", 3, 9), ("LD115", 3, 17)]),
        ("name: a\ntools: search", [("LD122", 3, 8)]),
        ("name: a\ntools: {a: b}", [("LD122", 3, 8)]),
        ("name: a\ntools: ['']", [("LD124", 3, 9)]),
        ("name: a\ntemplate: yes", [("LD122", 3, 11)]),
        ("name: a\ntemplate: True", [("LD122", 3, 11)]),
        ("name: a\ntemplate: 'true'", [("LD122", 3, 11)]),
        ("name: a\ntemplate: 1", [("LD122", 3, 11)]),
        ("name: a\nmax_steps: 0", [("LD124", 3, 12)]),
        ("name: a\nmax_steps: true", [("LD122", 3, 12)]),
        ("name: a\nmax_steps: 5.0", [("LD122", 3, 12)]),
        ("name: a\nmax_steps: '5'", [("LD122", 3, 12)]),
        ("name: a\nmax_steps: 0x5", [("LD122", 3, 12)]),
        ("name: a\nmax_steps:", [("LD122", 3, 11)]),
        ("name: a\ntool_timeout: 0", [("LD124", 3, 15)]),
        ("name: a\ntool_timeout: .inf", [("LD122", 3, 15)]),
        ("name: a\nretries: -1", [("LD124", 3, 10)]),
        ("name: a\nmodel: 5", [("LD115", 3, 8)]),
        ("name: a\nmodel: []", [("LD124", 3, 8)]),
        ("name: a\nmodel: [x, {}]", [("LD122", 3, 12)]),
        ("name: a\nmodel: x\ncompatible_models: [y]", [("LD128", 4, 1)]),
        ("compatible_models: [y]\nname: a\nmodel: x", [("LD128", 4, 1)]),
        ("name: a\ncompatible_models: []", [("LD124", 3, 20)]),
        ("name: a\ninput_model_ref: Pitch", [("LD126", 3, 18)]),
        ("name: a\ninput_model_ref: schemas.py", [("LD126", 3, 18)]),
        ("name: a\ninput_model_ref: a b:C", [("LD126", 3, 18)]),
        ("name: a\noutput: {type: object}\noutput_model_ref: s.py:X", [("LD128", 4, 1)]),
        ("name: a\noutput: {type: objekt}", [("LD130", 3, 16)]),
        ("name: a\noutput: {properties: {a: {minimum: x}}}", [("LD130", 3, 36)]),
        ("name: a\noutput: {$ref: 'https://example.org/s'}", [("LD130", 3, 16)]),
        ("name: a\noutput: {items: {$ref: '#/$defs/x'}}", [("LD130", 3, 24)]),
        ("name: a\noutput: {pattern: '('}", [("LD130", 3, 19)]),
        ("name: a\noutput: {}", [("LD130", 3, 9)]),
        ("name: a\noutput: {type: object, $ref: '#'}", [("LD130", 3, 30)]),
        (f"name: a\noutput: {{$ref: '#/$defs/0', {CHAIN}}}", []),
        ("name: a\noutput: text", [("LD122", 3, 9)]),
        ("name: a\noutput: {enum: [yes, no]}", [("LD115", 3, 17), ("LD115", 3, 22)]),
        ("name: a\nmodel_settings: {temprature: 1}", [("LD120", 3, 18)]),
        ("name: a\nmodel_settings: {temperature: -1}", [("LD124", 3, 31)]),
        ("name: a\nmodel_settings: {thinking: on}", [("LD123", 3, 28)]),
        ("name: a\nmodel_settings: {mine: {x: off}}", [("LD115", 3, 28)]),
        ("name: a\ntoolsets: files", [("LD122", 3, 11)]),
        ("name: a\ntoolsets: [{}]", [("LD124", 3, 12)]),
        ("name: a\ntoolsets: [{a: {}, b: {}}]", [("LD124", 3, 12)]),
        ("name: a\ntoolsets: [{a: }]", [("LD122", 3, 16)]),
        ("name: a\ntoolsets: [{a: {inclde: [x]}}]", [("LD120", 3, 17)]),
        ("name: a\ntoolsets: {a: {prefix: 'x y'}}", [("LD125", 3, 24)]),
        ("name: a\ntoolsets: {a: {depth: 010}}", [("LD115", 3, 23)]),
        ("name: a\nserver_side_tools: [{tool_type: web_serch}]", [("LD123", 3, 33)]),
        ("name: a\nserver_side_tools: [{max_uses: 1}]", [("LD121", 3, 21)]),
        ("name: a\nserver_side_tools: [web_search]", [("LD122", 3, 21)]),
        ("name: a\nserver_side_tools: [{tool_type: web_fetch, user_location: {}}]", [("LD120", 3, 44)]),
        ("name: a\nhandoffs: [b c]", [("LD125", 3, 12)]),
        ("name: a\nstates: {x: {requires: [a]}}", []),
        ("name: a\nstates: {x: {reqires: [a]}}", [("LD120", 3, 14)]),
        ("name: a\ncompaction: {max_tokens: 5, fraction: 0.5}", [("LD128", 3, 29)]),
        ("name: a\ncompaction: {strategies: [sliding]}", [("LD123", 3, 27)]),
        ("name: a\ncontext_providers: [x]", [("LD126", 3, 21)]),
        ("name: a\nhooks: {start: ['h.py']}", [("LD126", 3, 17)]),
        ("name: a\nhooks: {begin: ['h.py:f']}", [("LD120", 3, 9)]),
        ("name: a\nname: b", [("LD110", 3, 1)]),
        ("name: a\non: 1", [("LD114", 3, 1)]),
        ("name: a\n<<: {model: x}", [("LD112", 3, 1)]),
        ("name: !!str a", [("LD111", 2, 7)]),
        ("name: a\ntools: [1e999]", [("LD116", 3, 9)]),
        ("name: a\ndescription: Note: x", [("LD106", 3, 18)]),
    ],
)
def test_each_fault_has_its_code_and_location(frontmatter: str, expected: list[tuple[str, int, int]]) -> None:
    assert faults(frontmatter) == expected


@each_row(
    "frontmatter, hint",
    [
        ("name: no", 'quote it: "no"'),
        ("name: 1.10", 'quote it: "1.10"'),
        ("name: a\ntemplate: yes", "write `true`"),
        ("name: a\ntemplate: 'true'", "write `true` without quotes"),
        ("name: a\nmax_steps: '5'", "write it without quotes"),
        ("name: a\nmax_steps: 5.0", "write 5"),
        ("name: a\nmax_steps: 0x5", "write it as a decimal number"),
        ("name: a\ntools: search", "write [search]"),
        ("name: a\ntools: 'sea rch'", 'write ["sea rch"]'),
        ("name: a\nmodle: x", "did you mean `model`?"),
        ("name: a\nmodel_settings: {temprature: 1}", "did you mean `temperature`?"),
        ("name: a\nserver_side_tools: [{tool_type: web_serch}]", "did you mean `web_search`?"),
        ("name: a\nmodel_settings: {x: off}", 'quote it: "off", or write `false`'),
        ("name: a\non: 1", 'quote it: "on"'),
    ],
)
def test_the_hint_shows_what_to_write_instead(frontmatter: str, hint: str) -> None:
    assert only(frontmatter).hint == hint


def test_a_name_with_spaces_gets_a_suggestion() -> None:
    assert "`fact_checker`" in str(only("name: fact checker").hint)


def test_an_unknown_key_gets_the_keys_of_its_own_mapping() -> None:
    item = only("name: a\nserver_side_tools: [{tool_type: web_fetch, zzz: 1}]")
    assert item.hint == "the keys here are tool_type, max_uses, allowed_domains, blocked_domains"


def test_all_faults_are_reported_at_once_in_order() -> None:
    text = "modle: x\nname: no\ntools: a\nmax_steps: 0\nmodel: x\ncompatible_models: [y]\nname: b"
    assert faults(text) == [
        ("LD120", 2, 1),
        ("LD115", 3, 7),
        ("LD122", 4, 8),
        ("LD124", 5, 12),
        ("LD128", 7, 1),
        ("LD110", 8, 1),
    ]


def test_invalid_parts_are_left_out_and_the_rest_is_kept() -> None:
    text = "---\nname: a\nmodle: x\ntools: [ok, no, fine]\nmax_steps: 0\ndescription: Hello\n---\nBody"
    parsed = parse_agent(text, "a.agent")
    assert not parsed.ok
    assert parsed.value is not None
    assert (parsed.value.tools, parsed.value.max_steps, parsed.value.description) == (["ok", "fine"], None, "Hello")
    assert parsed.body == "Body"


@each_row(
    "frontmatter, tools, toolsets",
    [
        ("tools: [no, a, 1, '', b, yes, c]", ["a", "b", "c"], []),
        (
            "toolsets: [no, a, {b: {prefix: 5}}, {c: 1}, d, {e: {}, f: {}}, {g: {include: [1, x]}}]",
            [],
            ["a", "b", "d", "g"],
        ),
        ("toolsets: {a: {}, '': 5, b: {include: [1]}}", [], ["a", "b"]),
        ("tools: [1, a]\ntoolsets: [1, a, 2]\nhandoffs: [1]", ["a"], ["a"]),
    ],
)
def test_valid_items_of_a_list_survive_invalid_ones(frontmatter: str, tools: list[str], toolsets: list[str]) -> None:
    value = parse_agent(f"---\nname: a\n{frontmatter}\n---\n", "a.agent").value
    assert value is not None
    assert (value.tools, [name for name, _, _ in value.toolset_uses()]) == (tools, toolsets)


def test_an_agent_without_a_usable_name_has_no_value() -> None:
    assert parse_agent("---\nname: a b\ntools: [x]\n---\n", "a.agent").value is None


@each_row(
    "text, name",
    [
        ("---\nname: writer\nmax_steps: 0\n---\n", "writer"),
        ("---\nname: no\n---\n", "no"),
        ("---\nname: 'a b'\n---\n", "a b"),
        ("---\nname: [a]\n---\n", None),
        ("---\nname: writer\ndescription: a: b\n---\n", "writer"),
        ("---\r\ndescription: a: b\r\nname: 'writer' # me\r\n---\r\n", "writer"),
        ("---\nmame: writer: x\n---\n", None),
    ],
)
def test_the_name_is_read_even_if_the_rest_fails(text: str, name: str | None) -> None:
    assert readable_name(parse_agent(text, "a.agent").node, text) == name
