"""A skill of Claude Code as a skill of llm-do: the same format, with what it requires, and what of it has no effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from llm_do._startup.frozen import frozen
from llm_do.formats.skill_file import SkillFile, parse_skill
from llm_do.importing.field_values import list_value, text_value
from llm_do.importing.frontmatter import Field, MarkdownFile, UnreadableFileError, read_markdown
from llm_do.importing.translation import FOR_PEOPLE, Note, description_of

__all__ = ["SkillDraft", "skill_name", "translate_skill", "with_name"]

_NAME_LENGTH = 64
_KEPT = frozenset(("name", "description", "license", "compatibility", "metadata", "allowedtools"))
_SILENT = frozenset(("whentouse", "userinvocable", "disablemodelinvocation"))
_LEFT_OUT = {
    "hooks": "`hooks` are left out, because they run commands",
    "shell": "`shell` is left out: nothing in a skill is run",
    "paths": "`paths` is left out: the description says when to use it",
    "argumenthint": "`argument-hint` is left out: models load skills, without arguments",
    "arguments": "`arguments` is left out: models load skills, without arguments",
    **{
        key: f"`{key}` is left out: the agent that loads the skill follows it itself, with its own model"
        for key in ("context", "agent", "model", "effort")
    },
}
_KEYS = frozenset((*_KEPT, *_SILENT, *_LEFT_OUT))
_IN_BODY = {
    re.compile(r"(?<![\w`])!`[^`\n]+`|^```!", re.M): "commands after `!` aren't run: they stay text for the model",
    re.compile(r"\$(?:ARGUMENTS\b|\{CLAUDE_\w+\})"): "`{0}` stays as it is: nothing is put in its place",
}


@frozen
class SkillDraft:
    """A skill that isn't written yet.

    Args:
        name: Its name, valid, but maybe not its own among others.
        written: The name that its writer gave it.
        text: The text of its `SKILL.md`.
        notes: What couldn't be converted.
        is_kept: Whether a model may load it at all.
    """

    name: str
    written: str
    text: str
    notes: tuple[Note, ...] = ()
    is_kept: bool = True


def translate_skill(text: str, file: str) -> SkillDraft:
    r"""Translate a skill; a `SKILL.md` that is as it should be stays as it is.

    Args:
        text: The text of its `SKILL.md`.
        file: The file's path, whose folder names a skill that has no name.

    Raises:
        UnreadableFileError: It is no skill, or its frontmatter has no end.

    Example:
        >>> draft = translate_skill("---\nname: PDF Forms\ndescription: Fills in: forms.\n---\nFill.\n", "pdf/SKILL.md")
        >>> print(draft.text, end="")
        ---
        name: pdf-forms
        description: "Fills in: forms."
        ---
        Fill.
    """
    found = read_markdown(text, _KEYS)
    folder = PurePosixPath(file).parent.name
    written = text_value(found.fields["name"]) if "name" in found.fields else ""
    name = skill_name(written) or skill_name(folder) or "skill"
    description, notes = _description(found, name)
    if written and name != written:
        notes.append(Note(f"the name is `{name}` instead of `{written}`", found.fields["name"].line))
    notes += _rest(found)
    notes += _body_notes(text)
    notes.sort(key=lambda note: note.line)
    only_people = _is_true(found.fields.get("disablemodelinvocation"))
    if only_people:
        why = "it is left out: only people call it (`disable-model-invocation`), and here models load skills"
        notes = [Note(why, found.fields["disablemodelinvocation"].line)]
    parsed = parse_skill(text, file)
    kept = parsed.value
    if kept is None or parsed.diagnostics or (kept.name, kept.description) != (name, " ".join(description.split())):
        text = _text(name, description, kept, found)
        checked = parse_skill(text, file)
        if checked.value is None:
            problem = next((each.message for each in checked.diagnostics), "it has no name or no description")
            raise UnreadableFileError(f"can't be written as a skill: {problem}")
    return SkillDraft(name, written or folder, text, tuple(notes), not only_people)


def skill_name(text: str) -> str:
    """A name that a skill may have and as near to the text as possible; empty if nothing of it can be kept.

    Example:
        >>> skill_name("PDF Forms"), skill_name("my_skill--2"), skill_name("日本")
        ('pdf-forms', 'my-skill-2', '')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_NAME_LENGTH].rstrip("-")


