"""What the planner takes, and what it answers with."""

from __future__ import annotations

from pydantic import BaseModel

from llm_do import AgentArgs


class Journey(AgentArgs):
    """A journey to plan."""

    town: str
    nights: int


class Plan(BaseModel):
    """A journey that is planned."""

    hotel: str
    price: float
