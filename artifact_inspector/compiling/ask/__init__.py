"""The process that asks: what is wanted, who compiles it, and what became of it."""
