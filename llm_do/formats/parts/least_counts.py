"""The smallest values of the settings that are counts, for the manifest, Python and the command line.

Nothing is imported, since `llm-do run --help` reads this too.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LEAST"]

LEAST: Mapping[str, int] = {
    "max_depth": 1,
    "max_steps": 1,
    "max_retries": 0,
    "loop_threshold": 0,
    "max_concurrency": 1,
    "max_calls_per_response": 1,
    "max_result_bytes": 1,
    "keep_days": 1,
    "max_mb": 1,
}
