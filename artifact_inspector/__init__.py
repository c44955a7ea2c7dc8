"""A compiler-artifact inspector for the Triton cache."""

__version__ = "0.1.0"
