"""The only package that opens files or runs external tools."""
