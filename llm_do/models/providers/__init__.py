"""Models of providers: names, what each needs, HTTP connections, failures, prices that are known."""
