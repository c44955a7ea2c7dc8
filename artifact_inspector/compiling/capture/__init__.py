"""Inside a captured program: Triton and torch as they would be with a GPU."""
