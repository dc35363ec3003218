"""`SKILL.md` files, in the Agent Skills format (https://agentskills.io/specification): parsing one.

Every value is text: what YAML takes for a number or a date counts as it is written. The linker reads the folder around
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from urllib.parse import unquote

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import files as problems
from llm_do.diagnostics.codes.shape import wrong_type
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.frontmatter import split_frontmatter
from llm_do.formats.syntax.hidden_characters import find_hidden_characters
from llm_do.formats.syntax.source import AmbiguousScalar, Node, Source
from llm_do.formats.syntax.yaml_nodes import parse_yaml
from llm_do.formats.validation.validator import Parsed, parse_result
from llm_do.text.words import closest_match

__all__ = ["SkillFile", "links_of", "parse_skill"]

_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST = {"name": 64, "description": 1024, "compatibility": 500}
_MOST_LINES = 500
_MOST_TOKENS = 5000
_CHARACTERS_PER_TOKEN = 4

_CODE = re.compile(r"^(?P<fence> {0,3}(?:`{3,}|~{3,})).*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)|(`+)[^`].*?\2", re.M | re.S)
_LINK = re.compile(r"\]\(\s*(?:<(?P<angle>[^<>\n]*)>|(?P<plain>[^\s()]+))|^ {0,3}\[[^\]\n]+\]:\s*(?P<named>\S+)", re.M)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/#?]")


@frozen
class SkillFile:
    """What a `SKILL.md` declares.

    Args:
        name: The skill's name.
        description: What it does and when to use it, in one line.
        license: The license it names.
        compatibility: What it says it needs.
        metadata: Anything else that it says about itself.
        allowed_tools: The tools that it asks for.
    """

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed_tools: tuple[str, ...] = ()


def parse_skill(text: str, file: str) -> Parsed[SkillFile]:
    """Read a `SKILL.md`.

    Args:
        text: Its text.
        file: How diagnostics name it.

    Returns:
        What it declares, its nodes, every problem found in it, and its instructions.

    Example:
        >>> found = parse_skill("---\\nname: tea\\ndescription: Makes tea.\\n---\\nBoil water.\\n", "tea/SKILL.md")
        >>> found.value.description, found.body
        ('Makes tea.', 'Boil water.')
    """
    source = Source(file, text.removeprefix("\ufeff"))
    parts = split_frontmatter(source)
    if isinstance(parts, Diagnostic):
        return Parsed(None, None, (parts,))
    result = parse_yaml(source, parts.start, parts.end)
    found = list(result.diagnostics)
    node = result.node
    value = None
    if node is not None and node.kind != "mapping":
        found.append(wrong_type("the frontmatter", "a mapping", node.text[:40]).at(node.place))
    elif node is not None:
        value = _read(node, found)
        found += _unknown_keys(node)
    if node is not None:
        found += find_hidden_characters(source)
        found += _size(parts.body, source, parts.body_start)
    return parse_result(value, node, found, parts.body, parts.body_start)


def _read(node: Node, found: list[Diagnostic]) -> SkillFile | None:
    texts = {key: _text(node, key, found) for key in ("name", "description", "license", "compatibility")}
    name, description = texts["name"], texts["description"]
    missing = [key for key in ("name", "description") if key not in node.entries]
    found += [problems.missing_skill_key(key).at(node.source.place(0, 3)) for key in missing]
    if name is not None and _NAME.fullmatch(name) is None:
        found.append(_malformed_name(name).at(node.place_of(("name",))))
        name = None
    if name is None or description is None:
        return None
    metadata = _metadata(node, found)
    return SkillFile(name, description, texts["license"], texts["compatibility"], metadata, _tools(node, found))


def _text(node: Node, key: str, found: list[Diagnostic]) -> str | None:
    """The text of a key in one line; None if there is none, or a fault in it."""
    inner = node.entries.get(key)
    if inner is None:
        return None
    text = _scalar(inner)
    if text is None:
        found.append(problems.malformed_skill_key(key, "must be text").at(inner.place))
        return None
    text = " ".join(text.split())
    most = _MOST.get(key)
    if not text:
        found.append(problems.malformed_skill_key(key, "is empty").at(node.key_place((key,))))
    elif most is not None and len(text) > most:
        fault = f"has {len(text):,} characters, more than {most:,}"
        found.append(problems.malformed_skill_key(key, fault, "shorten it").at(inner.place))
    else:
        return text
    return None


def _scalar(node: Node) -> str | None:
    """A scalar as text; None for a list or a mapping, empty text without a value."""
    if node.kind != "scalar":
        return None
    if isinstance(node.scalar, AmbiguousScalar):
        return node.scalar.text
    if node.scalar is None:
        return ""
    return node.scalar if isinstance(node.scalar, str) else node.text


def _malformed_name(name: str) -> problems.Problem:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    hint = f"call it `{plain}`, and its folder too" if plain else "use lower-case letters, digits and single hyphens"
    return problems.malformed_skill_key(
        "name", f"can't be `{name}`: a skill's name is lower-case letters and digits, with single hyphens", hint
    )


def _metadata(node: Node, found: list[Diagnostic]) -> dict[str, str]:
    holder = node.entries.get("metadata")
    if holder is None:
        return {}
    if holder.kind != "mapping":
        if _scalar(holder) != "":
            found.append(problems.malformed_skill_key("metadata", "must be a mapping").at(holder.place))
        return {}
    texts = {key: _scalar(inner) for key, inner in holder.entries.items()}
    for key, text in texts.items():
        if text is None:
            found.append(problems.ignored_metadata(key).at(holder.key_place((key,))))
    return {key: text for key, text in texts.items() if text is not None}


def _tools(node: Node, found: list[Diagnostic]) -> tuple[str, ...]:
    """The tools of `allowed-tools`: a text with blanks between them, or a list."""
    inner = node.entries.get("allowed-tools")
    if inner is None:
        return ()
    texts = [_scalar(item) for item in inner.items] if inner.kind == "sequence" else [_scalar(inner)]
    if inner.kind == "mapping" or None in texts:
        fault = "must be text, or a list of texts"
        found.append(problems.malformed_skill_key("allowed-tools", fault).at(inner.place))
        return ()
    named = [text for text in texts if text]
    return tuple(named if inner.kind == "sequence" else _words(named[0]) if named else ())


def _words(text: str) -> list[str]:
    """Words with blanks or commas between them, but for those in parentheses, as in `Bash(git add *) Read`."""
    return re.findall(r"(?:\([^)]*\)|[^\s,(])+", text)


def _unknown_keys(node: Node) -> Iterator[Diagnostic]:
    for key in node.entries:
        if key not in _KEYS:
            guess = closest_match(key, [each for each in _KEYS if each not in node.entries], spelling_only=True)
            yield problems.ignored_skill_key(key, guess).at(node.key_place((key,)))


def _size(body: str, source: Source, start: int) -> Iterator[Diagnostic]:
    lines, tokens = body.count("\n") + 1, len(body) // _CHARACTERS_PER_TOKEN
    place = source.place(max(start, 0))
    if lines > _MOST_LINES:
        yield problems.long_skill(f"{lines:,} lines", f"{_MOST_LINES:,}").at(place)
    elif tokens > _MOST_TOKENS:
        yield problems.long_skill(f"about {tokens:,} tokens", f"{_MOST_TOKENS:,}").at(place)


def links_of(parsed: Parsed[SkillFile]) -> Iterator[tuple[str, Location]]:
    """Yield the relative links in a skill's instructions, outside of code, without their fragments.

    Example:
        >>> head = "---\\nname: tea\\ndescription: Makes tea.\\n---\\n"
        >>> body = "See [a](more/a%20b.md#top), [b](https://example.org), `[c](d)`."
        >>> [target for target, _ in links_of(parse_skill(head + body, "SKILL.md"))]
        ['more/a b.md']
    """
    if parsed.node is None or parsed.body_start < 0:
        return
    source = parsed.node.source
    body = _CODE.sub(lambda code: " " * len(code.group()), source.text[parsed.body_start :].replace("\r", " "))
    for link in _LINK.finditer(body):
        kind = str(link.lastgroup)
        written = link.group(kind)
        target = unquote(re.split(r"[#?]", written, maxsplit=1)[0])
        if target and _ELSEWHERE.match(written) is None:
            start = parsed.body_start + link.start(kind)
            yield target, source.place(start, start + len(written))
