"""A process that takes one turn at a desk that requires a login, with one model or another.

login_process.py ROOT MODEL
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from llm_do import AgentSpec, Runtime, Toolkit
from tests.support.history import results_of
from tests.support.runs import project_of
from tests.support.scripted import call, script

desk = Toolkit("desk", context={"tickets": [1, 2]})


@desk.tool(enables_states=["in"], approval="allow")
def login(user: str):
    """Log in."""
    return f"hello {user}", {"user": user}


@desk.tool(required_states=["in"], approval="allow")
def close(ctx, ticket: int):
    """Close a ticket."""
    return f"closed {ticket} for {ctx.state.get('user')}"


models = {
    "first": script(call("desk_login", user="ann"), "logged in"),
    "second": script(call("desk_close", ticket=2), "closed"),
}


async def main() -> None:
    spec = AgentSpec("main", model=models[sys.argv[2]])
    spec.add_toolkit("desk", desk)
    runtime = Runtime(project_of([spec], root=Path(sys.argv[1])), approvals="approve_all")
    result = await runtime.run("continue", thread_id="t")
    await runtime.aclose()
    shown = models[sys.argv[2]].asked[0].tools
    print(
        json.dumps([result.output, results_of(result.messages), shown, result.execution_context.to_dict()["toolkits"]])
    )


asyncio.run(main())
