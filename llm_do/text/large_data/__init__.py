"""Large values as JSON, converted in parts."""
