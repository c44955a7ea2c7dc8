"""Control flow and dataflow: what the other analyses walk on."""
