"""Answers of servers that speak OpenAI's chat protocol, mended: what they leave out or write in their own way.

Everything here works on the JSON data of an answer, before the SDK and PydanticAI read it, so that an answer means the
same whether it was streamed or not.
"""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from llm_do.models.providers.chat.thinking_tags import ThinkingTags, close_thinking
from llm_do.models.providers.chat.tool_call_deltas import ToolCallDeltas, arguments_text
from llm_do.models.providers.provider_words import document_words, provider_words

__all__ = ["ChunkMender", "UnusableAnswerError", "error_in", "mend_completion"]

Data = dict[str, Any]

FINISH_REASONS = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit"), "length"),
    **dict.fromkeys(("safety", "refusal", "content_filtered", "guardrail_intervened", "blocklist"), "content_filter"),
}
"""Other words for the two reasons that mean an answer is incomplete."""

KINDS: dict[str, type] = {
    "service_tier": str,
    "system_fingerprint": str,
    "moderation": dict,
    "refusal": str,
    "annotations": list,
    "audio": dict,
    "reasoning": str,
    "reasoning_content": str,
    "logprobs": dict,
}
"""What an answer may have besides what it must have, with the JSON type of each; `optional_types` knows the rest."""

TOKEN_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")

MOST = 10**12
"""The largest plausible number of tokens, or time in seconds."""


class UnusableAnswerError(Exception):
    """An answer with status 200 that holds no answer.

    Args:
        message: The provider's words, or what is wrong.
        body: The error that the answer holds; None if it holds none.
    """

    def __init__(self, message: str, body: object) -> None:
        super().__init__(message)
        self.message = message
        self.body = body


def mend_completion(data: object, model: str) -> Data:
    """Return a complete answer with everything that the protocol demands.

    Args:
        data: The answer.
        model: The model that was asked, for a server that doesn't name it.

    Raises:
        UnusableAnswerError: It is an error, or holds no answer.

    Example:
        >>> mend_completion({"choices": [{"message": {"content": "Hi"}}]}, "m")["choices"][0]["finish_reason"]
        'stop'
    """
    choices = _choices(data)
    if not choices:
        raise UnusableAnswerError(_words(data), error_in(data))
    return {**_envelope(cast("Data", data), model), "object": "chat.completion", "choices": [_choice(choices[0])]}


def _choices(data: object) -> list[Data]:
    """Return the choices of an answer; none if it is an error."""
    if not isinstance(data, dict) or error_in(cast("object", data)):
        return []
    choices: object = cast("Data", data).get("choices")
    members = cast("list[object]", choices) if isinstance(choices, list) else []
    return [cast("Data", choice) for choice in members if isinstance(choice, dict)]


def _words(data: object) -> str:
    """What a person reads about an answer without choices."""
    if isinstance(data, str):
        return document_words(data)
    has_choices = isinstance(data, dict) and "choices" in data
    return provider_words(cast("object", data), any_form=not has_choices) or "the answer has no choices"


def error_in(data: object) -> object:
    """Return the error that an answer holds; None if it holds none."""
    return (cast("Data", data).get("error") or None) if isinstance(data, dict) else None


def _envelope(data: Data, model: str) -> Data:
    return {
        **_fitting(data),
        "id": _text(data.get("id")),
        "model": _text(data.get("model")) or model,
        "created": _number(data.get("created")),
        "usage": mend_usage(data.get("usage")),
    }


def _fitting(data: Data) -> Data:
    """Return data without optional fields whose value is none of theirs: they would make the whole answer invalid."""
    present = KINDS.keys() & data.keys()
    unfit = {name for name in present if data[name] is not None and not _fits(name, data[name])}
    return {name: value for name, value in data.items() if name not in unfit} if unfit else data


def _fits(name: str, value: object) -> bool:
    if not isinstance(value, KINDS[name]):
        return False
    if isinstance(value, str) or not value:
        return True
    from llm_do.models.providers.chat.optional_types import is_valid

    return is_valid(name, value)


def mend_usage(usage: object) -> Data | None:
    """Return token counts as whole numbers, without impossible ones; None if there are none.

    Example:
        >>> mend_usage({"prompt_tokens": 3, "completion_tokens": None})
        {'prompt_tokens': 3, 'completion_tokens': 0, 'total_tokens': 3}
        >>> mend_usage({"prompt_tokens": 3, "completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": -1}})
        {'prompt_tokens': 3, 'completion_tokens': 0, 'prompt_tokens_details': {'cached_tokens': 0}, 'total_tokens': 3}
    """
    if not isinstance(usage, dict):
        return None
    counts: Data = {
        name: _details(cast("Data", count)) if isinstance(count, dict) else count
        for name, count in cast("Data", usage).items()
        if isinstance(count, dict) or not name.endswith("_details")
    }
    tokens = {name: _number(counts.get(name)) for name in TOKEN_COUNTS}
    tokens["total_tokens"] = tokens["total_tokens"] or tokens["prompt_tokens"] + tokens["completion_tokens"]
    if not tokens["total_tokens"]:
        return None
    return {**counts, **tokens}


def _details(counts: Data) -> Data:
    return {name: _number(count) for name, count in counts.items() if isinstance(count, int | float)}


