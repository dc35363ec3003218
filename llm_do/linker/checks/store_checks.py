"""Check `threads.store`: its kind, the variables of a URL, and whether what it needs is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec

from llm_do.diagnostics.codes import environment, shape
from llm_do.diagnostics.diagnostic import Location
from llm_do.linker.analysis.names import Names
from llm_do.project.store_location import is_database, is_own_file, variables

__all__ = ["check_store"]


def check_store(store: str, place: Location, names: Names) -> None:
    """Check a project's store, without opening it."""
    if is_own_file(store):
        return
    if not is_database(store):
        names.report(shape.unsupported_store(store), place)
        return
    missing = [variable for variable in variables(store) if not os.environ.get(variable)]
    for variable in missing:
        names.report(environment.missing_variable(variable), place)
    if find_spec("psycopg") is None:
        names.report(shape.missing_driver(), place)
