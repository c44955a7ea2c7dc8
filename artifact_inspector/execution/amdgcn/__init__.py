"""AMDGCN run on paper."""
