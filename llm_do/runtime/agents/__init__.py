"""Builds PydanticAI agents from declarations, once per project."""
