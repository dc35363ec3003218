"""The documentation site: each page has its place, links lead somewhere, and a browser needs nothing from elsewhere."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from llm_do.diagnostics.known_codes import CODES
from scripts.build_site import build
from scripts.pages import api
from scripts.site_pages import links, navigation
from scripts.site_pages.built import check_built
from scripts.site_pages.navigation import NavigationError
from scripts.site_pages.stage import stage
from tests.support.tables import each_row
from tests.web.page_support import chromium

ROOT = Path(__file__).parents[2]


def repository(folder: Path, index: str, **pages: str) -> Path:
    """A repository whose `docs` has these pages."""
    (folder / "docs").mkdir()
    for name, text in {"README": index, **pages}.items():
        (folder / "docs" / f"{name}.md").write_text(text)
    return folder


def write(folder: Path, **pages: str) -> Path:
    """A site of these pages."""
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>")
    return folder


@each_row("module", [links, navigation])
def test_the_examples_of_the_builder_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_every_page_of_the_documents_is_in_one_section_of_the_index() -> None:
    titles = [section.title for section in navigation.navigation(ROOT)]

    assert titles == [
        "Start", "Write", "Run", "Keep", "Test", "Embed", "Operate", "Examples", "Reference", "Design"
    ]  # fmt: skip


def test_pages_keep_the_order_and_the_levels_of_the_index() -> None:
    (section,) = navigation.sections_of("## Write\n\nHow.\n\n- [B](b.md): about\n  b\n  - [C](c.md)\n- [A](a.md): it\n")

    assert [(page.path, page.title, page.summary) for page in section] == [
        ("docs/b.md", "B", "about b"), ("docs/c.md", "C", ""), ("docs/a.md", "A", "it")
    ]  # fmt: skip
    assert [page.path for page in section.pages] == ["docs/b.md", "docs/a.md"]


def test_a_page_in_no_section_fails_with_the_line_to_add(tmp_path: Path) -> None:
    root = repository(tmp_path, "## Run\n\n- [Running](running.md): how\n", running="# Running\n", memory="# Memory\n")

    with pytest.raises(NavigationError) as caught:
        navigation.navigation(root)
    assert str(caught.value) == (
        "docs/memory.md is in no section of docs/README.md: add `- [Title](memory.md): what it is about` "
        "where a reader looks for it"
    )


def test_a_page_that_is_listed_twice_or_does_not_exist_fails(tmp_path: Path) -> None:
    index = "## Run\n\n- [Running](running.md): how\n- [Gone](gone.md): what\n\n## Keep\n\n- [Again](running.md): how\n"

    with pytest.raises(NavigationError) as caught:
        navigation.navigation(repository(tmp_path, index, running="# Running\n"))
    assert str(caught.value).splitlines() == [
        "docs/README.md lists docs/gone.md, which doesn't exist",
        "docs/README.md lists docs/running.md 2 times: keep one",
    ]


def test_links_become_those_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("MIT")
    places = links.Places(
        tmp_path, {"docs/a.md", "docs/design/b.md", "docs/diagnostics.md", "examples/shop", "README.md"}
    )
    text = (
        "[a](../a.md#one) [LD203](../diagnostics.md#ld203) [e](../../examples/shop) [f](../../examples/shop/x/a.py) "
        "[r](../../README.md#try-it) [l](../../LICENSE) [w](https://example.com/x.md) [`code`](#here) `[a](gone.md)`\n"
        "```text\n[a](gone.md)\n```\n"
    )

    assert places.rewrite(text, "docs/design/b.md") == (
        "[a](../a.md#one) [LD203](../diagnostics/LD203.md) [e](../examples/shop.md) [f](../examples/shop.md#xapy) "
        "[r](../index.md#try-it) [l](../LICENSE) [w](https://example.com/x.md) [`code`](#here) `[a](gone.md)`\n"
        "```text\n[a](gone.md)\n```\n"
    )
    assert (places.files, places.faults) == ({"LICENSE"}, [])


def test_a_link_to_nothing_is_a_fault(tmp_path: Path) -> None:
    places = links.Places(tmp_path, {"docs/a.md"})
    places.rewrite("[b](b.md)", "docs/a.md")

    assert places.faults == ["docs/a.md links to b.md, which is neither a page nor a file"]


def test_each_diagnostic_module_and_example_has_a_page(tmp_path: Path) -> None:
    stage(ROOT, tmp_path / "source")

    made = {path.relative_to(tmp_path / "source").as_posix() for path in (tmp_path / "source").glob("**/*.md")}
    examples = {f"examples/{path.parent.name}.md" for path in ROOT.glob("examples/*/README.md")}
    modules = {f"reference/modules/{name}.md" for name in api.MODULES}
    assert {f"diagnostics/{code}.md" for code in CODES} | examples | modules | {"index.md", "running.md"} <= made
    calculator = (tmp_path / "source" / "examples" / "calculator.md").read_text()
    assert (ROOT / "examples" / "calculator" / "tools.py").read_text().strip() in calculator


def test_a_built_page_may_link_to_what_exists_and_load_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text("@font-face {src: url(own.woff2)}")
    (tmp_path / "site.js").write_text("")
    head = '<link href="site.css"><script src="site.js"></script>'
    write(tmp_path, a=f'{head}<a href="b.html?q=1#part">b</a><a href="#">x</a>', b='<p id="part">', c="")
    (tmp_path / "c.html").write_text('<a href="https://example.com/">elsewhere</a><img src="data:,">')

    assert check_built(tmp_path) == []


def test_dead_links_dead_anchors_and_foreign_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text(
        "@import 'https://fonts.example/x.css'; p {background: url(//cdn.example/y.png)}"
    )
    write(tmp_path, a='<a href="gone.html"></a><a href="b.html#gone"></a>', b='<script src="https://cdn.example/x.js">')

    assert check_built(tmp_path) == [
        "a.html: links to b.html#gone, and that page has no such anchor",
        "a.html: links to gone.html, which doesn't exist",
        "b.html: loads https://cdn.example/x.js from elsewhere",
        "site.css: loads @import 'https://fonts.example/x.css' from elsewhere",
        "site.css: loads url(//cdn.example/y.png) from elsewhere",
    ]


def test_pages_with_the_same_title_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        a='<h1>Flows<a href="#">#</a></h1>',
        b="<h1><code>Flows</code></h1><h1>B</h1>",
        c="<h1>Flow</h1>",
        d="",
    )

    assert check_built(tmp_path) == ["b.html: has the title of a.html, 'Flows', and the search shows no more of them"]


@pytest.mark.slow
def test_the_site_is_searched_and_read_from_a_disk_at_any_width(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx isn't installed: make site")
    assert build(tmp_path) == 0
    shutil.rmtree(tmp_path / "site-source")
    site = f"file://{tmp_path}/site"
    loaded: list[str] = []
    faults: list[str] = []
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
        context.on("request", lambda request: loaded.append(request.url))
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        for name in ("index", "reference/project-json", "diagnostics/LD203", "approvals", "examples/calculator"):
            page.goto(f"{site}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") == 390, name
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
        page.goto(f"{site}/search.html?q=LD203")
        page.locator("ul.search a").first.wait_for(timeout=60_000)
        assert page.locator("ul.search a").first.inner_text().startswith("LD203: ")
        page.locator("ul.search a").first.click()
        page.get_by_role("heading", name="LD203").wait_for(timeout=60_000)
    assert [url for url in loaded if not url.startswith(("file://", "data:"))] == []
    assert faults == []
