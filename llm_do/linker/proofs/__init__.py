"""What can be proved about a project without running it: assertions, bounds, and decisions about past calls."""
