from llm_do.runtime import AgentArgs, PromptContent


class PlannerInput(AgentArgs):
    """A task to be broken into parts."""

    task: str
    depth: int = 0

    def prompt_messages(self) -> list[PromptContent]:
        return [f"Task: {self.task}", f"Levels left: {self.depth}"]
