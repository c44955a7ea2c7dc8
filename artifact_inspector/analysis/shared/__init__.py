"""The shared-memory bill, by Triton's own rules."""
