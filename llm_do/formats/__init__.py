"""Formats of project files: texts become values, or diagnostics that know their place. Nothing is read or written."""
