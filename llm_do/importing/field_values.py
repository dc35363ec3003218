"""The values of a frontmatter's fields: texts and lists, however they were written."""

from __future__ import annotations

import re
import textwrap

import yaml

from llm_do.importing.frontmatter import Field

__all__ = ["list_value", "switches", "text_value"]

_BLOCK = re.compile(r"[|>][-+0-9]*(?:[ \t]+#.*)?")
_COMMENT = re.compile(r"(?:\A|[ \t]+)#.*", re.DOTALL)
_BULLET = re.compile(r"[ \t]*[-*•][ \t]+")
_SWITCH = re.compile(r"""["']?([\w*-]+)["']?[ \t]*:[ \t]*(true|false|yes|no|on|off|allow|deny|ask)""", re.IGNORECASE)
_NOTHING = ("", "~", "null", "none", "[]", "{}")


def text_value(field: Field, *, prose: bool = False) -> str:
    r"""Return a field's text.

    Args:
        field: The field.
        prose: Whether it is text for people, in which ` #` begins no comment and `\n` stands for a line break.

    Example:
        >>> text_value(Field("description", 1, "Use when: asked #1"), prose=True)
        'Use when: asked #1'
        >>> text_value(Field("description", 1, '"Use "this" agent"'), prose=True)
        'Use "this" agent'
        >>> text_value(Field("model", 1, "sonnet # fast"))
        'sonnet'
    """
    if _BLOCK.fullmatch(field.inline):
        return _block(field)
    text = "\n".join((field.inline, *field.lines)).strip()
    if text[:1] in ('"', "'"):
        return _quoted(text)
    if not prose:
        text = _COMMENT.sub("", field.inline).strip()
        return "" if text.lower() in ("~", "null") else text
    return _line_breaks(_folded(text) if all(line[:1] in ("", " ", "\t") for line in field.lines) else text)


def _block(field: Field) -> str:
    text = textwrap.dedent("\n".join(line.expandtabs(2) for line in field.lines)).strip()
    return text if field.inline[0] == "|" else _folded(text)


def _folded(text: str) -> str:
    """Lines joined as YAML joins them: a blank line is a line break, other line ends are blanks."""
    paragraphs = re.split(r"\n(?:[ \t]*\n)+", text)
    return "\n".join(re.sub(r"[ \t]*\n[ \t]*", " ", part).strip() for part in paragraphs)


def _quoted(text: str) -> str:
    """A text that begins with a quotation mark, which may be the first word's own."""
    mark = text[0]
    try:
        value: object = yaml.safe_load(text)
    except yaml.YAMLError:
        value = None
    if isinstance(value, str):
        return value.strip()
    if re.match(rf"{mark}[^{mark}]*[^{mark}\s]{mark}[\s.,;:]", text):
        return _line_breaks(_folded(text))  # "One" and "two" are two quotations
    inner = text[1:].rstrip()
    inner = inner.removesuffix(mark)
    inner = inner.replace('\\"', '"') if mark == '"' else inner.replace("''", "'")
    return _line_breaks(_folded(inner)).strip()


def _line_breaks(text: str) -> str:
    r"""Make line breaks of `\n`, which programs write into descriptions; a single one may be part of a path."""
    if text.count("\\n") < 2 or re.search(r"\b[A-Za-z]:\\", text):
        return text
    return text.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')


def list_value(field: Field) -> list[str]:
    """Return a field's list, which may be text with commas or blanks, a list in brackets, or lines with dashes.

    Example:
        >>> list_value(Field("tools", 1, "Read, Bash(git diff:*, git log:*)"))
        ['Read', 'Bash(git diff:*, git log:*)']
        >>> list_value(Field("tools", 1, "", ("  - Read # first", "  - 'Grep'")))
        ['Read', 'Grep']
        >>> list_value(Field("tools", 1, '["Read", Grep'))
        ['Read', 'Grep']
        >>> list_value(Field("tools", 1, "Read Grep"))
        ['Read', 'Grep']
    """
    lines = [field.inline, *field.lines] if not _BLOCK.fullmatch(field.inline) else list(field.lines)
    lines = [_COMMENT.sub("", line) for line in lines]
    lines = [_BULLET.sub("", line) if number else line for number, line in enumerate(lines)]
    text = "\n".join(line.strip() for line in lines if line.strip())
    if text.lower() in _NOTHING:
        return []
    text = re.sub(r"\A[\"'\[{]+|[\"'\]}]+\Z", "", text.replace('"', "").replace("`", "")).strip()
    items = _split(text, ",;|\n")
    if len(items) == 1:
        items = _split(text, " \t")
    return [item for each in items if (item := re.sub(r"\A(?:and|&) ", "", each).strip(" \t'.").strip())]


def _split(text: str, marks: str) -> list[str]:
    """Split at marks that are not in parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth = max(depth + (char == "(") - (char == ")"), 0)
        if char in marks and not depth:
            parts.append("")
        else:
            parts[-1] += char
    joined = [part.strip() for part in parts if part.strip()]
    if marks == " \t" and any(part.startswith("(") for part in joined):
        return [text]
    return joined


def switches(field: Field) -> dict[str, bool] | None:
    """Return the tools that a field turns on and off, None if it isn't written in this way.

    Example:
        >>> switches(Field("tools", 1, "", ("  write: false", "  read: true")))
        {'write': False, 'read': True}
        >>> switches(Field("tools", 1, "Read, Write")) is None
        True
    """
    text = "\n".join((field.inline, *field.lines)).strip().strip("{}")
    parts = [part.strip() for part in re.split(r"[,\n]", text) if part.strip() and not part.strip().startswith("#")]
    found = [_SWITCH.fullmatch(_COMMENT.sub("", part).strip()) for part in parts]
    named = [each for each in found if each is not None]
    if not named or len(named) < len(found):
        return None
    return {each[1]: each[2].lower() in ("true", "yes", "on", "allow", "ask") for each in named}
