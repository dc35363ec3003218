"""Starting: help, version and usage errors against an interpreter that does nothing."""

from __future__ import annotations

import subprocess

from benchmarks.measure import Figure, environment, interleaved_processes, python

MEMORY = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=-3,stderr=-3);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def main() -> list[Figure]:
    """Measure the commands that must be quick."""
    figures: list[Figure] = []
    nothing = [python(), "-c", "pass"]
    for name, arguments in (("--help", ["--help"]), ("--version", ["--version"]), ("run --help", ["run", "--help"])):
        command = [python(), "-m", "llm_do.cli", *arguments]
        ours, floor = interleaved_processes(command, nothing)
        detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms"
        figures.append(Figure(f"llm-do {name} / python -c pass", ours / floor, 8, detail=detail))
    peak = subprocess.run(
        [python(), "-c", MEMORY, python(), "-m", "llm_do.cli", "--help"],
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    figures.append(Figure("llm-do --help, memory", int(peak.stdout) / 1024, 25, " MB"))
    return figures
