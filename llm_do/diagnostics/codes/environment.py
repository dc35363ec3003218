"""LD7xx: models, the environment, and what changes between two runs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.sanitizer import shell_word

LD701 = Code(
    "LD701",
    "Malformed model name",
    "error",
    "A model is named provider:name, or by a single word such as test. Whether it exists shows when it is used.",
    "write provider:name, such as openai:gpt-5-mini",
    wrong='model: "openai:"',
    right="model: openai:gpt-5-mini",
)


def malformed_model(model: str) -> Problem:
    """A text that can't be a model's name."""
    return LD701.problem(f"{model!r} is not a model's name")


LD702 = Code(
    "LD702",
    "Missing environment variable",
    "error",
    "A toolset's configuration, or the URL of a store, refers to a variable that is set neither in the environment nor "
    "in the project's `.env` or the file that `--env-file` names.",
    "set it before llm-do starts, in the project's .env, or in the file that --env-file names",
    wrong='"headers": {"Authorization": "Bearer ${LLM_DO_NO_SUCH_TOKEN}"}',
    right='"headers": {"Authorization": "Bearer ${PATH}"}',
)


def missing_variable(variable: str) -> Problem:
    """A variable in a toolset's `env` or `headers`, or in `threads.store`."""
    return LD702.problem(f"the environment variable {variable} is not set")


LD703 = Code(
    "LD703",
    "Secret exposed to commands",
    "error",
    "A shell's `env` names the environment variables that commands may see. A variable that looks like a secret can't "
    "be among them: what a command sees, a model can read.",
    "remove it from `env`; secrets never reach a command",
    wrong='"env": ["PAGER", "GITHUB_TOKEN"]',
    right='"env": ["PAGER"]',
)


def exposed_secret(variable: str) -> Problem:
    """A variable in a shell's `env`."""
    return LD703.problem(f"commands would see the variable `{variable}`, which looks like a secret")


LD704 = Code(
    "LD704",
    "Model name without a provider or a name",
    "error",
    "A model is named provider:name; only `local` and `test` stand alone. No provider can be found for this one, "
    "whatever is installed.",
    "write provider:name, such as openai:gpt-5-mini",
    wrong="model: gpt-5-mini",
    right="model: openai:gpt-5-mini",
)


def incomplete_model(model: str, reason: str, hint: str | None) -> Problem:
    """A name that no provider can have; the table of providers gives the reason."""
    return LD704.problem(f"the model `{model}` {reason}", hint)


LD705 = Code(
    "LD705",
    "Unknown provider",
    "warning",
    "No provider has this prefix: neither PydanticAI nor llm-do knows it, and no Python file of the project registers "
    "it. Only an application that registers it before it runs the project could use the model.",
    "correct the prefix; `llm-do models` lists the providers",
    wrong="model: opnai:gpt-5-mini",
    right="model: openai:gpt-5-mini",
)


def unknown_provider(model: str, reason: str, hint: str | None) -> Problem:
    """A name that only an application could give a meaning."""
    return LD705.problem(f"the model `{model}` {reason}", hint)


LD706 = Code(
    "LD706",
    "Dollar budget and a model without a known price",
    "warning",
    "`budget.cost_usd` is enforced with the price list that comes with PydanticAI. A request to a model whose name "
    "isn't in it is refused. `local`, `test` and `script:` cost nothing; a model registered by the project may report "
    "the cost in its responses.",
    "limit tokens or requests instead, or choose a model whose price is known",
    wrong='"runtime": {"budget": {"cost_usd": 0.5}}',
    right='"runtime": {"budget": {"total_tokens": 100000}}',
)


def unknown_price(model: str) -> Problem:
    """A model of a project with a budget in dollars."""
    return LD706.problem(f"no price is known for the model `{model}`, so the budget `cost_usd` can't be enforced")


LD707 = Code(
    "LD707",
    "Missing program of a server",
    "warning",
    "An MCP server is started by a program that isn't on this machine: not on the PATH or, if it is written with a "
    "slash, not below the project. Each word of the command is an item of its own.",
    "install it, or write the path that leads to it",
    wrong='"command": ["python3 server.py"]',
    right='"command": ["python3", "server.py"]',
)


