"""Recognise secrets: environment variables by their names and values, files by their paths.

The linker checks the names that a manifest passes to a shell, the shell checks names and values before it passes them
on, and the journal checks values alone, since anything it redacts by mistake is missing from the conversation. The list
of secret files is the only one: file tools, commands and the sandbox all use it.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["SECRET_FILES", "is_secret", "is_secret_value", "names_secret_file", "secret_file"]

_NAMES = """
    .env* *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519
    id_ed25519_sk .ssh .gnupg .aws .azure .kube .config/gcloud .config/gh .docker/config.json .dockercfg
    .git/config .git/modules/*/config .git-credentials .netrc _netrc .npmrc .yarnrc.yml .pypirc .pgpass .my.cnf
    .htpasswd .boto .s3cfg .terraformrc .vault-token .cargo/credentials* .gem/credentials credentials
    credentials.csv credentials.json credentials.toml credentials.xml credentials.yaml credentials.yml
    client_secret*.json service-account*.json service_account*.json
    secrets.json secrets.toml secrets.yaml secrets.yml
"""

SECRET_FILES: tuple[str, ...] = tuple(_NAMES.split())
"""Files and folders that may hold secrets, at any depth: a glob for each name, several names in a row with `/`.

An entry that begins with a dot or a wildcard also stands for everything in a folder of that name.
"""

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


def secret_file(path: str) -> str | None:
    """Return the entry of `SECRET_FILES` that a path below some folder matches, or None if it matches none.

    Example:
        >>> secret_file("web/.env.local"), secret_file("home/.ssh/config"), secret_file("docs/keys.md")
        ('.env*', '.ssh', None)
    """
    if _any_secret_file().search(path) is None:
        return None
    return next(entry for entry in SECRET_FILES if re.search(_expression(entry), path, re.IGNORECASE))


def names_secret_file(word: str) -> bool:
    """Whether a word of a command is the path of a secret file, or contains one as an option's value.

    The script `s/.env/x/` isn't one: only the end of a path counts, and the folder that it begins with.

    Example:
        >>> [names_secret_file(word) for word in (".env", "--file=a/.npmrc", "-F.env", ".ssh/config", "s/.env/x/")]
        [True, True, True, True, False]
    """
    parts = [word, *_VALUES.split(word)[1:]]
    if word.startswith("-") and not word.startswith("--"):
        parts += [word[at:] for at in range(2, min(len(word), _MOST_LETTERS))]
    return any(_any_secret_file().search(part) is not None and _is_named(part) for part in parts)


_VALUES = re.compile(r"[=:,@]")
_MOST_LETTERS = 34


def _is_named(path: str) -> bool:
    names = [name for name in path.split("/") if name not in ("", ".")]
    ends = (names[:1], names[-1:])
    return any(map(secret_file, map("".join, ends))) or "/" in (secret_file("/".join(names[-2:])) or "")


@cache
def _any_secret_file() -> re.Pattern[str]:
    return re.compile("|".join(map(_expression, SECRET_FILES)), re.IGNORECASE)


def _expression(entry: str) -> str:
    name = "[^/]*".join(map(re.escape, entry.split("*")))
    return rf"(?:^|/){name}(?=/|$)" if entry.startswith((".", "*")) else rf"(?:^|/){name}$"
