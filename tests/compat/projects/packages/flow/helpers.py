import main

__all__ = ["LIMIT", "shout"]

LIMIT = 3


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def describe() -> str:
    return f"{main.TITLE} of {LIMIT}"
