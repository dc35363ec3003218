"""LD1xx: reading, syntax and shape of files."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["READING"]

READING: dict[str, Code] = {
    "LD101": Code(
        "File can't be read",
        "error",
        "The file is missing, is a folder or a device, or may not be read.",
        '"agent_files": ["gone.agent"]',
        '"agent_files": ["main.agent"]',
    ),
    "LD102": Code(
        "Not UTF-8",
        "error",
        "Files of a project are UTF-8, with or without a byte-order mark, whatever the machine's locale.",
        "a file saved as Latin-1 or UTF-16",
        "the same file saved as UTF-8",
    ),
    "LD103": Code(
        "Character not allowed",
        "error",
        "Control characters and lone surrogates can't stand in frontmatter or a manifest.",
        "name: main<U+0007>",
        "name: main",
    ),
    "LD104": Code(
        "Too large",
        "error",
        "A file is too long, or nests lists and mappings too deeply, to be a description of a project.",
        "[[[[[[ ... a hundred deep ... ]]]]]]",
        "[1, 2, 3]",
    ),
    "LD105": Code(
        "JSON syntax",
        "error",
        "The manifest is not JSON. Comments, trailing commas and single quotes are not part of JSON.",
    ),
    "LD106": Code(
        "YAML syntax",
        "error",
        "The frontmatter is not YAML. Most often a value with a colon in it needs quotes.",
    ),
    "LD107": Code(
        "No frontmatter",
        "error",
        "An .agent file starts with a line that is exactly ---, with nothing before it.",
    ),
    "LD108": Code(
        "Frontmatter not closed",
        "error",
        "The frontmatter ends with a line that is exactly ---: no blanks around it, no fourth dash.",
    ),
    "LD110": Code(
        "Duplicate key",
        "error",
        "The same key stands twice in one mapping, so one of the values would be lost.",
    ),
    "LD111": Code(
        "YAML tag",
        "error",
        "Tags (!!str, !python/object) are not part of the format.",
    ),
    "LD112": Code(
        "YAML merge key",
        "error",
        "A merge (<<) hides where keys come from, and is not part of the format.",
    ),
    "LD113": Code(
        "YAML alias",
        "error",
        "An alias refers to nothing or to what it is part of, or aliases multiply to too many values.",
    ),
    "LD114": Code(
        "Key is not text",
        "error",
        "Keys are text; YAML reads this one as something else, or as a list or mapping.",
    ),
    "LD115": Code(
        "Quote it",
        "error",
        "YAML reads this unquoted value as something other than text, or its versions disagree about it.",
    ),
    "LD116": Code(
        "Not a number of JSON",
        "error",
        "NaN, Infinity and numbers too large to be held are not data that can be sent to a model.",
    ),
    "LD120": Code(
        "Unknown key",
        "error",
        "The key is not part of the format; most often it is misspelled.",
    ),
    "LD121": Code(
        "Missing key",
        "error",
        "A key that must be there isn't.",
    ),
    "LD122": Code(
        "Wrong type",
        "error",
        "The value is of another type than the key takes. Nothing is converted silently.",
    ),
    "LD123": Code(
        "Not one of the values",
        "error",
        "The key takes one of a few values, and this isn't one.",
    ),
    "LD124": Code(
        "Out of range",
        "error",
        "The number is too small or too large, or the text or list too short or too long.",
    ),
    "LD125": Code(
        "Malformed name",
        "error",
        "A name becomes a tool name, so it is a letter or _, then up to 63 letters, digits, _ and -.",
    ),
    "LD126": Code(
        "Malformed reference",
        "error",
        "A reference to Python code is path.py:name; a class may also be module.Class.",
    ),
    "LD127": Code(
        "Not exactly one entry",
        "error",
        "The entry names exactly one of agent, function and flow.",
    ),
    "LD128": Code(
        "Keys exclude each other",
        "error",
        "Two keys say different things about the same.",
    ),
    "LD129": Code(
        "No files",
        "error",
        "A manifest lists at least one file in agent_files or python_files.",
    ),
    "LD130": Code(
        "Not a JSON Schema",
        "error",
        "The agent's `output` has to be a valid JSON Schema whose references stay inside it.",
    ),
    "LD131": Code(
        "auth_mode",
        "error",
        "Logging in to a provider's subscription is not supported; only oauth_off is accepted.",
    ),
    "LD132": Code(
        "Unknown format version",
        "error",
        "This version of llm-do reads version 1 of the manifest.",
    ),
    "LD190": Code(
        "Value that is not in this version",
        "error",
        "This version of llm-do doesn't know values of this kind, such as another kind of store for threads.",
    ),
}
