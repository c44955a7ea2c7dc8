"""Semantics of SASS instructions."""
