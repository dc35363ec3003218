"""What the clerk can do. Nothing allows it: a person is asked before each letter."""


def send_letter(text: str) -> str:
    """Send a letter.

    Args:
        text: The whole letter.
    """
    return f"a letter of {len(text.split())} words is in the post"


TOOLS = [send_letter]
