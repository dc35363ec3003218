"""Which files of a project have changed, and which test cases these can reach."""