def _number(value: object) -> int:
    """A whole number; 0 for what isn't one, or isn't plausible."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST else 0


def _choice(choice: Data) -> Data:
    message = _message(choice)
    reason = mend_finish_reason(choice.get("finish_reason"), calls=bool(message.get("tool_calls")))
    if message.get("refusal") and (message["content"] or message["tool_calls"]):
        # What was said before a refusal counts, as in a stream, where it can't be taken back.
        del message["refusal"]
        reason = "content_filter"
    return {"logprobs": None, **_fitting(choice), "index": 0, "message": message, "finish_reason": reason}


def mend_finish_reason(reason: object, *, calls: bool) -> str:
    """Return why an answer ended; the answer is complete unless the server says that it isn't.

    Example:
        >>> mend_finish_reason("MAX_TOKENS", calls=False), mend_finish_reason(None, calls=True)
        ('length', 'tool_calls')
    """
    if isinstance(reason, str) and reason:
        return FINISH_REASONS.get(reason.lower(), reason)
    return "tool_calls" if calls else "stop"


def _message(choice: Data) -> Data:
    """Return a choice's message; some servers send the text alone, as the older protocol does."""
    found: object = choice.get("message") or choice.get("delta")
    message = dict(cast("Data", found)) if isinstance(found, dict) else {"content": choice.get("text")}
    message = _fitting(message)
    message["role"] = "assistant"
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = close_thinking(content)
    elif not isinstance(content, list):
        message["content"] = None
    calls = [_call(call) for call in _calls(message)]
    message.pop("function_call", None)
    message["tool_calls"] = calls or None
    return message


def _calls(message: Data) -> list[Data]:
    """Return a message's calls; the protocol had only one at first, under another name."""
    calls: object = message.get("tool_calls") or message.get("function_call") or []
    members = cast("list[object]", calls if isinstance(calls, list) else [calls])
    return [cast("Data", call) for call in members if isinstance(call, dict)]


def _call(call: Data) -> Data:
    function: object = call.get("function")
    source = cast("Data", function) if isinstance(function, dict) else call
    return {
        **call,
        "id": _text(call.get("id")) or f"call_{uuid4().hex}",
        "type": "function",
        "function": {"name": _text(source.get("name")), "arguments": arguments_text(source.get("arguments"))},
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class ChunkMender:
    """Mends the chunks of one streamed answer."""

    def __init__(self) -> None:
        self._envelope: Data = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": ""}
        """Everything of the latest chunk but its choices and usage."""
        self._calls = ToolCallDeltas()
        self._tags = ThinkingTags()
        self._usage: Data | None = None
        self._index: int | None = None
        """Which of several choices is the answer: the first that is sent."""
        self.is_finished = False
        """Whether the server has sent the reason why the answer ended."""

    def mend(self, chunk: Data) -> list[Data]:
        """Return the chunks that stand for one of the server's."""
        self._usage = mend_usage(chunk.get("usage")) or self._usage
        base = self._base(chunk)
        choice = self._own(_choices(chunk))
        if choice is None:
            return [{**base, "choices": []}]
        found: object = choice.get("delta") or choice.get("message")
        delta = dict(cast("Data", found)) if isinstance(found, dict) else {"content": choice.get("text")}
        delta = _fitting(delta)
        calls = [self._calls.mend(call) for call in _calls(delta)]
        delta.pop("function_call", None)
        delta["tool_calls"] = calls or None
        return [{**base, "choices": [part]} for part in self._parts(choice, delta)]

    def end(self) -> list[Data]:
        """Return the chunks that the server left out at the end of a complete answer."""
        chunks = [self._chunk({"content": piece}) for piece in self._tags.end()]
        if not self.is_finished:
            chunks.append(self._chunk({}, mend_finish_reason(None, calls=len(self._calls) > 0)))
        if self._usage is not None:
            chunks.append({**self._envelope, "choices": [], "usage": self._usage})
        return chunks

    def _own(self, choices: list[Data]) -> Data | None:
        """Return the choice that is the answer's; a server may send others along with it, a piece of each in turn."""
        for choice in choices:
            number: object = choice.get("index")
            if not isinstance(number, int):
                return choice
            if self._index is None:
                self._index = number
            if number == self._index:
                return choice
        return None

    def _base(self, chunk: Data) -> Data:
        """Everything of a chunk but its choices; usage comes once, at the end: some servers repeat it in each chunk."""
        known = {key: value for key, value in _fitting(chunk).items() if value is not None}
        for name, mend in (("id", _text), ("model", _text), ("created", _number)):
            if name in known:
                known[name] = mend(known[name])
        self._envelope = {**self._envelope, **known, "usage": None}
        return self._envelope

    def _parts(self, choice: Data, delta: Data) -> list[Data]:
        """The choices that stand for one: with a tag in the text, each piece of the text has its own."""
        reason = choice.get("finish_reason")
        ends = isinstance(reason, str) and bool(reason)
        self.is_finished |= ends
        part: Data = {
            "logprobs": None,
            **_fitting(choice),
            "index": 0,
            "delta": delta,
            "finish_reason": mend_finish_reason(reason, calls=False) if ends else None,
        }
        content = delta.get("content")
        if not isinstance(content, str):
            delta["content"] = content if isinstance(content, list) else None
            return [part]
        pieces = self._tags.feed(content)
        if ends or delta["tool_calls"]:
            pieces += self._tags.end()
        if pieces == [content]:
            return [part]
        delta["content"] = None
        return [*({"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces), part]

    def _chunk(self, delta: Data, reason: str | None = None) -> Data:
        return {**self._envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
