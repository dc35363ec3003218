"""What a command line says, as values: options, input, target, models, settings."""
