"""Servers for those who ask without a terminal: agents and editors.

They compute no fact: every answer is a part of the documents that `--json` prints, cut to what was asked for.
"""
