"""The steps that are Python: splitting the guest book, counting, and proofreading what the manager writes."""

from typing import Any


def entries(text: str) -> list[str]:
    """Split the guest book into its entries, which stand a blank line apart."""
    return [entry.strip() for entry in text.split("\n\n") if entry.strip()]


def tally(judged: list[dict[str, Any]]) -> dict[str, Any]:
    """Collect the complaints: the outputs of `judge` arrive as a list, in the order of the entries."""
    return {
        "entries": len(judged),
        "complaints": [{"room": each["room"], "topic": each["topic"]} for each in judged if each["mood"] == "bad"],
    }


def proofread(rooms: list[int], text: str) -> dict[str, Any]:
    """Check what a model is bad at: length, and that each room is named. What is missing goes back to the manager."""
    faults = [f"Name room {room}." for room in rooms if f"room {room}" not in text.lower()]
    if len(text.split()) > 60:
        faults.append("Use at most 60 words.")
    return {"approved": not faults, "rooms": rooms, "text": text, "faults": faults}


def print_letter(text: str, approved: bool, rooms: list[int], faults: list[str]) -> str:
    """Put the hotel's name above the approved letter."""
    return f"HOTEL AT THE HARBOUR\n\n{text}"


TOOLS = [entries, tally, proofread, print_letter]
