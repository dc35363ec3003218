"""The names that `import llm_do` offers: sorted, loaded on demand, and nothing heavy before that."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import llm_do
from tests.support.tables import each_row

HEAVY = (
    "pydantic",
    "pydantic_ai",
    "pydantic_core",
    "typer",
    "rich",
    "yaml",
    "jsonschema",
    "openai",
    "anthropic",
    "httpx",
    "immutables",
    "asyncio",
)

NAMED_BY_THE_CONTRACT = {
    "AgentArgs",
    "AgentEntry",
    "AgentSpec",
    "AgentToolset",
    "ApprovalDecision",
    "ApprovalRequest",
    "ApprovalToolset",
    "Attachment",
    "CallContext",
    "EventBus",
    "FunctionEntry",
    "HookPoint",
    "NullModel",
    "Project",
    "PromptInput",
    "Runtime",
    "DynamicStr",
    "Swarm",
    "Tool",
    "ToolError",
    "Toolkit",
    "Update",
    "ToolsetDef",
    "ToolsetFunc",
    "register_model_factory",
    "run",
    "tool",
    "BatchBudget",
    "BudgetError",
    "DepthLimitError",
    "LinkError",
    "LoopError",
    "ModelBehaviourError",
    "RunTimeoutError",
    "StepLimitError",
}


def imported_by(code: str) -> list[str]:
    """Return the heavy modules loaded after running code in a fresh interpreter."""
    script = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_list_of_names_is_sorted_and_complete() -> None:
    assert llm_do.__all__ == sorted(set(llm_do.__all__))
    assert set(llm_do.__all__) >= NAMED_BY_THE_CONTRACT
    assert dir(llm_do) == sorted(dir(llm_do))
    assert set(dir(llm_do)) >= set(llm_do.__all__)


@each_row("package", ["llm_do", "llm_do.flows", "llm_do.threads", "llm_do.toolkits"])
def test_type_checkers_see_the_names_that_there_are(package: str) -> None:
    module = importlib.import_module(package)
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    seen = re.findall(r"\b(\w+) as \1\b", source)
    assert sorted(seen) == module.__all__


@each_row("name", llm_do.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(llm_do, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Runtimes"):
        llm_do.Runtimes  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert imported_by("import llm_do") == []


def test_errors_import_nothing_heavy() -> None:
    assert imported_by("import llm_do.errors, llm_do.tools, llm_do.diagnostics.diagnostic, llm_do.policy.values") == []


def modules() -> list[str]:
    return sorted(
        info.name for info in pkgutil.walk_packages(llm_do.__path__, "llm_do.") if not info.name.endswith("__main__")
    )


@each_row("name", [name for name in modules() if ".cli" not in name])
def test_the_names_of_every_module_are_sorted_and_exist(name: str) -> None:
    module = importlib.import_module(name)
    public = getattr(module, "__all__", None)
    if public is None:
        return
    constants = [each for each in public if each.isupper()]
    assert list(public) in (sorted(public), constants + [each for each in sorted(public) if each not in constants])
    for each in public:
        assert hasattr(module, each)


SUCCESSORS = {
    "Agent": "AgentSpec",
    "ConversationContext": "RunResult.messages",
    "ContextManager": "compaction",
    "Context": "llm_do.toolkits",
    "DynamicArray": "llm_do.toolkits",
    "ParallelGroup": "llm_do.flows",
    "SwarmNode": "llm_do.flows",
    "ThreadConfig": "llm_do.threads",
    "ConversationManager": "llm_do.threads",
    "UserMessage": "llm_do.messages",
    "ToolResult": "llm_do.messages",
    "StreamEvent": "llm_do.Event",
    "IToolExecutor": "llm_do.Tool",
}


@each_row("name", SUCCESSORS)
def test_a_name_of_the_past_says_what_it_is_called_now(name: str) -> None:
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'llm_do': .*{SUCCESSORS[name]}"):
        exec(f"from llm_do import {name}")  # noqa: S102
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{SUCCESSORS[name]}"):
        getattr(llm_do, name)
    assert not hasattr(llm_do, name)


def test_a_name_that_never_was_is_an_ordinary_import_error() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'Nonsense' from 'llm_do' \("):
        exec("from llm_do import Nonsense")  # noqa: S102
