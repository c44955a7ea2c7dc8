"""The only room that opens a file or runs a tool."""
