"""Decide about a parsed command: allow it, ask about it or block it, with a reason.

Each kind of shell toolset has its own judge. Judges are pure, except that they resolve paths on disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.pattern import Pattern
from llm_do.policy.secrets import names_secret_file
from llm_do.policy.values import Decision, Pipeline
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.shell.path_arguments import (
    directory_below_root,
    first_link_outside,
    first_path_outside,
    leads_to_secret,
    possible_paths,
)
from llm_do.toolsets.shell.readonly_programs import NotReadOnlyError, ReadOnlyCommand, parse_read_only

__all__ = [
    "CommandJudge",
    "apply_limits",
    "as_read_only",
    "file_operations_judge",
    "means_something_else",
    "pattern_judge",
    "read_only_judge",
    "stricter",
]

CommandJudge = Callable[[Pipeline, str], Decision]
"""Decides about a pipeline that would run in a directory, a path below the root."""

_WRITERS = ("chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync", "sed", "tee", "touch")
_TO_THE_LAST = ("cp", "install", "ln", "mv", "rsync")
_COPIERS = ("cp", "install", "ln", "rsync")
"""Programs that write their last operand only."""

_DELETERS = ("shred", "truncate", "unlink")
_ELSEWHERE = "its `allow` applies to the usual directory, and this is another one"
_MOST_MOVED = 50
_TARGET = re.compile(r"-[A-Za-z]*t|--t[a-z-]*")
_TARGET_IN_WORD = re.compile(r"(?:-[A-Za-z]*?t|--t[a-z-]*=)(.+)", re.DOTALL)
_SED_SCRIPT = re.compile(r"-[A-Za-z]*[ef]|--[ef]")
"""An option of sed that contains its script; without one the first operand is the script."""
_SED_IN_PLACE = re.compile(r"(?:-[A-Za-z]*?i|--i[a-z-]*=?)(.*)", re.DOTALL)
_SED_WRITES = re.compile(r"(?:^|[^A-Za-z]|[gpIiMmeE])[wW][ \t]*([^\n]+)")
"""The file that sed's `w` names: the rest of the line."""
_SEVERITY = {"allow": 0, "ask": 1, "deny": 2}


def as_read_only(argv: Sequence[str]) -> ReadOnlyCommand | None:
    """Return what a command reads, or None if it may do more than read."""
    try:
        return parse_read_only(argv)
    except NotReadOnlyError:
        return None


def means_something_else(root: Root, pipeline: Pipeline, cwd: str, home: str) -> bool:
    """Whether a pipeline means something else in the directory `cwd` than in the configured one, `home`.

    Commands that only read mean the same everywhere.
    """
    if all(as_read_only(argv) is not None for argv in pipeline):
        return False
    try:
        return cwd != directory_below_root(root, home)
    except FileRefusedError:
        return True


def read_only_judge(protection: Protection, allowed: Sequence[Pattern] = (), home: str = ".") -> CommandJudge:
    """Return a judge that allows commands that only read, asks about reads outside the root, and blocks the rest.

    Commands that match a pattern are decided about as `pattern_judge` does.
    """

    def judge(pipeline: Pipeline, cwd: str) -> Decision:
        found = Decision("allow", "it only reads")
        fitting = _fitting(allowed, pipeline)
        for place, argv in enumerate(pipeline):
            if place in fitting and as_read_only(argv) is None:
                found = stricter(found, _within_limits(protection, (argv,), cwd, home))
                continue
            try:
                paths = parse_read_only(argv).paths
            except NotReadOnlyError as error:
                return Decision("deny", str(error))
            found = stricter(found, _read_decision(protection, cwd, argv, paths))
        return found

    return judge


def file_operations_judge(protection: Protection) -> CommandJudge:
    """Return a judge that allows `ls`, asks about `mv`, and blocks the rest."""

    def judge(pipeline: Pipeline, cwd: str) -> Decision:
        found = Decision("allow", "it only lists files")
        for argv in pipeline:
            if argv[0] == "ls":
                found = stricter(found, read_only_judge(protection)((argv,), cwd))
            elif argv[0] == "mv":
                found = stricter(found, _mv(protection, argv, cwd))
            else:
                return Decision("deny", f"{display_path(argv[0])} is not one of ls and mv")
        return found

    return judge


