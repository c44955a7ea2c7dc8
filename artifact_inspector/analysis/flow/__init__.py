"""Control flow and dataflow, used by the other analyses."""
