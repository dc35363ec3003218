"""What a project's store holds, as commands list and show it."""
