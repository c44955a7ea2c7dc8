"""Servers for agents (MCP) and editors (LSP).

They compute no facts: every answer is a part of the documents that `--json` prints.
"""
