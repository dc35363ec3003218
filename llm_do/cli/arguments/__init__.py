"""A command line as values: options, input, target, models, settings."""
