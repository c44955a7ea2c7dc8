"""Which loads are in flight where, what each wait leaves, and how deep a loop is pipelined."""
