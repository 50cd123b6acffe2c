"""A report as one self-contained HTML file: tables, plots, and for every cell what was asked, done and heard.

Needs the extra `report` (matplotlib, jinja2), which nothing else imports.
"""
