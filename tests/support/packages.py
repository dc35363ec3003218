"""Small installed packages, which publish things by entry points: a folder with their metadata and code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["install_package"]


def install_package(
    site: Path,
    name: str,
    code: str,
    *,
    version: str = "1.0",
    toolsets: Mapping[str, str] | None = None,
    models: Mapping[str, str] | None = None,
) -> str:
    """Install a package of one module into a folder on the path.

    Args:
        site: The folder.
        name: The name of the distribution; its module has underscores instead of hyphens.
        code: The module's code.
        version: Its version.
        toolsets: Names of entry points to attributes of the module.
        models: Prefixes to attributes of the module.

    Returns:
        The module's name.
    """
    module = name.replace("-", "_")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = {"llm_do.toolsets": toolsets or {}, "llm_do.models": models or {}}
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {module}:{attribute}" for point, attribute in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (site / f"{module}.py").write_text(code)
    return module
