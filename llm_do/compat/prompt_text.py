"""A prompt as text, as 0.3 shows it."""

from __future__ import annotations

from collections.abc import Sequence

from llm_do.project.inputs import Attachment, PromptContent

__all__ = ["get_display_text"]


def get_display_text(messages: Sequence[PromptContent]) -> str:
    """The text of a prompt for people: text as it is, anything else named in brackets.

    Example:
        >>> get_display_text(["Look at this:", Attachment("photo.png")])
        'Look at this:\\n[photo.png]'
    """
    shown: list[str] = []
    for part in messages:
        if isinstance(part, str):
            shown.append(part)
        elif isinstance(part, Attachment):
            shown.append(f"[{part.path}]")
        else:
            shown.append(f"[{type(part).__name__}]")
    return "\n".join(shown)
