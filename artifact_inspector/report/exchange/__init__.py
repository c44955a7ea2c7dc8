"""Formats of other tools: Markdown, JUnit, SARIF, annotations."""
