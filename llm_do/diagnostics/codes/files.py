"""LD101 to LD104 and LD107 to LD109: reading files, and frontmatter; LD430 to LD436: the folders of skills."""

from __future__ import annotations

from collections.abc import Iterable

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import did_you_mean

LD101 = Code(
    "LD101",
    "File can't be read",
    "error",
    "The file is missing, is a folder or a device, or may not be read.",
    "check that the file exists and may be read",
    wrong='"agent_files": ["main.agent", "old.agent"]',
    right='"agent_files": ["main.agent"]',
)


def unreadable_file(reason: str, file: str | None = None) -> Problem:
    """A file, named where the diagnostic stands in another one."""
    return LD101.problem(f"{'the file' if file is None else f'`{file}`'} can't be read: {reason}")


LD102 = Code(
    "LD102",
    "Not UTF-8",
    "error",
    "Files of a project are UTF-8, with or without a byte-order mark, whatever the machine's locale.",
    "save the file as UTF-8",
    wrong="a file saved as Latin-1 or UTF-16",
    right="the same file saved as UTF-8",
)


def not_utf8(byte: int, offset: int, *, utf16: bool) -> Problem:
    """The first byte that isn't UTF-8."""
    hint = "it looks like UTF-16; save the file as UTF-8" if utf16 else None
    return LD102.problem(f"the file is not UTF-8: byte 0x{byte:02x} at offset {offset}", hint)


LD103 = Code(
    "LD103",
    "Character not allowed",
    "error",
    "Control characters and lone surrogates aren't allowed in frontmatter or a manifest.",
    "remove it, or write it as an escape in a quoted string",
    wrong="description: Rings <U+0007>",
    right="description: Rings",
)


def forbidden_character(character: str) -> Problem:
    """A character that can't stand in a file."""
    return LD103.problem(f"the character U+{ord(character):04X} is not allowed here")


def lone_surrogate() -> Problem:
    """Half of a pair, written as an escape."""
    return LD103.problem("a lone surrogate is not a character", "write the whole pair")


LD104 = Code(
    "LD104",
    "Too large",
    "error",
    "A file is too long, or nests lists and mappings too deeply, to be a description of a project.",
    "make it smaller",
    wrong="output: {type: object, default: [[[ ... a hundred deep ... ]]]}",
    right="output: {type: object, default: [[]]}",
)


def long_file(limit: int) -> Problem:
    """A file of more than so many bytes."""
    return LD104.problem(f"the file is longer than {limit // 1024 // 1024} MiB", "move what isn't needed elsewhere")


def many_values(limit: int) -> Problem:
    """A document with too many values."""
    return LD104.problem(f"the document has more than {limit:,} values")


def deep_nesting(what: str, limit: int) -> Problem:
    """Lists and what the format calls objects."""
    return LD104.problem(f"lists and {what} nest deeper than {limit}", "nest them less deeply")


LD107 = Code(
    "LD107",
    "No frontmatter",
    "error",
    "An .agent file and a SKILL.md start with a line that is exactly ---, with nothing before it.",
    "the first line must be exactly ---",
    wrong="name: main",
    right="---\nname: main\n---",
)


def empty_agent_file() -> Problem:
    """A file without text."""
    return LD107.problem("the file is empty")


def no_frontmatter() -> Problem:
    """A file that starts with something else."""
    message = "the file has no frontmatter: its first line is not ---"
    return LD107.problem(message, "start it with ---, `name: ...` and another ---")


def blank_lines_first() -> Problem:
    """Blank lines before the first `---`."""
    return LD107.problem("there are blank lines before the frontmatter")


def unfinished_line() -> Problem:
    """A file that is `---` only."""
    return LD107.problem("the frontmatter has no line end")


def blanks_around_opening() -> Problem:
    """Blanks before or after the first `---`."""
    return LD107.problem("the line that opens the frontmatter has blanks around its ---")


def wrong_opening(line: str) -> Problem:
    """A first line that is nearly `---`."""
    return LD107.problem(f"the frontmatter is opened by `{line}`, not by ---")


LD108 = Code(
    "LD108",
    "Frontmatter not closed",
    "error",
    "The frontmatter ends with a line that is exactly ---: no blanks around it, no fourth dash.",
    "add a line that is exactly --- after it",
    wrong="name: main\n----",
    right="name: main\n---",
)


def unclosed_frontmatter() -> Problem:
    """A file without a second `---`."""
    return LD108.problem("the frontmatter is never closed")


def wrong_closing(line: int, text: str) -> Problem:
    """A line that is nearly `---`."""
    message = f"the frontmatter is never closed: line {line} is `{text}`, not ---".replace("\t", "\\t")
    return LD108.problem(message, "the line must be exactly ---, without blanks")


LD109 = Code(
    "LD109",
    "Hidden character",
    "warning",
    "A model reads characters that a person doesn't see in an editor, such as tags, direction changes, zero-width "
    "characters and escape sequences. They can hide instructions.",
    "delete it, or type the line again",
    wrong="Help.\u200b",
    right="Help.",
)


def hidden_characters(what: str, found: str) -> Problem:
    """A run of hidden characters of one kind."""
    if len(found) == 1:
        return LD109.problem(f"there is a {what} here that can't be seen: U+{ord(found):04X}")
    return LD109.problem(
        f"there are {len(found)} characters here that can't be seen, the first a {what}: U+{ord(found[0]):04X}"
    )


