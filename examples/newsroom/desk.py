"""What is code in the newsroom: how two opinions become one input, and the last step."""

from typing import Any

from llm_do import AgentArgs, CallContext

__all__ = ["headline"]


class Notes(AgentArgs):
    """What the writer is given."""

    facts: str
    style: str

    def prompt_messages(self) -> list[Any]:
        return [f"Facts: {self.facts}\nStyle: {self.style}"]


def notes(outputs: list[str]) -> Notes:
    """The outputs of the two members, in the order the flow names them, whoever ended first."""
    facts, style = outputs
    return Notes(facts=facts, style=style)


def headline(input: dict[str, Any], ctx: CallContext) -> str:
    """Put the headline above the text: `writer` answers with fields, so that no text is taken apart here."""
    return f"{input['headline'].upper()}\n\n{input['text']}"
