"""Titles as parts of addresses."""


def slug(title):
    return title.lower().replace(" ", "_")
