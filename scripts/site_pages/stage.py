"""The source of the site: the repository's pages with their links rewritten, and the pages that only the site has.

Those are the sections, a page for each diagnostic, for each public module and for each example with its files.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from scripts.pages import api
from scripts.pages.markdown import FENCED, code, fenced, table
from scripts.site_pages.links import DIAGNOSTICS, Places, page_of
from scripts.site_pages.navigation import INDEX, NavigationError, Page, Section, navigation

__all__ = ["stage"]

_EXAMPLE = "docs/reference/example"
_API = "docs/reference/python.md"
_SHOWN = {
    ".agent": "yaml", ".json": "json", ".md": "markdown", ".py": "python", ".sh": "sh", ".txt": "text", ".yaml": "yaml",
}  # fmt: skip
_LANGUAGES = {"jsonl": "json"}
"""Words behind fences that Sphinx knows by another name."""
_ORPHAN = "---\norphan: true\n---\n\n"
"""What a page begins with that is in no section."""

_LISTING = "---\nnosearch: true\n---\n\n"
"""What a page begins with that only lists others: a search had better find those."""

_TOP = 3
"""The files of one folder that an example's page shows, if they are data."""


def stage(root: Path, target: Path) -> None:
    """Write the source of the site.

    Args:
        root: The repository.
        target: The folder to write to, which is replaced.

    Raises:
        NavigationError: A page is in no section, or a link has no target.
    """
    sections = navigation(root)
    paths = {page.path for section in sections for page in section} | {"README.md", INDEX, _EXAMPLE}
    places = Places(root, paths)
    pages = dict(_pages(places, sections))
    if places.faults:
        raise NavigationError("\n".join(sorted(set(places.faults))))
    shutil.rmtree(target, ignore_errors=True)
    for name, text in pages.items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FENCED.sub(_block, text), encoding="utf-8")
    for name in sorted(places.files):
        file = target / name.removeprefix("docs/")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, file)
    (target / "navigation.json").write_text(json.dumps(_tree(sections)), encoding="utf-8")
    for name in ("conf.py", "site.css", "site.js"):
        shutil.copy(root / "docs" / "site" / name, target / name)


