"""A run as a page: in a file that needs no server, and served.

`run_document` turns a recorded run into plain data. `page_file` makes the page with that data inside.
"""
