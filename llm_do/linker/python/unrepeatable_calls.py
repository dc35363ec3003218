"""Which functions of Python's and of well-known libraries aren't the same twice, by their dotted paths."""

from __future__ import annotations

import ast
import re
from typing import Literal, TypeAlias

__all__ = ["MENTIONED", "Kind", "is_seedable", "kind_of"]

Kind: TypeAlias = Literal["clock", "random", "request", "file", "program", "terminal"]

_CLOCKS = frozenset(
    {
        *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.clock_gettime"),
        *("time.clock_gettime_ns", "asyncio.get_event_loop().time", "asyncio.get_running_loop().time"),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
        *("pendulum.now", "pendulum.today", "arrow.now", "arrow.utcnow", "pandas.Timestamp.now"),
        *("django.utils.timezone.now", "pandas.Timestamp.today"),
    }
)
_CLOCKS_WITHOUT_ARGUMENTS = {
    "time.localtime": 0,
    "time.gmtime": 0,
    "time.ctime": 0,
    "time.asctime": 0,
    "time.strftime": 1,
}
"""Functions that read the clock if they have no more arguments than these."""

_RANDOM = frozenset({"os.urandom", "os.getrandom", *(f"uuid.uuid{number}" for number in (1, 4, 6, 7, 8))})
_SEEDED = re.compile(r"(random\.Random|numpy\.random\.(default_rng|RandomState|Generator|SeedSequence|PCG64))$")
_NOT_RANDOM = re.compile(r"(random\.(seed|getstate|setstate|Random\(\).*)|numpy\.random\.(seed|\w+\(\).*))$")

_REQUESTS = re.compile(
    r"(requests|httpx|urllib3|aiohttp|smtplib|ftplib|imaplib|poplib|telnetlib|websockets?|boto3|botocore|paramiko"
    r"|urllib\.request|http\.client|xmlrpc\.client)\."
)
_NO_REQUEST = frozenset(
    {
        *("build_request", "close", "aclose", "mount", "quote", "unquote", "pathname2url", "url2pathname"),
        *("json", "raise_for_status", "read", "iter_lines", "iter_content", "text", "decode", "getcode", "info"),
        *(
            "update",
            "set_debuglevel",
            "build_opener",
            "install_opener",
            "disable_warnings",
            "getheader",
            "items",
            "get_all",
        ),
    }
)
_CONNECTIONS = frozenset(
    {
        *("socket.create_connection", "socket.getaddrinfo", "socket.gethostbyname", "socket.socket().connect"),
        *("asyncio.open_connection", "asyncio.open_unix_connection"),
    }
)

_FILES = frozenset(
    {
        *("os.listdir", "os.scandir", "os.walk", "os.stat", "glob.glob", "glob.iglob"),
        *(f"os.path.{name}" for name in ("exists", "isfile", "isdir", "getmtime", "getsize")),
        *(f"pathlib.Path().{name}" for name in ("read_text", "read_bytes", "iterdir", "glob", "rglob", "walk")),
        *(f"pathlib.Path().{name}" for name in ("exists", "is_file", "is_dir", "stat")),
    }
)
_OPENERS = frozenset({"builtins.open", "io.open", "pathlib.Path().open"})

_PROGRAMS = frozenset(
    {
        *("os.system", "os.popen", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
        *(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")),
        *("subprocess.getoutput", "subprocess.getstatusoutput"),
    }
)
_TERMINAL = frozenset({"builtins.input", "getpass.getpass", "sys.stdin.read", "sys.stdin.readline"})

MENTIONED = re.compile(
    rb"\b(time|datetime|random|secrets|uuid|urandom|getrandom|requests|httpx|urllib3?|aiohttp|smtplib|ftplib|imaplib"
    rb"|poplib|telnetlib|websockets?|boto3|botocore|paramiko|http|xmlrpc|socket|asyncio|os|glob|pathlib|open|io"
    rb"|subprocess|input|getpass|sys|pendulum|arrow|pandas|numpy|django)\b"
)
"""A file without any of these words has no such call."""


def kind_of(path: str, call: ast.Call) -> Kind | None:
    """What a call of a function does that isn't the same twice; None if nothing is known of it.

    Args:
        path: The function's dotted path.
        call: The call, whose arguments may decide.

    Example:
        >>> call = ast.parse("f()", mode="eval").body
        >>> kind_of("time.time", call), kind_of("random.Random", call), kind_of("json.loads", call)
        ('clock', 'random', None)
    """
    given = len(call.args) + len(call.keywords)
    if path in _CLOCKS or given <= _CLOCKS_WITHOUT_ARGUMENTS.get(path, -1):
        return "clock"
    if _is_random(path, given):
        return "random"
    if path in _CONNECTIONS or _is_request(path):
        return "request"
    if path in _FILES or (path in _OPENERS and _reads(path, call)):
        return "file"
    if path in _PROGRAMS:
        return "program"
    return "terminal" if path in _TERMINAL else None


def is_seedable(path: str) -> bool:
    """Whether a function's random values are the same after a `seed` with a value."""
    return path.startswith(("random.", "numpy.random."))


def _is_random(path: str, given: int) -> bool:
    if path in _RANDOM:
        return True
    if path.startswith("secrets."):
        return path != "secrets.compare_digest"
    if not is_seedable(path) or _NOT_RANDOM.match(path):
        return False
    return not (given and _SEEDED.match(path))


def _is_request(path: str) -> bool:
    name = path.rpartition(".")[2]
    return bool(_REQUESTS.match(path)) and name.islower() and name not in _NO_REQUEST and name[:1].isalpha()


def _reads(path: str, call: ast.Call) -> bool:
    """Whether a file is opened to be read: its mode is missing, or says so."""
    position = 0 if path.endswith("().open") else 1
    mode = call.args[position] if len(call.args) > position else None
    mode = mode or next((each.value for each in call.keywords if each.arg == "mode"), None)
    if mode is None:
        return True
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and not set(mode.value) & set("wax")
