"""The documentation site: what of the repository becomes a page, and where; `scripts/build_site.py` builds it.

`navigation` reads the order of pages, `links` says where a page or file of the repository is on the site, `stage`
writes the source that Sphinx reads, `built` checks what Sphinx wrote.
"""
