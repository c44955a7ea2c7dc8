"""GPU data: every number with its source."""