def with_name(draft: SkillDraft, name: str) -> str:
    """The text of a skill under another name."""
    return re.sub(r"^name:.*$", f"name: {name}", draft.text, count=1, flags=re.M)


def _description(found: MarkdownFile, name: str) -> tuple[str, list[Note]]:
    """What the skill does and when to use it; of a skill without a description its first paragraph."""
    field = found.fields.get("description")
    more = found.fields.get("whentouse")
    notes: list[Note] = []
    if field is None or not text_value(field, prose=True):
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", found.body) if part.strip()]
        first = next((part for part in paragraphs if not part.startswith("#")), "")
        field = Field("description", field.line if field is not None else 1, " ".join(first.split()) or name)
        notes.append(Note("it has no description; its first paragraph is taken", field.line))
    if more is not None:
        both = f"{text_value(field, prose=True)} {text_value(more, prose=True)}"
        field = Field("description", field.line, " ".join(both.split()))
    text, more_notes = description_of(field)
    return text, [*notes, *more_notes]


def _rest(found: MarkdownFile) -> Iterator[Note]:
    for key, field in found.fields.items():
        if key == "allowedtools":
            yield Note("`allowed-tools` allows nothing here: rules under `approvals` in project.json do", field.line)
        elif key in _LEFT_OUT:
            yield Note(_LEFT_OUT[key], field.line)
        elif key in FOR_PEOPLE and key not in _KEPT:
            yield Note(f"`{field.key}` is left out: it is for people", field.line)
        elif key not in _KEPT | _SILENT:
            yield Note(f"`{field.key}` is left out: it is unknown", field.line)


def _body_notes(text: str) -> Iterator[Note]:
    for pattern, sentence in _IN_BODY.items():
        if place := pattern.search(text):
            yield Note(sentence.format(place[0]), text.count("\n", 0, place.start()) + 1)


def _is_true(field: Field | None) -> bool:
    return field is not None and text_value(field).strip("\"'").lower() in ("true", "yes", "on")


def _text(name: str, description: str, kept: SkillFile | None, found: MarkdownFile) -> str:
    lines = [f"name: {name}", f"description: {_scalar(' '.join(description.split()))}"]
    values = kept or _nearly_yaml(name, description, found)
    texts = {"license": values.license, "compatibility": values.compatibility}
    lines += [f"{key}: {_scalar(text)}" for key, text in texts.items() if text]
    if values.metadata:
        lines += ["metadata:", *(f"  {_scalar(key)}: {_scalar(text)}" for key, text in values.metadata.items())]
    if values.allowed_tools:
        lines.append(f"allowed-tools: {_scalar(' '.join(values.allowed_tools))}")
    body = f"{found.body}\n" if found.body else ""
    return "\n".join(["---", *lines, "---", body])


def _nearly_yaml(name: str, description: str, found: MarkdownFile) -> SkillFile:
    """What a frontmatter that isn't YAML says."""
    texts = {key: text_value(found.fields[key]) for key in ("license", "compatibility") if key in found.fields}
    pairs = [line.partition(":") for line in found.fields["metadata"].lines] if "metadata" in found.fields else []
    metadata = {key.strip(): text_value(Field(key, 1, text.strip())) for key, mark, text in pairs if mark}
    tools = tuple(list_value(found.fields["allowedtools"])) if "allowedtools" in found.fields else ()
    return SkillFile(name, description, texts.get("license"), texts.get("compatibility"), metadata, tools)


def _scalar(text: str) -> str:
    """Text that YAML reads as it is."""
    plain = re.fullmatch(r"[A-Za-z][\w ,.()/-]*[\w.)]", text) is not None and not text.lower().startswith(_WORDS)
    return text if plain else json.dumps(text, ensure_ascii=False)


_WORDS = ("true", "false", "yes", "no", "on", "off", "null")
