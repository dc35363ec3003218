"""The newsroom's Python: joins two opinions into one input, and provides the last step."""

from typing import Any

from llm_do import AgentArgs, CallContext

__all__ = ["headline"]


class Notes(AgentArgs):
    """The writer's input."""

    facts: str
    style: str

    def prompt_messages(self) -> list[Any]:
        return [f"Facts: {self.facts}\nStyle: {self.style}"]


def notes(outputs: list[str]) -> Notes:
    """Join the outputs of the two members, in the order in which the flow names them."""
    facts, style = outputs
    return Notes(facts=facts, style=style)


def headline(input: dict[str, Any], ctx: CallContext) -> str:
    """Put the headline above the text: `writer` answers with fields, so there is no text to parse."""
    return f"{input['headline'].upper()}\n\n{input['text']}"
