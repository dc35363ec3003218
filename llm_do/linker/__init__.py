"""From files to a `Project`, or everything that is wrong with them."""
