"""The shared-memory bill, according to Triton's own rules."""
