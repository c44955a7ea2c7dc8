"""AMDGCN, AMD's assembly."""
