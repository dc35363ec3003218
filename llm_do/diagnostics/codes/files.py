"""LD101 to LD104 and LD107 to LD109: reading files, and the frontmatter of agent files."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code, Problem

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
    "An .agent file starts with a line that is exactly ---, with nothing before it.",
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
