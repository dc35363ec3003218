"""What importing `formats` costs, and that its examples run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import llm_do.formats
from tests.support.tables import each_row

MODULES = [
    module.name for module in pkgutil.walk_packages(llm_do.formats.__path__, "llm_do.formats.") if not module.ispkg
]


@each_row("name", MODULES)
def test_examples_run_and_public_names_are_sorted(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    assert all(hasattr(module, item) for item in module.__all__)


def imported_modules(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def test_parsing_imports_neither_pydantic_ai_nor_jsonschema_nor_rich() -> None:
    names = imported_modules(
        "from llm_do.formats.agent_file import parse_agent\n"
        "from llm_do.formats.manifest import parse_manifest\n"
        "from llm_do.ui.reports.diagnostic_text import render_text\n"
        "parse_agent('---\\nname: a\\nmodle: b\\n---\\n', 'a')\n"
        "parse_manifest('{}', 'p')\n"
    )
    assert not names & {"pydantic_ai", "jsonschema", "rich", "typer"}


def test_rendering_and_the_code_table_import_neither_yaml_nor_pydantic() -> None:
    names = imported_modules(
        "import llm_do.ui.reports.diagnostic_text, llm_do.diagnostics.codes, llm_do.formats.syntax.json_nodes\n"
        "import llm_do.formats.syntax.frontmatter"
    )
    assert not names & {"pydantic", "yaml"}


def test_reading_a_manifest_does_not_import_yaml() -> None:
    assert "yaml" not in imported_modules("import llm_do.formats.manifest")
