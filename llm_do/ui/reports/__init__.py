"""What commands print: diagnostics, failures, graphs, tools, explanations, checkups."""
