"""The ticket desk: a toolkit over a small SQLite database whose tools become available step by step."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

from llm_do import ToolError, Toolkit, Update
from llm_do.toolkits import DynamicFiltered, DynamicInt

HERE = Path(__file__).parent
SHIPPED = HERE / "tickets.db"
# Every login begins with a fresh copy, so that the example can be run any number of times.
WORKING = HERE / "out" / "tickets.db"

desk = Toolkit("desk", context={"priorities": [1, 2, 3]}, validation_enabled=True)
desk.context.schema.define("open_issues", {"type": "array", "items": {"type": "integer"}})


def query(sql, *values):
    """Rows of the working copy, as dicts."""
    with closing(sqlite3.connect(WORKING)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(sql, values)]
        connection.commit()
    return rows


@desk.tool(forbidden_states=["logged_in"], enables_states=["logged_in"])
def login(user: str, pin: str):
    """Log in.

    Args:
        user: The user's name.
        pin: Four digits.
    """
    WORKING.parent.mkdir(exist_ok=True)
    shutil.copyfile(SHIPPED, WORKING)
    if not query("select 1 from users where name = ? and pin = ?", user, pin):
        return Update.failed("unknown user or wrong pin")
    projects = query("select id, name, active from projects order by id")
    return f"Logged in as {user}.", {"user": user, "projects": projects}


@desk.tool(required_states=["logged_in"], enables_states=["selected"], disables_states=["closed"])
def select_project(project: Annotated[str, DynamicFiltered("projects", "active_only")]):
    """Choose the project to work on."""
    issues = query("select id from issues where project = ? and state = 'open' order by id", project)
    return f"Selected {project}.", {"project": project, "open_issues": [issue["id"] for issue in issues]}


@desk.tool(required_states=["selected"])
def list_issues(ctx):
    """List the issues of the project."""
    return query("select id, title, priority, state from issues where project = ?", ctx.state["project"])


@desk.tool(required_states=["selected"], forbidden_states=["closed"])
def edit_issue(
    ctx,
    issue: Annotated[int, DynamicInt("open_issues")],
    priority: Annotated[int, DynamicInt("priorities")],
    done: bool = False,
):
    """Change an open issue.

    Args:
        issue: The issue's number.
        priority: 1 is the most urgent.
        done: Whether the issue is finished and should be closed.
    """
    state = "closed" if done else "open"
    query("update issues set priority = ?, state = ? where id = ?", priority, state, issue)
    still_open = [each for each in ctx.state["open_issues"] if each != issue or not done]
    return Update(f"Issue {issue} has priority {priority} and is {state}.", open_issues=still_open)


@desk.tool(required_states=["selected"], forbidden_states=["closed"], enables_states=["closed"])
def close_project(ctx):
    """Close the project for today: its issues can still be read but no longer edited."""
    if ctx.state["user"] != "ann":
        raise ToolError("only ann may close a project")
    return f"{ctx.state['project']} is closed."


TOOLSETS = [desk]
