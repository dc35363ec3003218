"""Aliases of models, of a project and of a person, and the configuration that a person's are in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do import Project, run
from llm_do.errors import ModelUnavailableError
from llm_do.models.aliases import find_cycle, resolve_aliases
from llm_do.models.catalog import declared_aliases
from llm_do.models.choice import Choice, choose_model
from llm_do.models.user_config import UserConfig, config_file, load_user_config


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], UserConfig]:
    """Writes a person's configuration, and reads it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def write(text: str) -> UserConfig:
        file = tmp_path / "config" / "llm-do" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text)
        return load_user_config()

    return write


def write_project(root: Path, agent: str, manifest: str) -> Path:
    (root / "main.agent").write_text(f"---\nname: main\n{agent}\n---\nHelp.\n")
    (root / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]' + manifest + "}"
    )
    (root / "answers.yaml").write_text('- text: "scripted: {input}"\n')
    return root


def test_aliases_may_stand_for_lists_and_for_each_other() -> None:
    aliases = {"fast": "openai:gpt-5-mini", "best": ["anthropic:claude-sonnet-5-5", "fast"], "any": ["best", "fast"]}

    assert resolve_aliases("any", aliases) == ("anthropic:claude-sonnet-5-5", "openai:gpt-5-mini")
    assert resolve_aliases(["test", "fast"], aliases) == ("test", "openai:gpt-5-mini")
    assert resolve_aliases("openai:fast", aliases) == ("openai:fast",)


def test_an_alias_that_leads_back_to_itself_is_an_error_that_shows_the_way() -> None:
    aliases = {"a": "b", "b": ["test", "a"], "c": "a"}

    assert find_cycle("a", aliases) == ("a", "b", "a")
    assert find_cycle("c", aliases) is None
    with pytest.raises(ModelUnavailableError, match="'a' leads back to itself: c -> a -> b -> a"):
        resolve_aliases("c", aliases)


def test_paths_behind_an_alias_are_those_of_the_file_it_is_written_in(
    tmp_path: Path, configure: Callable[[str], UserConfig]
) -> None:
    config = configure('[aliases]\nmine = "script:mine.yaml"')
    assert config.file is not None

    assert resolve_aliases("theirs", {"theirs": "script:a.yaml"}, tmp_path) == (f"script:{tmp_path}/a.yaml",)
    assert resolve_aliases("mine", {}, tmp_path) == (f"script:{config.file.parent}/mine.yaml",)


def test_a_project_resolves_aliases_wherever_a_model_is_named(tmp_path: Path) -> None:
    scripted = '"models": {"fast": "script:answers.yaml"}'
    by_agent = write_project(tmp_path, "model: fast", f", {scripted}")
    assert run.sync(by_agent, "hi", record=False).output == "scripted: hi"

    by_list = write_project(tmp_path, "model: [fast, test]", f", {scripted}")
    assert run.sync(by_list, "hi", record=False).output == "scripted: hi"

    by_manifest = write_project(tmp_path, "", f', "model": "fast", {scripted}')
    assert run.sync(by_manifest, "hi", record=False).output == "scripted: hi"

    by_caller = write_project(tmp_path, "model: test", f", {scripted}")
    assert run.sync(by_caller, "hi", model="fast", record=False).output == "scripted: hi"
    assert run.sync(by_caller, "hi", models={"main": "fast"}, record=False).output == "scripted: hi"


def test_the_environment_may_name_an_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_project(tmp_path, "", ', "models": {"fast": "script:answers.yaml"}')
    monkeypatch.setenv("LLM_DO_MODEL", "fast")

    assert run.sync(root, "hi", record=False).output == "scripted: hi"


def test_a_summary_is_written_by_the_model_behind_an_alias(tmp_path: Path) -> None:
    compaction = "compaction: {strategies: [summarization], max_tokens: 10, preserve_recent: 1, summary_model: short}"
    models = '"models": {"short": "script:summary.yaml", "fast": ["script:answers.yaml", "test"]}'
    root = write_project(tmp_path, f"model: fast\n{compaction}", f", {models}")
    (root / "answers.yaml").write_text("".join(f'- text: "{word * 60}"\n' for word in ("one ", "two ", "six ")))
    (root / "summary.yaml").write_text('- text: "a summary"\n- text: "another summary"\n')
    first = run.sync(root, "first " * 60, record=False)
    second = run.sync(root, "second " * 60, record=False, execution_context=first.execution_context)

    third = run.sync(root, "third", record=False, execution_context=second.execution_context)

    assert not [text for text in third.warnings if "could not be summarised" in str(text)]
    assert third.usage.requests == 2


def test_a_list_of_models_has_the_room_of_its_smallest(tmp_path: Path) -> None:
    root = write_project(tmp_path, "model: [script:answers.yaml, test]\ncompaction: {summary_model: test}", "")

    assert run.sync(root, "hi", record=False).output == "scripted: hi"


def test_an_agent_is_compatible_with_the_models_behind_an_alias() -> None:
    def choose(compatible: str) -> Choice:
        return choose_model("main", "fast", environ={}, compatible=[compatible], aliases={"fast": "openai:gpt-5-mini"})

    assert choose("openai:*").names == ("openai:gpt-5-mini",)
    with pytest.raises(ModelUnavailableError, match="'openai:gpt-5-mini', only with anthropic"):
        choose("anthropic:*")


