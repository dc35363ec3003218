"""`<think>` tags in the text of a chat answer, found in a stream as they are found in a complete answer."""

from __future__ import annotations

__all__ = ["ThinkingTags", "close_thinking"]

OPEN, CLOSE = "<think>", "</think>"


def close_thinking(text: str) -> str:
    """Return a complete answer in which leading thinking is closed and no space surrounds it.

    Example:
        >>> close_thinking("<think>hm</think>\\n\\nYes"), close_thinking("<think>hm"), close_thinking("a <think> b")
        ('<think>hm</think>Yes', '<think>hm</think>', 'a  b')
    """
    if OPEN not in text:
        return text
    tags = ThinkingTags()
    pieces = [*tags.feed(text), *tags.end()]
    return "".join(pieces) + (CLOSE if tags.is_open else "")


class ThinkingTags:
    """Splits streamed text so that each tag is a piece of its own, which is how PydanticAI recognizes one.

    What follows a tag at the beginning of an answer is thinking, and passes on as it comes. Elsewhere a tag without its
    counterpart is no tag, as in a complete answer, so what follows it is held back until that is known.

    Example:
        >>> tags = ThinkingTags()
        >>> tags.feed("<th"), tags.feed("ink>hm</think>\\n\\nYes"), tags.end()
        ([], ['<think>', 'hm', '</think>', 'Yes'], [])
    """

    def __init__(self) -> None:
        self.is_open = False
        """Whether thinking at the beginning hasn't ended yet."""
        self._leading = True
        self._thought = False
        self._held: list[str] = []
        self._tail = ""

    def feed(self, text: str) -> list[str]:
        """Return the pieces that are certain now."""
        if not (self._held or self._leading or self.is_open or "<" in text):
            return [text]
        if self._held:
            self._held.append(text)
            self._tail = self._tail[-len(CLOSE) :] + text
            if self._held[0].startswith(OPEN) and CLOSE not in self._tail:
                return []
            text = "".join(self._held)
            self._held = []
        pieces: list[str] = []
        while text:
            if self.is_open:
                text = self._read_thinking(text, pieces)
            elif self._leading:
                text = self._read_beginning(text, pieces)
            else:
                text = self._read_answer(text, pieces)
        return pieces

    def end(self) -> list[str]:
        """Return what was held back, once the answer is complete."""
        held, self._held = "".join(self._held), []
        held = held.removeprefix(OPEN)
        return [held] if held else []

    def _read_beginning(self, text: str, pieces: list[str]) -> str:
        start = text.lstrip()
        if self._thought:
            text = start
        if start.startswith(OPEN):
            pieces.append(OPEN)
            self.is_open = self._thought = True
            return start[len(OPEN) :]
        if OPEN.startswith(start):
            self._held = [text] if text else []
            return ""
        self._leading = False
        return text

    def _read_thinking(self, text: str, pieces: list[str]) -> str:
        thinking, tag, rest = text.partition(CLOSE)
        if not tag:
            thinking = self._hold_partial(text, CLOSE)
        if thinking:
            pieces.append(thinking)
        if tag:
            pieces.append(CLOSE)
            self.is_open = False
        return rest

    def _read_answer(self, text: str, pieces: list[str]) -> str:
        before, tag, rest = text.partition(OPEN)
        if not tag:
            before = self._hold_partial(text, OPEN)
        if before:
            pieces.append(before)
        if not tag:
            return ""
        thinking, closing, after = rest.partition(CLOSE)
        if not closing:
            self._held, self._tail = [tag + rest], rest
            return ""
        pieces += [tag, thinking, closing] if thinking else [tag, closing]
        return after

    def _hold_partial(self, text: str, tag: str) -> str:
        """Hold back the end of a text if a tag may begin there; return the rest."""
        for length in range(min(len(tag) - 1, len(text)), 0, -1):
            if tag.startswith(text[-length:]):
                self._held = [text[-length:]]
                return text[:-length]
        return text
