"""`--otel`: OpenTelemetry spans of runs, agents, requests and tools, exported as the environment says."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from llm_do.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["switch_on"]

_HINT = "pip install 'llm-do[otel]'"


def switch_on() -> None:
    """Instrument every agent, with an exporter by `OTEL_TRACES_EXPORTER` (`otlp`, `console`, `none`; default `otlp`).

    Where spans go and how they are named (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, ...) is read by
    OpenTelemetry itself.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError("--otel needs OpenTelemetry, which isn't installed", hint=_HINT) from error
    os.environ.setdefault("OTEL_SERVICE_NAME", "llm-do")
    provider = TracerProvider(shutdown_on_exit=False)
    for name in (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        exporter = _exporter(name.strip())
        if exporter is not None:
            provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    atexit.register(provider.shutdown)
    from pydantic_ai import Agent, InstrumentationSettings

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


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
        raise UsageError("the OTLP exporter isn't installed", hint=_HINT) from error
    return OTLPSpanExporter()
