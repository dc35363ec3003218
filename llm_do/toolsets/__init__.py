"""The built-in toolsets, and agents as tools; what they declare about their tools is in `project.tools`."""
