"""Build the documentation site in `build/site`: `make site`, or `python scripts/build_site.py`.

A warning of the generator, a dead link or anchor, or a page without a place fails the build. Open
`build/site/index.html`: the site needs no server and no network.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.site_pages.built import check_built  # noqa: E402
from scripts.site_pages.navigation import NavigationError  # noqa: E402
from scripts.site_pages.stage import stage  # noqa: E402


def build(folder: Path) -> int:
    """Write the source, run Sphinx on it, and check the result.

    Args:
        folder: Where `site` is written, and what belongs to it.

    Returns:
        The exit code.
    """
    source, target = folder / "site-source", folder / "site"
    try:
        stage(ROOT, source)
    except NavigationError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sphinx = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "--fresh-env", "--jobs", "auto"]
    built = subprocess.run([*sphinx, "-d", str(folder / "site-cache"), str(source), str(target)], check=False)
    if built.returncode:
        return built.returncode
    faults = check_built(target)
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    if not faults:
        sys.stdout.write(f"{target / 'index.html'}: {len(list(target.rglob('*.html')))} pages\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(build(ROOT / "build"))