def missing_program(program: str, words: Sequence[str] | None) -> Problem:
    """The program of a server; `words` if several were written as one."""
    if words is not None:
        hint = f"write each word as an item of its own: {json.dumps(words, ensure_ascii=False)}"
        return LD707.problem(f"there is no program {program!r}", hint)
    where = "" if "/" in program else " on the PATH"
    return LD707.problem(f"there is no program `{program}`{where}")


LD708 = Code(
    "LD708",
    "New code that no one has agreed to",
    "warning",
    "A model's command or server made this file, or changed it, without a person's approval of that very call. Loading "
    "it would let the model change what the next run does, so it counts as absent.",
    "look at it, then `llm-do approvals accept FILE`, or delete it",
    wrong='"files": {"more/helper.py": "shell: make"}',
    right='"files": {}',
)


def new_code(path: str, maker: str, listed: str) -> Problem:
    """A file that the link leaves out; `maker` says what made it, or the folder `listed` that it is in."""
    message = f"{path} was made by a model's tool ({maker}), and no one has agreed to it: it isn't loaded"
    return LD708.problem(message, f"look at it, then `llm-do approvals accept {shell_word(listed)}`, or delete it")


LD709 = Code(
    "LD709",
    "New manifest that no one has agreed to",
    "error",
    "A model's command or server made this manifest, or changed it, without a person's approval of that very call. It "
    "says what the project may do, so nothing runs with it.",
    "look at it, then `llm-do approvals accept FILE`, or delete it",
    wrong='"files": {"project.json": "shell: make"}',
    right='"files": {}',
)


def new_manifest(path: str, maker: str) -> Problem:
    """A manifest; `maker` says what made it."""
    message = f"{path} was made by a model's tool ({maker}), and no one has agreed to it"
    return LD709.problem(message, f"look at it, then `llm-do approvals accept {shell_word(path)}`, or delete it")


LD710 = Code(
    "LD710",
    "Folder that isn't trusted",
    "warning",
    "Looking at a project runs nothing of it unless its folder is trusted: its Python files weren't imported, so what "
    "they define is unknown. `--strict` reports it as a warning; with `--text-only` it stays a note.",
    "read the code, then `llm-do trust FOLDER`; in CI, `--trust` or LLM_DO_TRUST=1, or `--text-only` if it may not run",
    wrong='"python_files": ["tools.py"]',
    right='"python_files": []',
)


def left_out_code(notice: str) -> Problem:
    """What a command that only looks left out of a folder that isn't trusted, and how to include it."""
    what, _, how = notice.partition(": --trust")
    return LD710.problem(what, f"--trust{how}" if how else None)


LD712 = Code(
    "LD712",
    "Model alias that leads back to itself",
    "error",
    "An alias may stand for other aliases, of the manifest's `models` or of `[aliases]` in the person's configuration, "
    "as long as each comes to a model in the end.",
    "let one of them name a model, such as openai:gpt-5-mini",
    wrong='"models": {"fast": "small", "small": "fast"}',
    right='"models": {"fast": "small", "small": "openai:gpt-5-mini"}',
)


def circular_alias(names: Sequence[str]) -> Problem:
    """An alias, and the way from it back to itself."""
    return LD712.problem(f"the alias `{names[0]}` leads back to itself: {' -> '.join(names)}")


LD713 = Code(
    "LD713",
    "Model alias with the name of a provider",
    "error",
    "A word that names a provider, or a model that llm-do has (`local`, `script`, `test`), can't stand for something "
    "else: a reader would take it for what it usually is.",
    "choose another name for the alias",
    wrong='"models": {"local": "openai:gpt-5-mini"}',
    right='"models": {"small": "openai:gpt-5-mini"}',
)


def alias_of_provider(name: str) -> Problem:
    """An alias in the manifest."""
    return LD713.problem(f"the alias `{name}` would hide the provider or model of that name")