def _pages(places: Places, sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """Every page of the site, with its text."""
    for path in sorted(places.pages):
        if (places.root / path).is_dir():
            yield page_of(path), _example(places, path)
            continue
        text = (places.root / path).read_text(encoding="utf-8")
        if path == DIAGNOSTICS:
            yield from _diagnostics(places, text)
        else:
            head = _LISTING if path == INDEX else ""
            yield page_of(path), head + places.rewrite(text, path) + _more(path, sections)
    for section in sections:
        yield f"sections/{section.slug}.md", _section(places, section)
    yield from _modules()


def _more(path: str, sections: Sequence[Section]) -> str:
    """The pages below a page."""
    if path == "README.md":
        return _toctree(["All pages <contents>", *(f"sections/{section.slug}" for section in sections)])
    below = [
        f"{page.title} </{page_of(page.path)}>"
        for section in sections
        for parent in section
        if parent.path == path
        for page in parent.pages
    ]
    if path != _API:
        return _toctree(below)
    modules = "".join(f"- [{code(name)}](modules/{name}.md)\n" for name in api.MODULES)
    return f"\n## Modules\n\n{modules}{_toctree([*below, *(f'modules/{name}' for name in api.MODULES)])}"


def _tree(sections: Sequence[Section]) -> list[dict[str, object]]:
    """The navigation for `conf.py`."""
    return [
        _node("All pages", "contents.md", []),
        *(
            _node(section.title, f"sections/{section.slug}.md", [_page_node(page) for page in section.pages])
            for section in sections
        ),
    ]


def _page_node(page: Page) -> dict[str, object]:
    below = [_page_node(each) for each in page.pages]
    if page.path == _API:
        below += [_node(name, f"reference/modules/{name}.md", []) for name in api.MODULES]
    return _node(page.title, page_of(page.path), below, "diagnostics/" if page.path == DIAGNOSTICS else "")


def _node(title: str, page: str, below: Sequence[object], folder: str = "") -> dict[str, object]:
    return {"title": title, "name": page.removesuffix(".md"), "pages": below, "folder": folder}


def _toctree(entries: Iterable[str]) -> str:
    lines = list(entries)
    return "\n" + "\n".join(["```{toctree}", ":hidden:", *lines, "```", ""]) if lines else ""


def _section(places: Places, section: Section) -> str:
    here = f"sections/{section.slug}.md"
    items = [
        f"{'  ' if page not in section.pages else ''}- [{page.title}](/{page_of(page.path)})"
        + (f": {page.summary}" if page.summary else "")
        for page in section
    ]
    summaries = "\n".join(
        re.sub(r"(: .*)", lambda found: places.rewrite(found[0], INDEX, here), item, count=1) for item in items
    )
    below = _toctree(f"{page.title} </{page_of(page.path)}>" for page in section.pages)
    return f"{_LISTING}# {section.title}\n\n{places.rewrite(section.text, INDEX, here)}\n\n{summaries}\n{below}"


def _diagnostics(places: Places, text: str) -> Iterator[tuple[str, str]]:
    """The page of all diagnostics without their entries, and a page for each entry."""
    head, *groups = re.split(r"^## .+\n", text, flags=re.MULTILINE)
    yield page_of(DIAGNOSTICS), places.rewrite(head, DIAGNOSTICS)
    for entry in re.split(r"^(?=### LD)", "".join(groups), flags=re.MULTILINE):
        found = re.match(r"### (LD\d+)\n\n\*\*(.+?)\*\* \((\w+)\)\. ", entry)
        if found is None:
            continue
        name = f"diagnostics/{found[1]}.md"
        body = places.rewrite(entry[found.end() :], DIAGNOSTICS, name)
        kind = "An error" if found[3] == "error" else "A warning"
        head = f"{_ORPHAN}# {found[1]}: {found[2]}\n\n"
        yield name, f"{head}{kind}. {body}\n[All diagnostics](../diagnostics.md)\n"


def _modules() -> Iterator[tuple[str, str]]:
    """A page for each module that programs import from."""
    entries = {each.name: each for each in api.names()}
    for module, chosen in api.MODULES.items():
        home = import_module(module)
        about = (inspect.getdoc(home) or "").partition("\n\n")[0]
        rows = [
            [f"[{code(name)}](../{api.places()[entries[name].heading]})", api.sentence(entries[name])]
            for name in sorted(chosen or home.__all__, key=str.lower)
        ]
        yield (
            f"reference/modules/{module}.md",
            f"# {code(module)}\n\n{about}\n\n{table(['name', 'what it is'], rows)}\n[All names](../python.md)\n",
        )


def _example(places: Places, path: str) -> str:
    """An example's page: what its README says, and its files."""
    folder = places.root / path
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else f"{_ORPHAN}# The example\n"
    parts = [places.rewrite(text, f"{path}/README.md", page_of(path)), "\n## Files\n"]
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        parts.append(f"### {code(name)}\n\n{fenced(file.read_text(encoding='utf-8'), _SHOWN[file.suffix])}")
    return "\n".join(parts)


def _files(folder: Path) -> Iterator[Path]:
    """The files of an example that its page shows, those at the top first."""
    shown = [
        file
        for file in folder.glob("**/*")
        if file.is_file() and file.suffix in _SHOWN and not {"out", "__pycache__", ".llm-do"} & {*file.parts}
    ]
    seen: dict[Path, int] = {}
    kinds = list(_SHOWN)
    for file in sorted(shown, key=lambda file: (len(file.relative_to(folder).parts), kinds.index(file.suffix), file)):
        seen[file.parent] = seen.get(file.parent, 0) + 1
        data = file.suffix == ".txt" and file.parent != folder
        if file != folder / "README.md" and (not data or seen[file.parent] <= _TOP):
            yield file


def _block(found: re.Match[str]) -> str:
    """A block of code as Sphinx reads it: what a fence has behind the language, the name of a file, is its caption."""
    language, _, name = found["info"].strip().partition(" ")
    language = "yaml" if name.endswith(".agent") else _LANGUAGES.get(language, language)
    if language.startswith("{"):
        return found[0]
    if not name:
        return f"{found[1]}{language}\n{found['body']}{found[1]}"
    return f"{found[1]}{{code-block}} {language}\n:caption: {name}\n\n{found['body']}{found[1]}"
