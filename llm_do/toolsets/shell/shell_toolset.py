"""The `shell` tool: it parses a command line into argument vectors, decides about them and runs them.

`llm_do.toolsets.shell.command_judges` decides what may run, `llm_do.toolsets.shell.processes` runs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext, Tool

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import ToolError
from llm_do.files.paths import display_path
from llm_do.files.refusals import ContentChangedError
from llm_do.files.root import Root
from llm_do.policy.commands.command_line import SimpleCommand
from llm_do.policy.denied_effects import DeniedEffects
from llm_do.policy.values import CommandLine, Decision, Resolved, ToolCallInfo, to_resolved
from llm_do.project.tools.builtin_toolsets import BUILTIN_SHELL, SHELL
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.artifacts import open_artifact
from llm_do.runtime.tools.current_tool import APPROVED_BASIS
from llm_do.runtime.tools.traits import Preview, ToolTraits
from llm_do.toolsets.function_tools import function_tool
from llm_do.toolsets.shell.captured_output import Capture
from llm_do.toolsets.shell.command_judges import CommandJudge, as_read_only, means_something_else, stricter
from llm_do.toolsets.shell.command_line import CommandRefusedError, PreparedLine, prepare_line
from llm_do.toolsets.shell.environment import find_program, shell_environment, trusted_path
from llm_do.toolsets.shell.git import safe_git
from llm_do.toolsets.shell.line_execution import run_line
from llm_do.toolsets.shell.path_arguments import (
    first_link_outside,
    first_path_outside,
    leads_to_secret,
    looks_outside,
    named_places,
    possible_paths,
)
from llm_do.toolsets.shell.processes import PipelineEnd, Stage, run_stages
from llm_do.toolsets.shell.result import ShellResult
from llm_do.toolsets.shell.sandbox.command_sandbox import NO_SANDBOX, CommandSandbox, Guard
from llm_do.toolsets.shell.sandbox.confinement import Sight, program_folders
from llm_do.toolsets.shell.sandbox.denied_paths import denied_to
from llm_do.toolsets.shell.sandbox.memory import limit_memory
from llm_do.toolsets.shell.sandbox.notes import sandbox_note

__all__ = ["Shell", "shell_tool", "shell_toolset"]

DEFAULT_SECONDS = 30.0
"""The default timeout of a command."""

_LONGEST = 3600.0
_MOST_OUTPUT = 64 * 1024 * 1024
_DEFAULT_OUTPUT = 65_536
_QUESTION_SECONDS = 10.0
_QUESTION_OUTPUT = 1024 * 1024

_MOST_DECIDED = 1_000

_FINE_BEFORE_THE_LAST = (0, -13, 128 + 13)
"""Exit codes of a stage that succeeded or whose reader stopped early (SIGPIPE, also as a sandbox reports it)."""

Seconds = Annotated[float, Field(gt=0, le=_LONGEST, allow_inf_nan=False)]


@dataclass(frozen=True)
class Shell:
    """The settings of a shell toolset, which no call changes.

    `home` is the default directory of commands, relative to the root; `names` are the environment variables that they
    may see. Commands that run without approval run in the sandbox; `may_leave` is set if a call can ask to run
    outside it. `decided` has what the file patterns of lines stood for when they were decided about.
    """

    root: Root
    judge: CommandJudge
    sandbox: CommandSandbox
    home: str = "."
    names: Sequence[str] = field(default=())
    may_leave: bool = False
    decided: dict[tuple[str, str | None], str] = field(
        default_factory=dict[tuple[str, "str | None"], str], compare=False
    )

    def parse(self, args: Mapping[str, Any]) -> PreparedLine:
        """Return the commands of a call and their directory; raise `ToolError` if either is refused."""
        command, cwd = args.get("command"), args.get("cwd")
        if not isinstance(command, str) or not isinstance(cwd, str | None):
            raise CommandRefusedError("the command and the directory must be texts")
        return prepare_line(command, self.root, cwd or self.home)

    def decide(self, call: ToolCallInfo) -> Decision:
        """Decide about a call; one that can't run at all is blocked."""
        try:
            prepared = self.parse(call.args)
        except ToolError as error:
            return Decision("deny", error.message)
        decision = self.judge(prepared.line, prepared.cwd)
        if call.args.get("outside_sandbox"):
            return stricter(decision, Decision("ask", "it asks to run outside the sandbox", person_only=True))
        if self.sandbox.is_missing:
            return stricter(decision, Decision("ask", NO_SANDBOX, person_only=True))
        return decision

    def resolve(self, args: Mapping[str, Any]) -> Mapping[str, Resolved]:
        """Return the parsed line for rules, or None for one that leads outside, or to a secret file, through a link.

        For a command that doesn't only read, the directory is included unless it is the usual one: the same words are
        another command there.
        """
        try:
            prepared = self.parse(args)
        except ToolError:
            return {"command": None}
        self._note(args, prepared)
        line, cwd = self._with_places(prepared), prepared.cwd
        for argv in line:
            hidden = [path for path in possible_paths(argv) if not looks_outside(path)]
            if first_path_outside(self.root, cwd, hidden) or leads_to_secret(self.root, cwd, hidden):
                return {"command": None}
            if first_link_outside(self.root, cwd, argv):
                return {"command": None}
        if means_something_else(self.root, line, cwd, self.home):
            return {"command": line, **self.restrict(args)}
        return {"command": line}

    def check(self, args: Mapping[str, Any]) -> None:
        """Raise `ToolError` if a program doesn't exist; of several pipelines, an earlier one may make it."""
        prepared = self.parse(args)
        if len(prepared.pipelines) == 1:
            path, directory = trusted_path(self.root.path), self.root.path.resolve() / prepared.cwd
            for command in prepared.commands:
                find_program(command.argv[0], path, directory)

    def _with_places(self, prepared: PreparedLine) -> CommandLine:
        """Return the line with where its paths lead."""
        line = prepared.line
        places = {path: place for argv in line for path, place in named_places(self.root, prepared.cwd, argv)}
        return CommandLine(line, CommandLine.joins_of(line), places)

    def _note(self, args: Mapping[str, Any], prepared: PreparedLine) -> None:
        if prepared.expanded:
            while len(self.decided) >= _MOST_DECIDED:
                self.decided.pop(next(iter(self.decided)))
            self.decided[args["command"], args.get("cwd")] = prepared.basis

    def preview(self, args: Mapping[str, Any]) -> Preview:
        """Return what binds an approval to the words that file patterns stand for."""
        return Preview(None, self.parse(args).basis)

    def restrict(self, args: Mapping[str, Any]) -> Mapping[str, Resolved]:
        """Return the directory under all its names, or nothing for a call that is refused anyway."""
        try:
            return {"cwd": to_resolved(self.root.trail(self.parse(args).directory))}
        except ToolError:
            return {}

    def describe(self, args: Mapping[str, Any]) -> str:
        """Describe the exact argument vectors and the directory for a person."""
        try:
            prepared = self.parse(args)
        except ToolError as error:
            return f"Run a command that is refused: {error.message}"
        vectors = " ".join(_describe(command) for command in prepared.commands)
        where = (
            "" if self.sandbox.reads_only or self.sandbox.backend is None else " (once approved, outside the sandbox)"
        )
        return f"Run {vectors} in {display_path(str(self.root.path / prepared.cwd))}{where}"

    async def run(self, ctx: RunContext[Any], command: str, timeout: float, cwd: str | None) -> ShellResult:  # noqa: ASYNC109
        """Run a command that has been allowed."""
        prepared = self.parse({"command": command, "cwd": cwd})
        if prepared.expanded:
            approved = APPROVED_BASIS.get()
            if approved is not None and approved != prepared.basis:
                raise ContentChangedError(command)
            if prepared.basis != self.decided.get((command, cwd), prepared.basis):
                raise ToolError("its file patterns match other files now than when it was decided about: call it again")
        files: dict[str, str] = {}
        deps = ctx.deps
        limit = deps.runtime.config.settings.max_result_bytes if isinstance(deps, CallContext) else _DEFAULT_OUTPUT

        def spill(stream: str) -> BinaryIO | None:
            label = f"{ctx.tool_call_id or 'shell'}-{stream}"
            opened = open_artifact(deps.project, label) if isinstance(deps, CallContext) else None
            if opened is not None:
                files[stream] = opened[1]
            return opened[0] if opened is not None else None

        out = Capture(limit=max(limit // 2, 2), most=_MOST_OUTPUT, spill=lambda: spill("stdout"))
        err = Capture(limit=max(limit // 4, 2), most=_MOST_OUTPUT, spill=lambda: spill("stderr"))
        asked = isinstance(deps, CallContext) and ctx.tool_call_id in deps.frame.approvals.by_person
        denied = denied_to(deps) if isinstance(deps, CallContext) else DeniedEffects()
        guard: Guard | None = None
        try:
            directory = self.root.path.resolve() / prepared.cwd

            def stage(command: SimpleCommand) -> Awaitable[Stage]:
                return self._stage(command, prepared.cwd, directory, guard, denied, asked=asked)

            async with AsyncExitStack() as opened:
                if not asked or self.sandbox.reads_only:
                    guard = await opened.enter_async_context(self.sandbox.guard(f"shell: {display_path(command, 80)}"))
                ended = await run_line(prepared.pipelines, stage, directory, seconds=timeout, stdout=out, stderr=err)
        finally:
            out.close()
            err.close()
        if guard is not None and guard.new_code and isinstance(deps, CallContext):
            named = ", ".join(display_path(path, 80) for path in guard.new_code)
            deps.warn(f"a command made new code, which isn't loaded before `llm-do approvals accept`: {named}")
        note = sandbox_note(guard, err.text() + out.text(), ended.codes, may_leave=self.may_leave)
        return _result(ended, out, err, files, timeout, note)

    async def _stage(
        self,
        command: SimpleCommand,
        cwd: str,
        directory: Path,
        guard: Guard | None,
        denied: DeniedEffects,
        *,
        asked: bool,
    ) -> Stage:
        argv = command.argv
        path = trusted_path(self.root.path)
        environment = shell_environment(path, self.names)
        vector = [find_program(argv[0], environment["PATH"], directory), *argv[1:]]
        reading = as_read_only(argv)
        visible: Sequence[Path] = ()
        if reading is not None and reading.git:
            vector[0] = find_program(argv[0], path, directory)

            async def capture(question: Sequence[str], with_environment: Mapping[str, str]) -> tuple[int, bytes]:
                return await _ask(question, with_environment, directory)

            safe = await safe_git(vector, reading.git, environment, self.root.path, capture)
            vector, environment, visible = list(safe.argv), dict(safe.environment), safe.visible
        if guard is not None:
            outside = reading is not None and first_path_outside(self.root, cwd, reading.paths) is not None
            sight = Sight([*visible, *program_folders(vector[0], path)], outside, asked, bool(reading and reading.git))
            confined = await run_in_worker(guard.confine, vector, directory, sight, denied)
            vector, environment = list(confined.argv), {**confined.environment, **environment}
        if self.sandbox.reads_only:
            vector = limit_memory(vector)
        return Stage(vector, environment, command.stdout, command.stderr)


def _describe(command: SimpleCommand) -> str:
    """Return one command of a line, with the operator before it, so that no character in it can mislead."""
    words = "[" + ", ".join(map(quote_for_display, command.argv)) + "]"
    streams = _STREAMS[command.stdout, command.stderr]
    return " ".join(part for part in (command.join, words, streams) if part)


_STREAMS = {
    ("stdout", "stderr"): "",
    ("stdout", "stdout"): "2>&1",
    ("stdout", "nowhere"): "2>/dev/null",
    ("stderr", "stderr"): ">&2",
    ("stderr", "stdout"): "3>&1 1>&2 2>&3",
    ("stderr", "nowhere"): ">&2 2>/dev/null",
    ("nowhere", "stderr"): ">/dev/null",
    ("nowhere", "stdout"): "2>&1 >/dev/null",
    ("nowhere", "nowhere"): "&>/dev/null",
}
"""How a shell writes where the streams go."""


def quote_for_display(word: str) -> str:
    """Quote a word of an argument vector so that no character in it can mislead."""
    return ascii(word)


async def _ask(argv: Sequence[str], environment: Mapping[str, str], cwd: Path) -> tuple[int, bytes]:
    """Run a command of our own, such as a question to git."""
    out = Capture(limit=_QUESTION_OUTPUT, most=_QUESTION_OUTPUT)
    err = Capture(limit=_QUESTION_OUTPUT, most=_QUESTION_OUTPUT)
    ended = await run_stages([Stage(argv, environment)], cwd, seconds=_QUESTION_SECONDS, stdout=out, stderr=err)
    if ended.why:
        raise ToolError(f"{Path(argv[0]).name} did not answer in time")
    return ended.codes[0], out.data()


def _result(
    ended: PipelineEnd, out: Capture, err: Capture, files: Mapping[str, str], seconds: float, note: str
) -> ShellResult:
    if ended.why:
        why = (
            f"timed out after {seconds:g} s and was stopped"
            if ended.why == "timeout"
            else f"printed more than {_MOST_OUTPUT // 1024 // 1024} MiB and was stopped"
        )
        streams = (("stdout", out.text()), ("stderr", err.text()))
        output = "".join(f"\n{name}:\n{text}" for name, text in streams if text)
        saved = "".join(f"\nAll of its {name} is in {path}." for name, path in files.items())
        raise ToolError("\n".join(filter(None, (f"the command {why}{output}{saved}", note))))
    result = ShellResult(
        exit_code=ended.codes[-1],
        stdout=out.text(),
        stderr=err.text(),
        truncated=out.truncated or err.truncated,
    )
    if "stdout" in files:
        result["stdout_file"] = files["stdout"]
    if "stderr" in files:
        result["stderr_file"] = files["stderr"]
    if not all(code in _FINE_BEFORE_THE_LAST for code in ended.codes[:-1]):
        result["exit_codes"] = list(ended.codes)
    if note:
        result["note"] = note
    return result


def shell_toolset(shell: Shell, *, name: str) -> FunctionToolset[Any]:
    """Build the toolset with the tool `shell`; it has no state, so runs may share it."""
    return FunctionToolset([shell_tool(shell, name)], id=name)


def shell_tool(shell: Shell, toolset: str) -> Tool[Any]:
    """Build the tool `shell` of a toolset."""

    async def run(
        ctx: RunContext[Any],
        command: str,
        timeout: Seconds = DEFAULT_SECONDS,  # noqa: ASYNC109 (the model's argument)
        cwd: str | None = None,
    ) -> ShellResult:
        return await shell.run(ctx, command, timeout, cwd)

    async def run_or_leave(
        ctx: RunContext[Any],
        command: str,
        timeout: Seconds = DEFAULT_SECONDS,  # noqa: ASYNC109 (the model's argument)
        cwd: str | None = None,
        outside_sandbox: bool = False,  # noqa: ARG001 (the decision reads it)
    ) -> ShellResult:
        return await shell.run(ctx, command, timeout, cwd)

    run.__doc__ = _DOCUMENTATION
    run_or_leave.__doc__ = _DOCUMENTATION + _LEAVING
    traits = ToolTraits(
        (SHELL if shell.may_leave else BUILTIN_SHELL)["shell"],
        toolset=toolset,
        tool="shell",
        decide=shell.decide,
        resolve=shell.resolve,
        restrict=shell.restrict,
        describe=shell.describe,
        preview=shell.preview,
        check=shell.check,
        succeeded=_exited_well,
    )
    return function_tool(run_or_leave if shell.may_leave else run, traits, "shell")


def _exited_well(result: ShellResult) -> bool:
    return result["exit_code"] == 0 and "exit_codes" not in result


_DOCUMENTATION = """Run commands without a shell, joined by `|`, `&&`, `||` or `;`. Quote words as for one.

File patterns, `2>&1`, `>/dev/null` and `cd DIRECTORY &&` at the beginning work; other redirections, variables,
substitutions, `&` and line breaks don't. Commands get no input.

Args:
    command: The command line, such as `git log -3 | head -n 5`.
    timeout: Seconds it may take.
    cwd: The directory to run in, relative to the project's folder.
"""

_LEAVING = """    outside_sandbox: Ask a person to let it run outside the sandbox, for one that failed because of it.
"""
