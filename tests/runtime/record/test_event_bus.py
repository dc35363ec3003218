"""An application's own events: delivery in order, exceptions and cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import EventBus


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_exception_in_an_application_event_subscriber_is_logged_and_not_raised(
    kind: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    bus = EventBus()
    received: list[int] = []

    def broken(**data: Any) -> None:
        raise error

    async def broken_later(**data: Any) -> None:
        raise error

    bus.on("step", broken if kind == "sync" else broken_later)
    bus.on("step", lambda step: received.append(step))
    asyncio.run(bus.emit("step", step=1))

    assert received == [1]
    assert "a subscriber of 'step' failed" in caplog.text


def test_cancelling_the_emitter_of_an_application_event_propagates() -> None:
    bus = EventBus()

    async def cancelled() -> bool:
        entered = asyncio.Event()

        async def slow() -> None:
            entered.set()
            await asyncio.Event().wait()

        bus.on("step", slow)
        emitting = asyncio.create_task(bus.emit("step"))
        await entered.wait()
        emitting.cancel()
        await asyncio.wait([emitting])
        return emitting.cancelled()

    assert asyncio.run(cancelled())


def test_an_application_event_reaches_its_subscribers_in_order() -> None:
    bus = EventBus()
    received: list[str] = []

    async def slow(**data: Any) -> None:
        await asyncio.sleep(0)
        received.append(f"slow {data['step']}")

    def broken(**data: Any) -> None:
        raise ValueError("no")

    def quick(step: int) -> None:
        received.append(f"quick {step}")

    for callback in (slow, broken, quick):
        bus.on("step", callback)
    asyncio.run(bus.emit("step", step=1))
    bus.off("step", slow)
    bus.off("step", slow)
    asyncio.run(bus.emit("step", step=2))
    asyncio.run(bus.emit("unheard", step=3))

    assert received == ["slow 1", "quick 1", "quick 2"]
