"""Pygments lexers for what lies in a cache: plugins of Pygments, and the colours of the tool's own excerpts.

A character that a language does not have is an error token. Every rule takes what it begins, closed or not,
so no text costs more than its length.
"""