def pattern_judge(protection: Protection, allowed: Sequence[Pattern], home: str = ".") -> CommandJudge:
    """Return a judge that allows commands that match a pattern and asks about others.

    Several patterns `shell(PATTERN)` may allow a pipeline together. No pattern allows programs that are known to write
    to write protected files. The patterns apply in the directory `home`; in another one, commands that don't only read
    need approval.
    """

    def judge(pipeline: Pipeline, cwd: str) -> Decision:
        fitting = _fitting(allowed, pipeline)
        unmatched = [argv for place, argv in enumerate(pipeline) if place not in fitting]
        if unmatched:
            reason = f"no pattern of `allow` matches {display_path(' '.join(unmatched[0]), 80)}"
            if (secret := next(filter(names_secret_file, unmatched[0][1:]), None)) is not None:
                reason += f", and {display_path(secret)} may hold secrets"
            return stricter(_asked_writes(protection, pipeline, cwd), Decision("ask", reason))
        return _within_limits(protection, pipeline, cwd, home)

    return judge


def _within_limits(protection: Protection, pipeline: Pipeline, cwd: str, home: str) -> Decision:
    """Return the decision about commands that patterns allow in the directory `home`."""
    if means_something_else(protection.root, pipeline, cwd, home):
        return stricter(_asked_writes(protection, pipeline, cwd), Decision("ask", _ELSEWHERE))
    found = stricter(Decision("allow", "its `allow` says so"), _outside(protection, pipeline, cwd))
    return stricter(found, _protected_writes(protection, pipeline, cwd))


def _fitting(allowed: Sequence[Pattern], pipeline: Pipeline) -> set[int]:
    """Return the commands of a line that the patterns allow together."""
    found: set[int] = set()
    for pattern in allowed:
        if pattern.primary is not None:
            found |= pattern.primary.command.allows(pipeline)
    return found


def apply_limits(protection: Protection, decision: Decision, pipeline: Pipeline, cwd: str) -> Decision:
    """Return a decision to allow or ask, or a stricter one for what no rule can allow."""
    if decision.effect == "allow" and means_something_else(protection.root, pipeline, cwd, "."):
        decision = Decision("ask", _ELSEWHERE)
    judge_writes = _asked_writes if decision.effect == "ask" else _protected_writes
    decision = stricter(decision, judge_writes(protection, pipeline, cwd))
    return stricter(decision, _outside(protection, pipeline, cwd))


def stricter(one: Decision, other: Decision) -> Decision:
    """Return the stricter of two decisions, the first if they are equally strict."""
    rank_one = (_SEVERITY[one.effect], one.person_only)
    return other if (_SEVERITY[other.effect], other.person_only) > rank_one else one


def _outside(protection: Protection, pipeline: Pipeline, cwd: str) -> Decision:
    for argv in pipeline:
        outside = first_path_outside(protection.root, cwd, possible_paths(argv))
        outside = outside or first_link_outside(protection.root, cwd, argv)
        if outside is not None:
            return Decision("ask", f"{display_path(outside)} is outside the project's folder")
        secret = leads_to_secret(protection.root, cwd, possible_paths(argv))
        if secret is not None:
            return Decision("ask", f"{display_path(secret)} leads to a file that may hold secrets")
    return Decision("allow")


def _read_decision(protection: Protection, cwd: str, argv: Sequence[str], paths: Iterable[str]) -> Decision:
    paths = list(paths)
    if any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for word in argv for character in word):
        return Decision("ask", "it has characters that can't be seen")
    outside = first_path_outside(protection.root, cwd, paths)
    if outside is not None:
        return Decision("ask", f"{display_path(outside)} is outside the project's folder")
    for path in paths:
        found = protection.read_decision(_joined(cwd, path))
        if found.effect == "deny":
            return Decision("ask", f"{display_path(path)}: {found.reason}")
    return Decision("allow")


def _joined(cwd: str, path: str) -> str:
    """Return a program's path argument relative to the root; to a program a tilde is an ordinary character."""
    return path if path.startswith("/") else f"./{path}" if cwd == "." else f"{cwd}/{path}"


def _mv(protection: Protection, argv: Sequence[str], cwd: str) -> Decision:
    reading = read_command(tuple(argv))
    if reading.unknown:
        return Decision("deny", f"mv has the option {reading.unknown[0]}, which is not supported")
    operands = [piece.text for piece in reading.pieces if piece.role == "path"]
    return (
        _write_decision(protection, operands, cwd, operands[-1:]) if operands else Decision("ask", "it changes files")
    )


