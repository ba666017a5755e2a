"""Watch a run from its files alone, from another process, while it runs or later: in a terminal, or in a local browser.

log_reader.py reads the files, view.py makes plain data of them, terminal.py shows it as text and server.py as a page.
"""
