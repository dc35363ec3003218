"""The clerk's tool. No rule allows it, so a person has to approve each letter."""


def send_letter(text: str) -> str:
    """Send a letter.

    Args:
        text: The whole letter.
    """
    return f"a letter of {len(text.split())} words is in the post"


TOOLS = [send_letter]
