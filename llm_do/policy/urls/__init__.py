"""URLs: how their text is read, and how the patterns of rules are compared with them."""
