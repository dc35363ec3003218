"""Cells of a notebook, where an event loop already runs: `run.sync` and `run_sync` work there as in a script."""

# %% Load the project; this calls no model yet.
from pathlib import Path

from llm_do import ApprovalDecision, ApprovalRequest, Project, Runtime, run
from llm_do.messages import to_messages

project = Project.load(Path(__file__).parent)

# %% One line: there is no one to ask, so the letter isn't sent, and the result says so.
result = run.sync(project, "The lift is broken.")
print(result.status, [denial.tool for denial in result.denials])


# %% A person who answers.
async def person(request: ApprovalRequest) -> ApprovalDecision:
    print("approve?", request.tool_name, request.args["text"])
    return ApprovalDecision("once")


result = Runtime(project, approvals=person).run_sync("The lift is broken.")
print(result.output)

# %% The conversation, message by message.
for message in to_messages(result.messages):
    print(f"{message.role}: {message.content}")
