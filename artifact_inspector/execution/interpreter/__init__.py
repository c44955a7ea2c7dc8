"""An interpreter for any instruction set: a machine of all lanes of some CTAs, its memory, its counters."""