LD714 = Code(
    "LD714",
    "Package that isn't installed",
    "warning",
    "A model or a toolset needs a package that a plain installation of llm-do doesn't have, most often one of its "
    "extras. What doesn't use it runs all the same.",
    "install the package, as the hint says",
    wrong="model: mistral:large",
    right="model: openai:gpt-5-mini",
)


def missing_package(message: str, command: str) -> Problem:
    """What needs which package or extra, and the command that installs it."""
    return LD714.problem(message, f"install it with `{command}`")


LD715 = Code(
    "LD715",
    "Name that several packages publish",
    "error",
    "A toolset, or the prefix of a model, that neither the project nor llm-do has is looked up among the entry points "
    "of installed packages. Several have this one, and nothing says which is meant.",
    "uninstall all but one of the packages",
    wrong="toolsets: [lookup]",
    right="toolsets: [filesystem_cwd_ro]",
)


def published_twice(what: str, packages: Sequence[str]) -> Problem:
    """A toolset or a prefix, and the packages that publish it."""
    return LD715.problem(f"{what} is published by {' and '.join(packages)}")


LD716 = Code(
    "LD716",
    "Published name that can't be used",
    "error",
    "An installed package publishes a toolset or models by an entry point, but its import fails, or what it publishes "
    "isn't a toolset, or a function that makes one or a model.",
    "update or uninstall the package, or ask whoever publishes it",
    wrong="toolsets: [lookup]",
    right="toolsets: [filesystem_cwd_ro]",
)


def published_unusable(what: str, package: str, reason: str) -> Problem:
    """A toolset or a prefix, the package that publishes it, and why it can't be used."""
    return LD716.problem(f"{what} of {package} can't be used: {reason}")


LD720 = Code(
    "LD720",
    "Code that isn't the same twice",
    "warning",
    "An entry function, a function `(input, ctx)`, an `aggregate`, a validator and a function that makes instructions "
    "run again when a durable run is resumed. What they read from a clock, a random number, a request or a file may "
    "be something else then, so that the run can't be resumed. What `ctx.step` is given happens once, and its result "
    "is kept; in a run that isn't durable it is simply called. Tools may do all this: their results are kept.",
    'let it go through `await ctx.step("name", function)`, which does it once',
    wrong="return await ctx.call('writer', f'News at {time.time()}')",
    right="now = await ctx.step('now', time.time)",
)

_UNREPEATABLE = {
    "clock": "reads the clock",
    "random": "makes a random value",
    "request": "sends a request",
    "file": "reads files",
    "program": "runs a program",
    "terminal": "reads the terminal",
}


_NUMBERS = frozenset({"time", "time_ns", "monotonic", "monotonic_ns", "random"})
"""Functions without arguments that return a number, so that `ctx.step` may call them itself."""


def unrepeatable_call(name: str, kind: str, *, has_context: bool, plain: bool) -> Problem:
    """A call in code that runs again; `plain` if it has no arguments."""
    name = name if len(name) <= 60 else f"{name[:59]}…"
    if not has_context:
        hint = "do it where it happens once, in a tool or through `ctx.step`, and pass the result on"
    elif plain and name.rpartition(".")[2] in _NUMBERS:
        hint = f'write `await ctx.step("{kind}", {name})`, which does it once'
    else:
        hint = f'call it in a function that `await ctx.step("{kind}", function)` does once; it returns JSON data'
    return LD720.problem(f"`{name}` {_UNREPEATABLE[kind]} in code that runs again when a durable run is resumed", hint)


LD711 = Code(
    "LD711",
    "Malformed reference to a variable",
    "error",
    "In the configuration of a server and the URL of a store, `${NAME}` stands for a variable of the environment "
    "or of `.env`, and `${NAME:-default}` for one that may be missing. Anything else behind `${` would reach the "
    "server as it is.",
    "write `${NAME}` or `${NAME:-default}`",
    wrong='"headers": {"Authorization": "Bearer ${my token}"}',
    right='"headers": {"Authorization": "Bearer ${PATH}"}',
)


def stray_reference(text: str) -> Problem:
    """A `${` that no name follows."""
    return LD711.problem(f"`{text}` is no reference to an environment variable")
