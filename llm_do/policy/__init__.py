"""Whether a call is allowed: rules, patterns and decisions, and what commands and URLs mean to them."""
