"""What is known of a project without running it: its names, the tools of each agent, permissions."""
