"""Semantics of AMDGCN instructions."""
