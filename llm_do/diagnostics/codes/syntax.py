"""LD105, LD106 and LD110 to LD116: the syntax of JSON and YAML."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.diagnostics.diagnostic import Location

LD105 = Code(
    "LD105",
    "JSON syntax",
    "error",
    "The manifest is not JSON. Comments, trailing commas and single quotes are not part of JSON.",
    "correct the syntax",
    wrong='  "agent_files": ["*.agent"],',
    right='  "agent_files": ["*.agent"]',
)

_QUOTES = ("'", "\u201c", "\u2018")


def empty_json() -> Problem:
    """An empty manifest."""
    return LD105.problem("the file is empty", "a JSON object is expected")


def text_after_document(shown: str) -> Problem:
    """Text after the end of the document."""
    return LD105.problem(f"{shown} comes after the end of the document", "delete it")


def json_comment() -> Problem:
    """A comment."""
    return LD105.problem("JSON has no comments", "delete the comment")


def python_constant(word: str, json: str) -> Problem:
    """`True`, `False` or `None`."""
    return LD105.problem(f"`{word}` is Python, not JSON", f"write `{json}`")


def missing_value(shown: str, character: str, *, number: bool, word: bool) -> Problem:
    """Something that isn't a value; what it begins with, and whether it looks like a number or a word."""
    hint = None
    if character in _QUOTES:
        hint = 'use straight double quotes for text: "..."'
    elif number:
        hint = "write numbers like 12, -3 or 0.5: no leading zero or plus, a digit on both sides of the point"
    elif word:
        hint = 'text needs double quotes: "..."'
    return LD105.problem(f"a value is expected here, not {shown}", hint)


def unclosed_text() -> Problem:
    """A text that goes to the end of the file."""
    return LD105.problem("the text that starts here is never closed", 'close it with "')


def invalid_escape(shown: str) -> Problem:
    """A backslash and what follows it."""
    what = f"`{shown}`" if shown.isprintable() else "this"
    return LD105.problem(f"{what} is not a JSON escape", "write a backslash as \\\\")


def text_across_lines() -> Problem:
    """A line break in a text."""
    return LD105.problem("the text isn't closed on its line", 'close it with ", or write a line break as \\n')


def unescaped_character(shown: str, character: str) -> Problem:
    """A control character in a text."""
    return LD105.problem(f"{shown} isn't allowed in text", f"write it as \\u{ord(character):04x}")


def missing_json_key(shown: str, *, end: bool) -> Problem:
    """Something that isn't a key, or the end of the file."""
    hint = "the object is never closed" if end else 'keys need double quotes: "..."'
    return LD105.problem(f"a key is expected here, not {shown}", hint)


def missing_colon(shown: str) -> Problem:
    """Something after a key that isn't a colon."""
    return LD105.problem(f"`:` is expected after the key, not {shown}", "write a colon and a value")


def missing_comma(close: str, shown: str, line: int) -> Problem:
    """Something after a member; `close` would end the list or object, which starts at `line`."""
    kind = "list" if close == "]" else "object"
    return LD105.problem(f"`,` or `{close}` is expected here, not {shown}", f"the {kind} starts at line {line}")


def trailing_comma(close: str) -> Problem:
    """A comma before the end of a list or object."""
    return LD105.problem(f"there is a comma before `{close}`", "delete the comma")


LD106 = Code(
    "LD106",
    "YAML syntax",
    "error",
    "The frontmatter is not YAML. Most often a value with a colon in it needs quotes.",
    "correct the syntax",
    wrong="description: Note: reads files",
    right='description: "Note: reads files"',
)


def invalid_yaml(reason: str, hint: str | None) -> Problem:
    """What PyYAML's parser found."""
    return LD106.problem(f"not YAML: {reason}", hint)


def unquoted_value(reason: str, key: str, quoted: str) -> Problem:
    """The same, where quoting a value repairs it."""
    return invalid_yaml(reason, f"quote the value: {key}: {quoted}")


def tab_indentation(reason: str) -> Problem:
    """The same, at a tab."""
    return invalid_yaml(reason, "indent with spaces, not with tabs")


def wrong_indentation(reason: str, *, more: bool) -> Problem:
    """The same, at a line that is indented more, or less, than the one above it."""
    than = "more than the key" if more else "less than the one"
    return invalid_yaml(reason, f"the line is indented {than} above it: begin it in the same column")


def unquoted_colon(reason: str) -> Problem:
    """The same, at a colon in a value."""
    return invalid_yaml(reason, "a value that holds `: ` has to be quoted")


