"""Models of providers: names, required settings, HTTP connections, failures and known prices."""
