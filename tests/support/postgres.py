"""A PostgreSQL server for tests, from the system's package, in a temporary folder.

It is started once for all processes of a test run, and ends with that run, however it ends. Run as a program, this
file is what starts it, waits for the end of another process, and stops it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

__all__ = ["Server", "missing", "shared_server", "start_server"]

USER = "postgres"
"""The server refuses to run as root, and then runs as this user."""

PASSWORD = "correct horse battery"


def binaries() -> Path | None:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    which = shutil.which("initdb")
    return found[-1].parent if found else Path(which).parent if which else None


def missing() -> str | None:
    """Why there can be no server here; None if there can."""
    if binaries() is None:
        return "PostgreSQL isn't installed (on Debian: apt-get install postgresql)"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "PostgreSQL doesn't run as root, and there is no setpriv to run it as another user"
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        return f"the extra `postgres` isn't installed: {error}"
    return None


class Server:
    """A server that runs.

    Args:
        folder: Its folder, with its data and its socket.
        port: Its port on the loopback interface.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def url(self, schema: str | None = None, database: str = "postgres") -> str:
        """The URL of a store of its own, by the socket; as the user that may do everything."""
        name = schema or f"t{uuid.uuid4().hex[:16]}"
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder), safe='')}&port={self.port}&schema={name}"

    def tcp_url(self, user: str = USER, password: str = PASSWORD, database: str = "postgres") -> str:
        """The URL of a database by the network, which asks for a password."""
        return f"postgresql://{user}:{quote(password)}@127.0.0.1:{self.port}/{database}"

    def control(self, *words: str) -> None:
        """Run `pg_ctl`."""
        log = str(self.folder / "log")
        _run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, *words)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement on a connection of its own."""
        import psycopg

        with psycopg.connect(host=str(self.folder), port=self.port, user=USER, dbname="postgres") as connection:
            connection.autocommit = True
            found = connection.execute(sql.encode())
            return found.fetchall() if found.description else []


def _as_server_user(words: list[str]) -> list[str]:
    if os.getuid() != 0:
        return words
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--", *words]


def _run(program: str, *words: str) -> None:
    folder = binaries()
    assert folder is not None
    with tempfile.TemporaryFile() as said:  # a server that is started keeps the output open
        done = subprocess.run(_as_server_user([str(folder / program), *words]), stdout=said, stderr=said, cwd="/")
        said.seek(0)
        assert done.returncode == 0, said.read().decode()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start_server(fsync: str = "off") -> Server:
    """Start a server in a new folder; whoever calls it stops it. Without `fsync`, only the machine must not fail."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-of-llm-do-"))
    if os.getuid() == 0:
        shutil.chown(folder, USER, USER)
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    options = ["--encoding=UTF8", "--locale=C.UTF-8", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"]
    _run("initdb", "-D", str(folder / "data"), "-U", USER, *options, f"--pwfile={folder / 'password'}")
    server = Server(folder, _free_port())
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": server.port,
        "unix_socket_directories": folder,
        "fsync": fsync,
        "shared_buffers": "16MB",
        "max_connections": 100,
    }
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    server.control("start")
    return server


def stop_server(server: Server) -> None:
    """Stop a server, and remove its folder."""
    with suppress(AssertionError):
        server.control("stop", "-m", "immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


def shared_server(note: Path, run: int) -> Server:
    """The server of a test run: started by the first process that calls this, it ends with the run's main process.

    Args:
        note: A file in a folder that the processes of the run share.
        run: The id of the main process.
    """
    import fcntl

    with note.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            command = [sys.executable, __file__, str(run)]
            # Its folder is beside that of the session, which goes before the server has stopped.
            env = {**os.environ, "TMPDIR": os.environ["PYTEST_DEBUG_TEMPROOT"]}
            guard = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd="/", env=env
            )
            assert guard.stdout is not None
            text = guard.stdout.readline()
            assert text, "the server didn't start"
            file.write(text)
            guard.stdout.close()
            guard.returncode = 0  # it ends after this process
    folder, port = json.loads(text)
    return Server(Path(folder), port)


def _guard(run: int) -> None:
    """Start a server, and stop it when a process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waited = os.pidfd_open(run)
    server = start_server()
    print(json.dumps([str(server.folder), server.port]), flush=True)
    select.select([waited], [], [])
    stop_server(server)


if __name__ == "__main__":
    _guard(int(sys.argv[1]))
