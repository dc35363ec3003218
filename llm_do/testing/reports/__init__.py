"""A suite's results as files: JSON, JUnit's XML, and Markdown for a pull request. Nothing here runs a test."""