def test_the_configured_model_comes_after_everything_that_names_one_and_before_keys(
    configure: Callable[[str], UserConfig],
) -> None:
    configure('model = ["mine", "test"]\n[aliases]\nmine = "openai:gpt-5-mini"\nfast = "openai:by-person"')
    key = {"ANTHROPIC_API_KEY": "k"}

    assert choose_model("main", environ=key) == Choice(("openai:gpt-5-mini", "test"), "user")
    assert choose_model("main", environ=key, manifest="test").origin == "manifest"
    assert choose_model("main", environ={**key, "LLM_DO_MODEL": "mine"}).origin == "environment"
    assert choose_model("main", "fast", environ=key).names == ("openai:by-person",)
    assert choose_model("main", "fast", environ=key, aliases={"fast": "openai:by-project"}).names == (
        "openai:by-project",
    )


def test_a_persons_alias_may_be_used_by_a_projects_files(
    tmp_path: Path, configure: Callable[[str], UserConfig]
) -> None:
    configure('[aliases]\nmine = "test"')
    root = write_project(tmp_path, "model: mine", "")

    assert Project.load(root).registry["main"].value.model == "mine"
    assert run.sync(root, "hi", record=False).output == "success (no tool calls)"


def test_what_is_wrong_in_a_configuration_has_a_line_and_the_rest_is_used(
    configure: Callable[[str], UserConfig],
) -> None:
    config = configure(
        'modle = "test"\n'
        "color = 3\n"
        "model = []\n"
        "\n"
        "[aliases]\n"
        'good = "test"\n'
        'openai = "test"\n'
        '"two words" = "test"\n'
        'bare = "gpt-5"\n'
        "number = 5\n"
        'dangling = "goood"\n'
        "[approvals]\n"
        'allow = ["*"]\n'
    )

    assert [(fault.line, fault.message) for fault in config.faults] == [
        (1, "unknown key `modle`"),
        (
            12,
            "`approvals` can't be configured for all projects: that would allow calls in "
            "projects that you haven't reviewed",
        ),
        (7, "the alias `openai` would hide a provider of that name"),
        (8, "`two words` can't be an alias"),
        (9, "the model `gpt-5` names no provider"),
        (10, "`number` must be a model's name, or a list of names"),
        (11, "the model `goood` names no provider"),
        (3, "`model` must be a model's name, or a list of names"),
        (2, "`color` must be auto or never"),
    ]
    assert [fault.hint for fault in config.faults if fault.line in (1, 11)] == [
        "did you mean `model`?",
        "did you mean the alias `good`?",
    ]
    assert [fault.line for fault in config.faults if fault.grave] == [12]
    assert (config.model, config.aliases, config.color) == ((), {"good": ("test",)}, "auto")


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b'model = "test"\nx = [\n', 3, "not valid TOML"),
        (b'model = "test"\nmodel = "test"\n', 2, "not valid TOML: Cannot overwrite a value"),
        (b'model = "\xff"', 1, "not text in UTF-8"),
    ],
)
def test_a_broken_configuration_counts_as_none(
    configure: Callable[[str], UserConfig], data: bytes, line: int, message: str
) -> None:
    file = configure("").file
    assert file is not None
    file.unlink()
    file.write_bytes(data)

    config = load_user_config()

    assert (config.exists, config.model) == (True, ())
    assert [fault.line for fault in config.faults] == [line]
    assert config.faults[0].message.startswith(message)


def test_a_folder_in_place_of_the_file_is_a_fault(configure: Callable[[str], UserConfig]) -> None:
    file = configure("").file
    assert file is not None
    file.unlink()
    file.mkdir()

    assert load_user_config().faults[0].message.startswith("can't be read: ")


def test_a_changed_configuration_is_read_again(configure: Callable[[str], UserConfig]) -> None:
    assert configure('model = "test"').model == ("test",)
    assert configure('model = "local"\ncolor = false').model == ("local",)
    assert load_user_config().color == "never"


def test_a_relative_folder_of_configurations_is_ignored() -> None:
    assert config_file({"XDG_CONFIG_HOME": "here"}) == Path.home() / ".config" / "llm-do" / "config.toml"


def test_aliases_are_listed_with_what_they_stand_for(configure: Callable[[str], UserConfig]) -> None:
    configure('[aliases]\nmine = "openai:gpt-5-mini"\nround = "about"\nabout = "round"')

    declared = {"fast": ["mine", "test"], "own": "acme_x:small"}
    found = {info.name: (info.usable, info.note) for info in declared_aliases(declared, {})}

    assert found["fast"] == (True, "openai:gpt-5-mini, test, by `models` of project.json")
    assert found["mine"] == (False, "openai:gpt-5-mini, by your config.toml, which `llm-do models --all` explains")
    assert found["own"][1] == "acme_x:small, by `models` of project.json, if a Python file of the project registers it"
    assert "leads back to itself" in found["round"][1]