def unreadable_yaml(reason: str) -> Problem:
    """What PyYAML's scanner raised."""
    return LD106.problem(f"the YAML can't be read: {reason}")


def second_document() -> Problem:
    """A second document in the frontmatter."""
    return LD106.problem("a second YAML document starts here", "keep one document")


LD110 = Code(
    "LD110",
    "Duplicate key",
    "error",
    "The same key stands twice in one mapping, so one of the values would be lost.",
    "keep one of the two",
    wrong="model: test\nmodel: openai:gpt-5-mini",
    right="model: test",
)


def duplicate_key(key: str, first: Location) -> Problem:
    """A key, and where it stood first."""
    return LD110.problem(f"the key `{key}` is already at line {first.line}, column {first.column}")


LD111 = Code(
    "LD111",
    "YAML tag",
    "error",
    "Tags (!!str, !python/object) are not part of the format.",
    "leave it out",
    wrong="name: !!str main",
    right="name: main",
)


def yaml_tag(tag: str) -> Problem:
    """A tag."""
    return LD111.problem(f"the YAML tag `{tag}` is not part of the format")


LD112 = Code(
    "LD112",
    "YAML merge key",
    "error",
    "A merge (<<) hides where keys come from, and is not part of the format.",
    "write out the keys that it would bring",
    wrong="  <<: {temperature: 0}",
    right="  temperature: 0",
)


def merge_key() -> Problem:
    """A merge."""
    return LD112.problem("the merge key `<<` is not part of the format")


LD113 = Code(
    "LD113",
    "YAML alias",
    "error",
    "An alias refers to nothing or to what it is part of, or aliases multiply to too many values.",
    "write the value out",
    wrong="tools: *shared",
    right="tools: []",
)


def unknown_anchor(name: str) -> Problem:
    """An alias of nothing."""
    return LD113.problem(f"nothing before it has the anchor `&{name}`")


def circular_alias(name: str) -> Problem:
    """An alias inside what it refers to."""
    return LD113.problem(f"the alias `*{name}` is inside what it refers to")


def many_aliases(limit: int) -> Problem:
    """A document with too many aliases."""
    return LD113.problem(f"there are more than {limit} aliases")


def multiplied_aliases(limit: int) -> Problem:
    """Aliases of aliases, as in the billion laughs."""
    return LD113.problem(f"aliases multiply to more than {limit:,} values")


def deep_aliases(limit: int) -> Problem:
    """Aliases that nest too deeply."""
    return LD113.problem(f"aliases nest deeper than {limit}")


LD114 = Code(
    "LD114",
    "Key is not text",
    "error",
    "Keys are text; YAML reads this one as something else, or as a list or mapping.",
    "write the key as text",
    wrong="  extra_body: {1: a}",
    right='  extra_body: {"1": a}',
)


def key_not_scalar() -> Problem:
    """A list, a mapping or an alias as a key."""
    return LD114.problem("a key must be text")


def key_not_text(key: str, meaning: str, text: str) -> Problem:
    """A key that is shown as `key`, and what YAML reads it as."""
    return LD114.problem(f"YAML reads the key `{key}` as {meaning}", f'quote it: "{text}"')


LD115 = Code(
    "LD115",
    "Ambiguous unquoted value",
    "error",
    "YAML reads this unquoted value as something other than text, or its versions disagree about it.",
    "quote it",
    wrong="name: no",
    right='name: "no"',
)


def unquoted_text(subject: str, text: str, meaning: str) -> Problem:
    """A value that must be text, and what YAML reads it as."""
    return LD115.problem(f"{subject} must be text, and YAML reads `{text}` as {meaning}", f'quote it: "{text}"')


def ambiguous_value(path: str, text: str, meaning: str) -> Problem:
    """A value of any type that YAML's versions disagree about."""
    hint = f'quote it: "{text}"' + (f", or write `{meaning}`" if meaning in ("true", "false", "null") else "")
    return LD115.problem(f"`{path}`: YAML's versions disagree about `{text}`: some read it as {meaning}", hint)


LD116 = Code(
    "LD116",
    "Invalid JSON number",
    "error",
    "NaN, Infinity and numbers that are too large are not data that can be sent to a model.",
    "write a finite number",
    wrong='"model_settings": {"temperature": NaN}',
    right='"model_settings": {"temperature": 0.5}',
)


def not_a_json_number(word: str) -> Problem:
    """`NaN` or `Infinity`."""
    return LD116.problem(f"`{word}` is not a JSON number")


def huge_number() -> Problem:
    """A number that no float or integer of ours holds."""
    return LD116.problem("the number is too large", "write a smaller number")
