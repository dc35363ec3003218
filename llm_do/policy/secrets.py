"""Recognise secrets by the names and values of environment variables.

The linker checks the names that a manifest passes to a shell, the shell checks names and values before it passes them
on, and the journal checks values alone, since anything it redacts by mistake is missing from the conversation.
"""

from __future__ import annotations

import re

__all__ = ["is_secret", "is_secret_value"]

_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS(WORD|WD|PHRASE|_|$)|PWD_|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|SIGNATURE|WEBHOOK|DSN"
    r"|(^|_)(PAT|PW)($|_)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"://[^/\s:@]*:[^/\s@]+@"
    r"|\b(sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|hf|npm|pypi)[-_][A-Za-z0-9_-]{12,}"
    r"|\bgithub_pat_|\bAKIA[0-9A-Z]{12,}|\bAIza[0-9A-Za-z_-]{20,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.|-----BEGIN "
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether an environment variable looks like a secret, by its name or its value.

    Example:
        >>> is_secret("OPENAI_API_KEY"), is_secret("PAGER"), is_secret("DB", "pg://me:pw@host/x")
        (True, False, True)
    """
    return _SECRET_NAME.search(name) is not None or is_secret_value(value)


def is_secret_value(value: str) -> bool:
    """Whether a value has the form of a key or contains a URL with a password.

    Example:
        >>> is_secret_value("ghp_0123456789abcdef"), is_secret_value("a thing")
        (True, False)
    """
    return _SECRET_VALUE.search(value) is not None
