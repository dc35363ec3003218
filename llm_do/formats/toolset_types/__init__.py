"""What the manifest configures of toolsets whose options need more than their shape checked, a module for each type."""
