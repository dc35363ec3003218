"""The names of an input's fields, in errors, on the command line and in a chat."""

from __future__ import annotations

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from llm_do.errors import InputError
from llm_do.project.inputs import describe_input, input_names, to_input


class Aliased(BaseModel):
    projectId: str = Field(alias="project")  # noqa: N815
    several: int = Field(1, validation_alias=AliasChoices("count", "number"))


class Both(Aliased):
    model_config = ConfigDict(populate_by_name=True)


class ByName(Aliased):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)


@pytest.mark.parametrize(
    ("model", "shown", "names"),
    [
        (Aliased, "project: str, count: int (optional)", ["project", "count", "number"]),
        (Both, "project: str, count: int (optional)", ["project", "projectId", "count", "number", "several"]),
        (ByName, "projectId: str, several: int (optional)", ["projectId", "several"]),
    ],
)
def test_an_input_is_described_by_the_names_it_accepts(model: type[BaseModel], shown: str, names: list[str]) -> None:
    assert describe_input(model) == shown
    assert list(input_names(model)) == names
    first = names[0]
    assert to_input(model, {first: "x"}).model_dump()["projectId"] == "x"
    with pytest.raises(InputError) as caught:
        to_input(model, {})
    assert caught.value.hint == f"It takes {shown}."
