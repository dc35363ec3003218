"""A process that chats on a thread and tries everything that could open the store's file, then goes on until killed.

chat_process.py ROOT

It prints each path of the store that anything but SQLite opens, and a line for each turn.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

root = Path(sys.argv[1])
FILES = ("state.db", "state.db-wal", "state.db-shm", "copy.db")
connections: list[str] = []


def watch(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and Path(str(args[0])).name in FILES:
        print("opened", args[0], flush=True)
    elif event == "sqlite3.connect":
        connections.append(str(args[0]))


sys.addaudithook(watch)

from llm_do import Runtime  # noqa: E402
from llm_do.files.root import Root  # noqa: E402
from llm_do.project.inputs import PromptInput  # noqa: E402
from llm_do.threads import SqliteStore, StateManager, open_store  # noqa: E402
from tests.support.runs import agent, project_of  # noqa: E402
from tests.support.scripted import call, script  # noqa: E402

STORE = ".llm-do/state.db"


def talk(*answers: object) -> Runtime:
    spec = agent("main", script(*answers), toolsets=["filesystem_project"])
    return Runtime(project_of([spec], root=root), approvals="approve_all")


async def turn(runtime: Runtime, text: object) -> None:
    result = await runtime.execute(text, thread_id="t")
    print("turn", result.status, flush=True)


async def main() -> None:
    await turn(talk("first"), "first")
    (root / "copy.db").hardlink_to(root / STORE)
    readings = [call("read_file", path=path) for path in (STORE, f"{STORE}-wal", f"{STORE}-shm", "copy.db")]
    searches = [call("search_files", pattern="a", path=path) for path in (".llm-do", STORE, "copy.db", ".")]
    changes = [call("edit_file", path="copy.db", old="a", new="b"), call("write_file", path=STORE, content="x")]
    await turn(talk([*readings, *searches, *changes, call("list_files", path=".llm-do")], "read"), "read")
    for path in (STORE, "copy.db"):
        await turn(talk("attached"), PromptInput(input="x", attachments=[path]))
    second = SqliteStore(root / "link" / STORE)
    assert second._worker is open_store(root)._worker
    await StateManager(second).set_thread_config("t", {"history_limit": 9})
    assert Root(root).stat(STORE).size > 0
    assert len(connections) == 1, connections
    print("ready", flush=True)
    sys.stdin.readline()
    await turn(talk("more"), "more")
    await turn(talk("and more"), "and more")
    sys.stdin.readline()


(root / "link").symlink_to(root, target_is_directory=True)
asyncio.run(main())
