"""Models of providers: names, what each needs, clients, repaired answers, failures and known prices."""
