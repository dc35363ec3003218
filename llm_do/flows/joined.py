"""Outputs that were joined: those of parallel members, or of the items of a list, as one text and as a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.errors import LlmDoError
from llm_do.text.output_text import output_text

__all__ = ["JoinedText", "MemberFailure"]


@frozen
class MemberFailure:
    """Takes the place of a failed parallel member's output if `on_error` is `collect`.

    Args:
        name: The member's name, or its expression.
        error: Why it failed.
    """

    name: str
    error: Exception

    def __str__(self) -> str:
        reason = self.error.message if isinstance(self.error, LlmDoError) else str(self.error)
        return f"{self.name} failed: {reason}"


class JoinedText(str):
    """The text of several outputs, which also holds the outputs themselves.

    It is a string wherever text is expected. The next step gets the list if that is what it takes.

    Args:
        text: The joined text.
        outputs: The outputs, in declared order.

    Example:
        >>> joined = JoinedText.of([{"total": 3}, "none"], separator=" / ")
        >>> joined
        '{"total": 3} / none'
        >>> joined.outputs
        ({'total': 3}, 'none')
    """

    __slots__ = ("outputs",)

    outputs: tuple[Any, ...]

    def __new__(cls, text: str, outputs: Iterable[Any]) -> JoinedText:
        """Create it from the text and the outputs."""
        joined = super().__new__(cls, text)
        joined.outputs = tuple(outputs)
        return joined

    def __getnewargs__(self) -> tuple[str, tuple[Any, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return what a copy is created from."""
        return str(self), self.outputs

    @classmethod
    def of(cls, outputs: Iterable[Any], separator: str) -> JoinedText:
        """Join outputs.

        Args:
            outputs: The outputs, in declared order.
            separator: What stands between their texts.

        Returns:
            The text, with the outputs.
        """
        outputs = tuple(outputs)
        return cls(separator.join(output_text(output) for output in outputs), outputs)

    def as_list(self) -> list[Any]:
        """List the outputs, a failure as the text that says what failed."""
        return [str(output) if isinstance(output, MemberFailure) else output for output in self.outputs]
