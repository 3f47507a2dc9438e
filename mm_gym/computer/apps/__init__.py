"""Small web apps for computer use: one folder each, with its pages and, in `app.py`, its tasks.

`shared/` holds what the pages share; `content`, `expect` and `moves` what the task files share.
"""