def _asked_writes(protection: Protection, pipeline: Pipeline, cwd: str) -> Decision:
    """Decide about the writes of programs that are known to write."""
    found = Decision("allow")
    for argv in pipeline:
        if argv[0].rpartition("/")[2] in (*_WRITERS, *_DELETERS):
            operands, read = _operands(argv)
            for path in read:
                if (decision := protection.read_decision(_joined(cwd, path))).effect == "deny":
                    found = stricter(found, decision)
            if operands:
                targets = _named_targets(argv)
                if not targets and argv[0].rpartition("/")[2] in _TO_THE_LAST:
                    targets = operands[-1:]
                copies = argv[0].rpartition("/")[2] in _COPIERS
                found = stricter(found, _write_decision(protection, operands, cwd, targets, copies=copies))
    return found


def _operands(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that may be paths: those that may be written, and those that are only read."""
    program = argv[0].rpartition("/")[2]
    if program == "dd":
        return [word.partition("=")[2] for word in argv[1:] if word.startswith(("if=", "of="))], []
    end = argv.index("--") if "--" in argv else len(argv)
    operands = [*(word for word in argv[1:end] if not word.startswith("-")), *argv[end + 1 :]]
    return _of_sed(argv[1:end], operands) if program == "sed" else (operands, [])


def _of_sed(words: Sequence[str], operands: list[str]) -> tuple[list[str], list[str]]:
    """Return the files that sed writes (edited ones, backups, those in its script) and those that it only reads."""
    scripts = dict.fromkeys([*words, *operands[:1]])
    if not any(map(_SED_SCRIPT.match, words)):
        del operands[:1]
    written = [found[1] for script in scripts for found in _SED_WRITES.finditer(script)]
    endings = [found[1] for word in words if (found := _SED_IN_PLACE.fullmatch(word))]
    if not endings:
        return written, operands
    backups = [str(PurePosixPath(path).parent / _backup(path, ending)) for path in operands for ending in endings]
    return list(dict.fromkeys([*operands, *backups, *written])), []


def _backup(path: str, ending: str) -> str:
    name = PurePosixPath(path).name
    return ending.replace("*", name) if "*" in ending else name + ending


def _protected_writes(protection: Protection, pipeline: Pipeline, cwd: str) -> Decision:
    """Decide about writes that no pattern or rule can allow: those that are blocked or reserved for a person."""
    found = _asked_writes(protection, pipeline, cwd)
    return found if found.effect == "deny" or found.person_only else Decision("allow")


def _named_targets(argv: Sequence[str]) -> list[str]:
    """Return the target folders that options name, as those of GNU programs do."""
    following = [argv[at + 1] for at, word in enumerate(argv[:-1]) if _TARGET.fullmatch(word)]
    return [*following, *(found[1] for word in argv[1:] if (found := _TARGET_IN_WORD.fullmatch(word)))]


def _is_file(root: Root, path: str) -> bool:
    try:
        return root.stat(path).kind != "folder"
    except FileRefusedError:
        return False


def _write_decision(
    protection: Protection, operands: Sequence[str], cwd: str, targets: Sequence[str], *, copies: bool = False
) -> Decision:
    """Decide about writing, moving or removing the operands, also under their names in the targets.

    A folder that isn't a target counts as all that it contains.
    """
    moved = [path for path in dict.fromkeys(operands) if path not in targets]
    if len(moved) > _MOST_MOVED:
        return Decision("ask", f"it changes more than {_MOST_MOVED} files at once", person_only=True)
    folders = [target for target in targets if not _is_file(protection.root, _joined(cwd, target))]
    into = [str(PurePosixPath(target) / PurePosixPath(path).name) for target in folders for path in moved]
    found = Decision("ask", "it changes files")
    for path in moved:
        if first_path_outside(protection.root, cwd, [path]) is None:
            name = PurePosixPath(path).name
            ends = [_joined(cwd, end) for end in (*targets, *(f"{folder}/{name}" for folder in folders))]
            found = stricter(found, protection.carried_decision(_joined(cwd, path), ends))
    moves_in = any(first_path_outside(protection.root, cwd, [target]) is None for target in targets)
    for path in (*moved, *targets, *into):
        if outside := first_path_outside(protection.root, cwd, [path]):
            # The contents of a folder outside the root aren't checked.
            unchecked = moves_in and path in moved and (protection.root.path / cwd / path).is_dir()
            reason = f"{display_path(outside)} is outside the project's folder"
            found = stricter(found, Decision("ask", reason, person_only=unchecked))
        elif not (copies and path in moved and _is_file(protection.root, _joined(cwd, path))):
            found = stricter(found, protection.write_decision(_joined(cwd, path), follow=False))
        elif (read := protection.read_decision(_joined(cwd, path))).effect == "deny":
            found = stricter(found, read)
    return found
