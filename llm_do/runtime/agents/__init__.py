"""Building PydanticAI agents from declarations, once a project."""
