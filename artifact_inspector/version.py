"""The version of this package, in the one place that everything else asks."""

__version__ = "0.1.0"
