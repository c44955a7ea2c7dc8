"""Pygments lexers for the files of a cache, also registered as Pygments plugins.

An unknown character is an error token. Every rule consumes what it starts, closed or not, so lexing takes linear time.
"""
