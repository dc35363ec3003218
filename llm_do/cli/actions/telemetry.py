"""`--otel`: OpenTelemetry spans of runs, agents, requests and tools, exported as the environment says."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from llm_do._extras import missing_extra
from llm_do.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["switch_on"]

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def switch_on() -> None:
    """Instrument every agent, with an exporter by `OTEL_TRACES_EXPORTER` (`otlp`, `console`, `none`; default `otlp`).

    Spans have no content (prompts, answers, arguments, results) unless `_CONTENT` is `true` in the environment; secrets
    are then removed from it. Where spans go and how they are named (`OTEL_EXPORTER_OTLP_ENDPOINT`,
    `OTEL_SERVICE_NAME`, ...) is read by OpenTelemetry itself.

    Raises:
        UsageError: The extra isn't installed, or a variable has a value that OpenTelemetry refuses.
    """
    os.environ.setdefault("OTEL_SERVICE_NAME", "llm-do")
    names = (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(shutdown_on_exit=False)
        for exporter in filter(None, map(_exporter, map(str.strip, names))):
            provider.add_span_processor(BatchSpanProcessor(_without_secrets(exporter)))
    except ImportError as error:
        raise _missing() from error
    except (ValueError, RuntimeError, OSError) as error:  # importing it reads some of its variables too
        raise UsageError(
            f"OpenTelemetry can't be set up: {error}", hint="Correct the OTEL_* variables of the environment."
        ) from error
    trace.set_tracer_provider(provider)
    atexit.register(provider.shutdown)
    from pydantic_ai import Agent, InstrumentationSettings

    content = os.environ.get(_CONTENT, "").strip().lower() in ("true", "1", "yes", "on")
    Agent.instrument_all(
        InstrumentationSettings(
            tracer_provider=provider,
            include_content=content,
            include_binary_content=content,
            include_model_request_parameters=content,
        )
    )


def _missing() -> UsageError:
    missing = missing_extra("otel", "`--otel`")
    return UsageError(missing.message, hint=missing.hint)


def _without_secrets(exporter: SpanExporter) -> SpanExporter:
    """An exporter that removes secrets from spans before it passes them on."""
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from llm_do.runtime.record.redaction import redactor

    def clean(values: Mapping[str, Any] | None, redact: Callable[[str], str]) -> dict[str, Any]:
        return {name: _redacted(value, redact) for name, value in (values or {}).items()}

    class Redacting(SpanExporter):
        """Passes on spans without secrets."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            redact = redactor()  # only now: what a project's files keep secret is known once it was linked
            return exporter.export([self._clean(span, redact) for span in spans])

        def _clean(self, span: ReadableSpan, redact: Callable[[str], str]) -> ReadableSpan:
            status = span.status
            if status.description is not None:
                status = type(status)(status.status_code, redact(status.description))
            return ReadableSpan(
                redact(span.name),
                span.context,
                span.parent,
                span.resource,
                clean(span.attributes, redact),
                [Event(event.name, clean(event.attributes, redact), event.timestamp) for event in span.events],
                span.links,
                span.kind,
                status=status,
                start_time=span.start_time,
                end_time=span.end_time,
                instrumentation_scope=span.instrumentation_scope,
            )

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    return Redacting()


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [_redacted(item, redact) for item in cast("Sequence[Any]", value)]
    return value


def _exporter(name: str) -> SpanExporter | None:
    if name == "none":
        return None
    if name == "console":
        import sys

        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if name != "otlp":
        raise UsageError(f"OTEL_TRACES_EXPORTER names {name!r}", hint="Use otlp, console or none, separated by commas.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise _missing() from error
    return OTLPSpanExporter()
