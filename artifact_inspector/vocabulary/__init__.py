"""One row per fact."""
