"""Runs inside a captured program: makes Triton and torch behave as with a GPU."""