LD430 = Code(
    "LD430",
    "Malformed skill",
    "error",
    "A SKILL.md says what its skill is called and when it helps, as the Agent Skills format has it: `name`, 1 to 64 "
    "lower-case letters, digits and single hyphens, equal to the name of its folder, and `description`, 1 to 1024 "
    "characters.",
    "correct the frontmatter of the SKILL.md",
    wrong="name: PDF_Forms\ndescription: Fills forms.",
    right="name: pdf-forms\ndescription: Fills in PDF forms. Use when a form has to be filled in.",
)


def missing_skill_key(key: str) -> Problem:
    """A key that every skill has."""
    hint = "add a line `name: ...` with the name of the skill's folder"
    if key == "description":
        hint = "add a line `description: ...` that says what the skill does and when to use it"
    return LD430.problem(f"the skill has no `{key}`", hint)


def malformed_skill_key(key: str, fault: str, hint: str | None = None) -> Problem:
    """A value that the format doesn't allow."""
    return LD430.problem(f"`{key}` {fault}", hint)


def unlike_folder(name: str, folder: str) -> Problem:
    """A skill that isn't called as its folder is."""
    return LD430.problem(
        f"the skill is called `{name}`, and its folder `{folder}`", "a skill and its folder have the same name"
    )


LD431 = Code(
    "LD431",
    "Not a skill's folder",
    "error",
    "A skill is a folder with a SKILL.md. What is listed under `skills` must be such a folder, or a pattern of them.",
    "add a SKILL.md to it, or don't list it",
    wrong="skills: [skills/tea/SKILL.md]",
    right="skills: [skills/tea]",
)


def no_skill_file(folder: str, siblings: Iterable[str], *, has_skills: bool = False) -> Problem:
    """A folder without a SKILL.md, the files in it, and whether folders in it have one."""
    near = next((name for name in siblings if name.lower() == "skill.md"), None)
    hint = f"rename its {near} to SKILL.md" if near is not None else None
    if hint is None and has_skills:
        hint = f"list the skills in it: `{folder}/*`"
    return LD431.problem(f"the folder `{folder}` has no SKILL.md", hint)


def skill_not_folder(path: str) -> Problem:
    """A file under `skills`."""
    return LD431.problem(f"`{path}` is a file, and a skill is a folder", "list the folder that has the SKILL.md")


def no_such_skills(pattern: str, name: str | None = None, siblings: Iterable[str] = ()) -> Problem:
    """A path or pattern that no folder matches; the last part of a path, and the folders beside it."""
    if name is None:
        return LD431.problem(f"`{pattern}` matches no folder", "list folders of skills, such as `skills/*`")
    hint = did_you_mean(name, siblings) or "correct the path; it is relative to the project's folder"
    return LD431.problem(f"there is no folder `{pattern}`", hint)


LD432 = Code(
    "LD432",
    "Two skills of one name",
    "error",
    "An agent loads a skill by its name, so no two of its skills may have the same one.",
    "list one of them, or rename the other and its folder",
    wrong="skills: [skills/*, more/*]",
    right="skills: [skills/*]",
)


def duplicate_skill(name: str, folder: str) -> Problem:
    """A skill, and the folder of another one with its name."""
    return LD432.problem(f"there is another skill `{name}`, in `{folder}`")


LD433 = Code(
    "LD433",
    "Long skill",
    "warning",
    "All of a SKILL.md goes into the conversation when an agent loads it. The format recommends fewer than 500 lines "
    "and 5000 tokens.",
    "move details to files beside it that it links to, such as references/details.md",
    wrong="a SKILL.md of 900 lines",
    right="See [the details](references/details.md).",
)


def long_skill(size: str, limit: str) -> Problem:
    """How long it is, and how long it should be."""
    return LD433.problem(f"the skill has {size}; fewer than {limit} are recommended")


LD434 = Code(
    "LD434",
    "Dead link in a skill",
    "warning",
    "A SKILL.md links to a file that isn't in the skill's folder, so the agent can't read it.",
    "correct the link, or add the file",
    wrong="See [the water](water.md).",
    right="See [the water](references/water.md).",
)


def dead_link(target: str) -> Problem:
    """A relative link that leads nowhere."""
    return LD434.problem(f"the link leads to `{target}`, which isn't a file of the skill")


def link_outside(target: str) -> Problem:
    """A relative link out of the folder."""
    hint = "an agent can only read files in the skill's own folder; move the file there"
    return LD434.problem(f"the link leads to `{target}`, outside of the skill's folder", hint)


LD435 = Code(
    "LD435",
    "Part of a skill without effect",
    "warning",
    "A SKILL.md has a key that the Agent Skills format doesn't know, or metadata that isn't text. It is ignored.",
    "remove it, or move it to `metadata`, as text",
    wrong="version: 2",
    right='metadata: {version: "2"}',
)


def ignored_skill_key(key: str, guess: str | None) -> Problem:
    """An unknown key, and the known one that it resembles."""
    return LD435.problem(f"unknown key `{key}`", f"did you mean `{guess}`?" if guess else None)


def ignored_metadata(key: str) -> Problem:
    """A value of the metadata that is a list or a mapping."""
    return LD435.problem(f"`metadata.{key}` isn't text", "write it as text")


LD436 = Code(
    "LD436",
    "Toolset without skills",
    "warning",
    "An agent lists the toolset `skills`, whose tools load skills, but has none.",
    "list folders under the agent's `skills`, or remove the toolset",
    wrong="toolsets: [skills]",
    right="skills: [skills/*]",
)


def no_skills(agent: str) -> Problem:
    """An agent."""
    return LD436.problem(f"the agent `{agent}` lists the toolset `skills`, but has no skills")
